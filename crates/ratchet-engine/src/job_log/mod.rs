//! What handlers write down: gathered in memory, bounded everywhere, written in the background, in the way of nobody.

mod attempt;
mod config;
#[cfg(feature = "log-layer")]
mod layer;
mod log;
mod queue;
mod read;
mod sink;
mod writer;

pub(crate) use attempt::{AttemptLog, Writing};
pub use config::JobLogs;
#[cfg(feature = "log-layer")]
pub use layer::JobLogLayer;
pub use log::JobLog;
pub(crate) use queue::LogQueue;
pub(crate) use sink::StoreSink;
pub use sink::{JobLogSink, LogSinkError};
pub(crate) use writer::LogWriter;
