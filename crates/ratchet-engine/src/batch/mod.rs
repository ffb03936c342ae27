//! Batches: many jobs that are counted together, given at once or as a stream.

mod builder;
mod feed;
mod end;
mod handle;
mod cancel;

pub use builder::BatchBuilder;
pub use feed::{FeedCause, FeedError, OpenBatch};
pub use handle::{BatchHandle, ProgressStream};

pub(crate) use cancel::Canceler;
pub(crate) use end::{BatchEnd, summary_of};
