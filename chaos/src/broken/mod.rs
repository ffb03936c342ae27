//! Stores that break a promise on purpose, to see that a run notices.

mod calls;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::node::{NodeRecord, NodeRegistration};
use ratchet_core::store::{ClusterStore, Orphans, Progress, PulseStore, Running, Turn, TurnStore};
use ratchet_core::{
    Change, ClaimRequest, ClusterCoordinator, Fence, JobState, NodeId, Settled, Settlement, Store, StoreError,
    Timestamp,
};

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Broken {
    /// A result is accepted from whoever brings it.
    Fences,
    /// A job of a dead node is dropped instead of rescued.
    Rescue,
    /// Nodes are declared dead though they live.
    Grace,
    /// A success is reported as written, but is not.
    Settling,
    /// Nothing but the process: see [`BrokenStore::dying_after`].
    Nothing,
}

impl Broken {
    /// Its name as an argument of `chaos-node`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fences => "fences",
            Self::Rescue => "rescue",
            Self::Grace => "grace",
            Self::Settling => "settling",
            Self::Nothing => "nothing",
        }
    }
}

/// A store in which something is broken.
#[derive(Debug)]
pub struct BrokenStore {
    inner: Arc<dyn Store>,
    broken: Broken,
    successes: AtomicU64,
    /// How many calls that change something are still to come before the process dies.
    left: Option<AtomicU64>,
}

/// Of so many successes the first is not written: two nodes with some jobs are sure to meet one.
const LOST_SUCCESS: u64 = 8;

impl BrokenStore {
    /// Breaks a store.
    pub fn new(inner: Arc<dyn Store>, broken: Broken) -> Self {
        Self { inner, broken, successes: AtomicU64::new(0), left: None }
    }

    /// A good store, but the process dies without a word right after so many calls that changed something: before anybody
    /// hears of their answer.
    #[must_use]
    pub fn dying_after(inner: Arc<dyn Store>, calls: u64) -> Self {
        Self { left: Some(AtomicU64::new(calls)), ..Self::new(inner, Broken::Nothing) }
    }

    /// A call has changed something.
    fn changed(&self) {
        if let Some(left) = &self.left
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            std::process::abort();
        }
    }

    /// Gives a stale success the fence that the store asks for.
    async fn with_present_fence(&self, settlement: &Settlement) -> Result<Settlement, StoreError> {
        let mut forged = settlement.clone();
        let found = self.inner.find(&[settlement.fence.job_id]).await?;
        if let (Some(job), Change::Succeed { .. }) = (found.first(), &settlement.change)
            && job.state == JobState::Running
            && let Some(node) = job.picked_by
        {
            forged.fence = Fence { job_id: job.id, version: job.version, node };
            if let Some(attempt) = &mut forged.attempt {
                attempt.version = job.version;
            }
        }
        Ok(forged)
    }

    async fn drop_rescued(&self, settlement: &Settlement) -> Result<(), StoreError> {
        let id = settlement.fence.job_id;
        self.inner.cancel(id).await?;
        self.inner.delete(id).await?;
        Ok(())
    }
}

#[async_trait]
impl TurnStore for BrokenStore {
    async fn turn(&self, settlements: &[Settlement], claim: Option<&ClaimRequest>) -> Result<Turn, StoreError> {
        let mut kept = Vec::new();
        let mut answered_for = Vec::new();
        for settlement in settlements {
            let drops = match (self.broken, &settlement.change) {
                (Broken::Rescue, Change::Rescue { .. }) => {
                    self.drop_rescued(settlement).await?;
                    true
                }
                (Broken::Settling, Change::Succeed { .. }) => {
                    self.successes.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOST_SUCCESS)
                }
                _ => false,
            };
            answered_for.push(drops);
            if !drops {
                kept.push(match self.broken {
                    Broken::Fences => self.with_present_fence(settlement).await?,
                    _ => settlement.clone(),
                });
            }
        }
        let mut turn = self.inner.turn(&kept, claim).await?;
        if !kept.is_empty() || !turn.claimed.is_empty() {
            self.changed();
        }
        let mut settled = turn.settled.into_iter();
        let answer = |dropped: bool| if dropped { Some(Settled::Applied) } else { settled.next() };
        turn.settled = answered_for.into_iter().filter_map(answer).collect();
        Ok(turn)
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        self.inner.next_due(request).await
    }
}

#[async_trait]
impl ClusterStore for BrokenStore {
    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError> {
        let grace = if self.broken == Broken::Grace { Duration::ZERO } else { grace };
        self.inner.orphans(observer, grace, limit).await
    }

    async fn database_time(&self) -> Result<Timestamp, StoreError> {
        self.inner.database_time().await
    }

    async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError> {
        self.inner.register(node).await
    }

    async fn deregister(&self, node: NodeId) -> Result<(), StoreError> {
        self.inner.deregister(node).await
    }

    async fn open_pulse(&self) -> Result<Box<dyn PulseStore>, StoreError> {
        self.inner.open_pulse().await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.inner.nodes().await
    }

    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
        self.inner.reconcile(node, progress).await
    }

    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let acquired = self.inner.acquire_lease(name, owner, ttl).await?;
        if acquired {
            self.changed();
        }
        Ok(acquired)
    }

    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
        self.inner.release_lease(name, owner).await?;
        self.changed();
        Ok(())
    }
}

impl Store for BrokenStore {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        self.inner.coordinator()
    }
}
