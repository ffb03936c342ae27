use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::count::{CountBy, Counted};
use crate::error::StoreError;
use crate::flow::{Edge, Workflow};
use crate::id::JobId;
use crate::name::Principal;
use crate::page::{JobCursor, JobFilter, ListCursor, Page};
use crate::record::{AttemptRecord, JobRecord};
use crate::state::JobState;

/// Numbers of jobs by state.
pub type StateCounts = BTreeMap<JobState, u64>;

/// The last attempts of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LastAttempts {
    /// The attempts, most recent first.
    pub items: Vec<AttemptRecord>,
    /// The number of recorded attempts.
    pub total: u64,
}

/// Lists, counts and history.
#[async_trait]
pub trait QueryStore: Send + Sync {
    /// Returns a page of jobs, in the order of the filter. A page may be shorter than asked for and still have a next one: the
    /// number of jobs that are examined for one page is bounded.
    ///
    /// `limit` is 1 to [`PAGE_LIMIT_MAX`](crate::page::PAGE_LIMIT_MAX), and `after` comes from a list in the same order, else
    /// [`Invalid`](crate::ErrorKind::Invalid).
    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError>;

    /// Counts the jobs of a filter by groups. At most [`COUNTED_MAX`](crate::count::COUNTED_MAX) jobs are examined.
    async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError>;

    /// Counts jobs by state; states without jobs are left out.
    async fn count_by_state(&self) -> Result<StateCounts, StoreError>;

    /// Counts the jobs that were submitted for this principal by state; states without jobs are left out.
    async fn count_by_state_of(&self, principal: &Principal) -> Result<StateCounts, StoreError>;

    /// Returns the attempts of a job, oldest first.
    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError>;

    /// Returns the last attempts of a job before the one of this version, most recent first, and how many there are in all;
    /// `limit` as for [`list`](Self::list). The archive retains only the last attempts of a job.
    async fn last_attempts(&self, id: JobId, before: Option<u64>, limit: usize) -> Result<LastAttempts, StoreError>;

    /// Returns a workflow with all its steps and edges; `None` if there is none with this id.
    async fn workflow(&self, id: JobId) -> Result<Option<Workflow>, StoreError>;

    /// Returns the ids of workflows, newest first; `limit` as for [`list`](Self::list).
    async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError>;

    /// Returns the edges that begin at jobs: their dependents, the condition of each, and whether it was met.
    async fn edges_from(&self, ids: &[JobId]) -> Result<Vec<Edge>, StoreError>;

    /// How many alerts were recorded for a job's way to the dead letter queue.
    async fn alert_count(&self, id: JobId) -> Result<u64, StoreError>;
}
