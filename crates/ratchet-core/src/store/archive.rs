use std::time::Duration;

use async_trait::async_trait;

use crate::error::StoreError;
use crate::id::JobId;
use crate::state::JobState;

/// Moving jobs that ended long ago out of the way, and deleting what was archived long ago.
///
/// An archived job is found by its id and by lists that ask for the archive, with its attempts and its signal. Nothing can
/// be asked of it any more. Alerts about it are gone, and so is the row of a batch that it stood for; its result says what
/// came of that. Keys that callers gave outlive it.
#[async_trait]
pub trait ArchiveStore: Send + Sync {
    /// Looks at up to `limit` ended jobs and moves those to the archive that may go, in one transaction.
    ///
    /// A job may go if it ended longer ago than asked, no job that depends on it directly is live, and the job that stands
    /// for its batch is not live either; one that stands for a batch, if all children have ended. Ids tell when jobs were
    /// made, and what ended before a time was made before it: jobs whose id says otherwise are not looked at.
    ///
    /// Nobody waits for it: jobs that another transaction holds are passed by.
    async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError>;

    /// Deletes up to `limit` jobs for good that were archived longer ago than `age`, with what is left of their logs; says how
    /// many.
    async fn purge_archive(&self, age: Duration, limit: usize) -> Result<u64, StoreError>;

    /// Deletes up to `limit` schedules for good that were cancelled or retired longer ago than `age`; says how many.
    async fn purge_schedules(&self, age: Duration, limit: usize) -> Result<u64, StoreError>;
}

/// Which jobs to archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveRequest {
    /// How they ended.
    pub state: JobState,
    /// How long ago, by the database's clock.
    pub age: Duration,
    /// Where to go on: after this id.
    pub after: Option<JobId>,
    /// How many to look at.
    pub limit: usize,
    /// These alone, if any are given; then there is nothing to go on with.
    pub only: Option<Vec<JobId>>,
}

/// What was archived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Archived {
    /// How many jobs were moved.
    pub moved: u64,
    /// The last job that was looked at, and where the next call goes on; as it was if there was none.
    pub last: Option<JobId>,
    /// Whether there are more to look at now.
    pub more: bool,
}
