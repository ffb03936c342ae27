use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StoreError;
use crate::flow::Edge;
use crate::id::JobId;
use crate::insight::{LaneRange, RecentEnd};
use crate::name::{Kind, QueueName, ResourceName};
use crate::priority::Priority;
use crate::state::JobState;

/// The facts behind [`insight`](crate::insight) and [`explain`](crate::explain). The cost of each answer depends on its
/// length, not on the number of jobs.
///
/// A lane is the set of waiting jobs that share probation, resource, queue, kind and priority. Every store has an ordered
/// index that begins with these five fields and ends with the scheduled time and the id: claims read its ranges.
#[async_trait]
pub trait InsightStore: Send + Sync {
    /// Returns the lanes in which PENDING jobs wait that are not deferred, up to [`LANES_MAX`], with the first job of each.
    async fn waiting_lanes(&self) -> Result<Vec<WaitingLane>, StoreError>;

    /// Counts the jobs that wait in each of these ranges, at most `most` in each.
    async fn count_waiting(&self, ranges: &[LaneRange], most: u64) -> Result<Vec<u64>, StoreError>;

    /// Returns jobs that ended in this state, of those that were created last: up to `limit`, newest first.
    async fn recent_ends(&self, state: JobState, limit: usize) -> Result<Vec<RecentEnd>, StoreError>;

    /// Counts the jobs that ended in this state and are not archived, at most `most`.
    async fn count_ended(&self, state: JobState, most: u64) -> Result<u64, StoreError>;

    /// Returns the number of RUNNING jobs by queue.
    async fn running_by_queue(&self) -> Result<BTreeMap<QueueName, u64>, StoreError>;

    /// Returns the queues that claims leave out.
    async fn paused_queues(&self) -> Result<Vec<QueueName>, StoreError>;

    /// Returns the edges that end at a job, in the order of their definition.
    async fn edges_to(&self, id: JobId) -> Result<Vec<Edge>, StoreError>;
}

/// Maximum number of lanes in one answer; the rest is left out.
pub const LANES_MAX: usize = 1_000;

/// A lane with waiting jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingLane {
    /// Whether its jobs are on probation.
    pub probation: bool,
    /// The resource that its jobs need a permit for.
    pub resource: Option<ResourceName>,
    /// The queue.
    pub queue: QueueName,
    /// The kind.
    pub kind: Kind,
    /// The priority.
    pub priority: Priority,
    /// The time at which its first job became or becomes due.
    pub head: Timestamp,
}
