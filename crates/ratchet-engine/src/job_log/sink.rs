use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::{LogLine, Store, StoreError};

use crate::job::failure::BoxError;

/// Takes the lines that handlers write, instead of the store's own table: `.job_logs(JobLogs::to(sink))`.
///
/// One task of the node calls it, with many lines at a time and one call after the other: of one attempt they come in their
/// order. Nobody waits for it. While it is slow lines gather, up to a limit, and then are left out and counted. A call that
/// takes longer than the node's [`store_deadline`](crate::Timing::store_deadline) counts as failed, and one that panics as refused. Lines may come again
/// after a failed call; job, version and number tell them apart.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use ratchet_core::LogLine;
/// use ratchet_engine::{JobLogSink, LogSinkError};
///
/// struct Stdout;
///
/// #[async_trait]
/// impl JobLogSink for Stdout {
///     async fn write(&self, lines: Arc<[LogLine]>) -> Result<(), LogSinkError> {
///         for line in lines.iter() {
///             println!("{} {} {} {}", line.at, line.job_id, line.level, line.message);
///         }
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait JobLogSink: Send + Sync + 'static {
    /// Writes lines, all of them or none as far as it can. They are shared so that they can be handed on without a copy.
    ///
    /// # Errors
    /// Says whether it is worth another try.
    async fn write(&self, lines: Arc<[LogLine]>) -> Result<(), LogSinkError>;
}

impl fmt::Debug for dyn JobLogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobLogSink")
    }
}

/// Why lines were not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogSinkError {
    /// What takes the lines is away or busy: they are tried again, for as long as it takes.
    #[error("jobs' logs cannot be written now")]
    Again(#[source] BoxError),
    /// These lines will never be taken: they are tried in smaller groups, and those at fault are left out.
    #[error("lines of jobs' logs were refused")]
    Refused(#[source] BoxError),
}

impl LogSinkError {
    /// Worth another try.
    pub fn again(error: impl Into<BoxError>) -> Self {
        Self::Again(error.into())
    }

    /// Not worth another try.
    pub fn refused(error: impl Into<BoxError>) -> Self {
        Self::Refused(error.into())
    }
}

impl From<StoreError> for LogSinkError {
    fn from(error: StoreError) -> Self {
        if error.is_retryable() { Self::again(error) } else { Self::refused(error) }
    }
}

/// Writes to the store that has the jobs.
pub(crate) struct StoreSink(pub(crate) Arc<dyn Store>);

#[async_trait]
impl JobLogSink for StoreSink {
    async fn write(&self, lines: Arc<[LogLine]>) -> Result<(), LogSinkError> {
        Ok(self.0.append_log(lines).await?)
    }
}
