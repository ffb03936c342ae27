//! What handlers write down: gathered in memory, bounded everywhere, written in the background, in the way of nobody.

mod config;
mod log;
mod attempt;
#[cfg(feature = "log-layer")]
mod layer;
mod queue;
mod writer;
mod sink;
mod read;

pub(crate) use attempt::{AttemptLog, Writing};
pub use config::JobLogs;
#[cfg(feature = "log-layer")]
pub use layer::JobLogLayer;
pub use log::JobLog;
pub(crate) use queue::LogQueue;
pub(crate) use sink::StoreSink;
pub use sink::{JobLogSink, LogSinkError};
pub(crate) use writer::LogWriter;
