use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::claim::Claim;
use crate::error::StoreError;
use crate::id::{JobId, NodeId};
use crate::node::{NodeRecord, NodeRegistration, NodeVitals};

/// What nodes need to live together. All times are the database's.
#[async_trait]
pub trait ClusterStore: Send + Sync {
    /// The database's time.
    async fn database_time(&self) -> Result<Timestamp, StoreError>;

    /// Enters a node, alive from now.
    async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError>;

    /// Removes a node that ends well. Its RUNNING jobs, if any are left, become orphans at once.
    async fn deregister(&self, node: NodeId) -> Result<(), StoreError>;

    /// A connection for heartbeats alone, made on the thread and runtime that will use it.
    async fn open_pulse(&self) -> Result<Box<dyn PulseStore>, StoreError>;

    /// All nodes, the most recently heard of first.
    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError>;

    /// Writes the progress of running attempts and reads what `node` runs according to the store, in one call.
    ///
    /// Progress whose fence no longer matches is dropped; `version` never changes by it.
    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError>;

    /// Declares dead every node that has not been heard of for `grace`, removes dead nodes without RUNNING jobs, and
    /// returns up to `limit` orphans: jobs RUNNING since before the grace whose incarnation is not alive. Jobs of a node
    /// that is no longer registered are orphans at once.
    ///
    /// `observer` must be alive itself, else [`Conflict`](crate::ErrorKind::Conflict); it is never among the dead. Reading orphans changes no job: they are settled
    /// with their fence like any attempt, so that of several rescuers one wins.
    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError>;

    /// Takes the lease `name` for `ttl`, or renews it if `owner` holds it; `false` if another node does.
    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError>;

    /// Gives the lease up, if `owner` still holds it.
    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError>;
}

/// A node's heartbeat, on a connection of its own.
#[async_trait]
pub trait PulseStore: Send {
    /// Says that the node lives; `false` if it is not registered or was declared dead.
    async fn beat(&mut self, node: NodeId, vitals: NodeVitals) -> Result<bool, StoreError>;

    /// The database's time, read on this connection, so that nothing but the way there and back lies between.
    async fn database_time(&mut self) -> Result<Timestamp, StoreError>;

    /// Enters a node: an incarnation that was declared dead goes on as a new one.
    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError>;
}

/// How far a running attempt is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The job.
    pub job_id: JobId,
    /// The version of its claim.
    pub version: u64,
    /// From 0 to 1.
    pub fraction: f64,
}

/// A job that the store says a node is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Running {
    /// The job.
    pub job_id: JobId,
    /// The version of its claim.
    pub version: u64,
}

/// What a look for orphans found.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Nodes that were declared dead just now.
    pub declared_dead: Vec<NodeId>,
    /// Jobs to rescue, with the dead owner's fence.
    pub jobs: Vec<Claim>,
}
