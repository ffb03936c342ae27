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
    /// Appends lines of any jobs. A line whose job, version and number are there already is left as it is, so that the same
    /// lines may be given again, as after a lost reply. Lines of an attempt that are given in one call may be kept together.
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

    /// Looks at up to `limit` lines, or as many groups of lines that are kept together, and deletes those that are older than
    /// `age`, in one transaction. A group is as old as its latest line.
    ///
    /// Ids tell when jobs were made, and a line was written after its job was made: lines of jobs whose id says that
    /// they are younger than `age` are not looked at.
    async fn purge_log(&self, request: &PurgeLog) -> Result<PurgedLog, StoreError>;
}

/// Which lines to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeLog {
    /// How old they are, by the database's clock.
    pub age: Duration,
    /// Where to go on: after this line.
    pub after: Option<(JobId, LogPlace)>,
    /// How many lines, or groups of them, to look at.
    pub limit: usize,
}

/// What was deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgedLog {
    /// How many lines.
    pub purged: u64,
    /// The last line, or the first of the last group, that was looked at, and where the next call goes on; as it was if there
    /// was none.
    pub last: Option<(JobId, LogPlace)>,
    /// Whether there are more to look at now.
    pub more: bool,
}
