use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::id::JobId;
use crate::job_log::{LogFilter, LogLine, LogPage, LogPlace};

/// What handlers wrote down, line by line.
///
/// Lines are no part of a job's life: writing them is guarded by no fence and changes no version, so that also the last
/// words of an attempt that has lost its job are kept. They go when their job is deleted, or before that by their age; archiving
/// leaves them where they are.
#[async_trait]
pub trait JobLogStore: Send + Sync {
    /// Appends lines of any jobs. A line whose job, version and number are stored already stays as it is, so that a caller
    /// may append the same lines again, as after a lost reply.
    ///
    /// The lines are shared and not borrowed: a store may write them on another thread, and more than once. With a slice it
    /// would have to copy up to 1 MiB of text in each call.
    async fn append_log(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError>;

    /// A page of a job's log in the order in which it was written, attempt by attempt; `limit` is 1 to
    /// [`PAGE_LIMIT_MAX`](crate::page::PAGE_LIMIT_MAX), else [`Invalid`](crate::ErrorKind::Invalid).
    async fn read_log(
        &self,
        id: JobId,
        filter: &LogFilter,
        after: Option<LogPlace>,
        limit: usize,
    ) -> Result<LogPage, StoreError>;

    /// Deletes lines that are older than `age`, in one transaction that examines about `limit` lines: a store may count lines
    /// that one call appended as one.
    ///
    /// Lines are examined in the order of their jobs' ids, then of their places. No line younger than `age` is deleted. An older
    /// one may stay for a while: until all lines of its attempt that the same call appended are old enough, and until its
    /// job's id was created before `age` too.
    async fn purge_log(&self, request: &PurgeLog) -> Result<PurgedLog, StoreError>;
}

/// Which lines to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeLog {
    /// The least age, by the database's clock.
    pub age: Duration,
    /// The line after which to continue.
    pub after: Option<(JobId, LogPlace)>,
    /// The number of lines to examine.
    pub limit: usize,
}

/// What was deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgedLog {
    /// The number of deleted lines.
    pub purged: u64,
    /// Where the next call continues: `after` of the request if no line was examined.
    pub last: Option<(JobId, LogPlace)>,
    /// Whether there may be more lines to examine now.
    pub more: bool,
}
