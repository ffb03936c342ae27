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

/// Jobs by state.
pub type StateCounts = BTreeMap<JobState, u64>;

/// Some attempts of a job, the last first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LastAttempts {
    /// They.
    pub items: Vec<AttemptRecord>,
    /// How many attempts are recorded in all.
    pub total: u64,
}

/// Looking at what is there.
#[async_trait]
pub trait QueryStore: Send + Sync {
    /// A page of jobs, in the order of the filter; `limit` is 1 to [`PAGE_LIMIT_MAX`](crate::page::PAGE_LIMIT_MAX), and
    /// `after` comes from a list in the same order, else [`Invalid`](crate::ErrorKind::Invalid).
    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError>;

    /// How many jobs there are of a filter, and in which groups. No more than [`COUNTED_MAX`](crate::count::COUNTED_MAX) are
    /// looked at.
    async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError>;

    /// How many jobs stand where; states without jobs are left out.
    async fn count_by_state(&self) -> Result<StateCounts, StoreError>;

    /// The same of the jobs that were submitted on behalf of this principal.
    async fn count_by_state_of(&self, principal: &Principal) -> Result<StateCounts, StoreError>;

    /// The attempts of a job, the first first.
    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError>;

    /// The last attempts of a job before that of this version, the last first, and how many there are in all; `limit` as for
    /// [`list`](Self::list). Of archived jobs the archive keeps the last ones only.
    async fn last_attempts(&self, id: JobId, before: Option<u64>, limit: usize) -> Result<LastAttempts, StoreError>;

    /// A workflow with all its steps and edges; `None` if there is none of this id.
    async fn workflow(&self, id: JobId) -> Result<Option<Workflow>, StoreError>;

    /// The ids of workflows, newest first; `limit` as for [`list`](Self::list).
    async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError>;

    /// The edges that begin at jobs: who depends on them, on which condition, and what came of it.
    async fn edges_from(&self, ids: &[JobId]) -> Result<Vec<Edge>, StoreError>;

    /// How many alerts were recorded for a job's way to the dead letter queue.
    async fn alert_count(&self, id: JobId) -> Result<u64, StoreError>;
}
