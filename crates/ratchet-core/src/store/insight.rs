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

/// What [`insight`](crate::insight) and [`explain`](crate::explain) are made of. Each answer costs as much as it is long,
/// however many jobs there are.
#[async_trait]
pub trait InsightStore: Send + Sync {
    /// The lanes in which PENDING jobs wait that were not put off, up to [`LANES_MAX`]; with the first job of each.
    async fn waiting_lanes(&self) -> Result<Vec<WaitingLane>, StoreError>;

    /// How many jobs wait in each of these ranges; no more than `most` are counted of each.
    async fn count_waiting(&self, ranges: &[LaneRange], most: u64) -> Result<Vec<u64>, StoreError>;

    /// The jobs that ended so, of those that were made last; up to `limit`, newest first.
    async fn recent_ends(&self, state: JobState, limit: usize) -> Result<Vec<RecentEnd>, StoreError>;

    /// How many jobs ended so and are not archived; no more than `most` are counted.
    async fn count_ended(&self, state: JobState, most: u64) -> Result<u64, StoreError>;

    /// RUNNING jobs by queue.
    async fn running_by_queue(&self) -> Result<BTreeMap<QueueName, u64>, StoreError>;

    /// The queues that claims pass by.
    async fn paused_queues(&self) -> Result<Vec<QueueName>, StoreError>;

    /// The edges that end at a job: what it waits or waited for, in the order of their definition.
    async fn edges_to(&self, id: JobId) -> Result<Vec<Edge>, StoreError>;
}

/// Most lanes that are told of.
pub const LANES_MAX: usize = 1_000;

/// What the claim keeps together: jobs that differ by nothing but their time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingLane {
    /// Whether they are on probation.
    pub probation: bool,
    /// What they need a permit for.
    pub resource: Option<ResourceName>,
    /// Their queue.
    pub queue: QueueName,
    /// Their kind.
    pub kind: Kind,
    /// Their priority.
    pub priority: Priority,
    /// When the first of them became or becomes due.
    pub head: Timestamp,
}
