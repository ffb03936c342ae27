use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::claim::Claim;
use crate::error::StoreError;
use crate::id::{JobId, NodeId};
use crate::node::{NodeRecord, NodeRegistration, NodeVitals};

/// Nodes and leases. All times are the database's.
#[async_trait]
pub trait ClusterStore: Send + Sync {
    /// Returns the database's time.
    async fn database_time(&self) -> Result<Timestamp, StoreError>;

    /// Registers a node as alive from now.
    async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError>;

    /// Removes a node that stops in order. RUNNING jobs that it leaves are orphans at once.
    async fn deregister(&self, node: NodeId) -> Result<(), StoreError>;

    /// Opens a connection for heartbeats alone, on the thread and runtime that will use it.
    async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError>;

    /// Returns all nodes, the most recently heard of first.
    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError>;

    /// Writes the progress of running attempts and returns what `node` runs according to the store, in one call.
    ///
    /// Progress whose fence no longer matches is dropped. Progress never changes `version`.
    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError>;

    /// Declares dead every node that has not been heard of for `grace`, removes dead nodes without RUNNING jobs, and
    /// returns up to `limit` orphans: jobs RUNNING since before the grace whose incarnation is not alive. Jobs of a node
    /// that is not registered are orphans at once.
    ///
    /// `observer` must be alive itself, else [`Conflict`](crate::ErrorKind::Conflict); it is never among the dead. Reading orphans
    /// changes no job: they are settled with their fence like any attempt, so that one of several rescuers wins.
    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError>;

    /// Takes the lease `name` for `ttl`, or renews it if `owner` has it. Returns `false` if another node has it.
    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError>;

    /// Gives the lease up, if `owner` still has it.
    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError>;
}

/// A node's heartbeat, on a connection of its own.
#[async_trait]
pub trait HeartbeatStore: Send {
    /// Records that the node lives. Returns `false` if it is not registered or was declared dead.
    async fn beat(&mut self, node: NodeId, vitals: NodeVitals) -> Result<bool, StoreError>;

    /// Returns the database's time, read on this connection: only the round trip lies between.
    async fn database_time(&mut self) -> Result<Timestamp, StoreError>;

    /// Registers a node: an incarnation that was declared dead continues as a new one.
    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError>;
}

/// The progress of a running attempt.
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

/// The result of a scan for orphans.
#[derive(Debug, Default)]
pub struct Orphans {
    /// The nodes that this scan declared dead.
    pub declared_dead: Vec<NodeId>,
    /// The jobs to rescue, with the dead owner's fence.
    pub jobs: Vec<Claim>,
}
