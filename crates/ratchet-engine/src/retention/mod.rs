//! Retention: the dead letter queue, the archive, and the purge of what has been stored long enough.

mod events;
mod archiver;
mod dead_letters;
mod pacing;
mod archive;
mod scan;

pub(crate) use archive::LINES_TOGETHER;
pub(crate) use archiver::Archiver;
pub use dead_letters::DeadLetterGroups;
pub(crate) use events::CAPACITY;
pub use events::{BulkEvent, BulkEventKind, BulkEventStream};
pub(crate) use pacing::Pace;
