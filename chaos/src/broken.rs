//! Stores that break a promise on purpose, to see that a run notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::flow::{Edge, Workflow};
use ratchet_core::node::{NodeRecord, NodeRegistration, QueueRecord};
use ratchet_core::page::{JobCursor, JobFilter, Page};
use ratchet_core::recurring::{ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord};
use ratchet_core::signal::Delivery;
use ratchet_core::store::{
    BatchStore, CanceledChildren, ClusterStore, ControlStore, Declared, Delivered, Expired, Fired, JobStore, Orphans,
    Progress, PulseStore, QueryStore, QueueStore, RecurringStore, Replacement, Running, SignalStore, StateCounts,
    SubmitOutcome, SubmitUnit, Submitted, Swept, Transitioned, Turn, TurnStore,
};
use ratchet_core::{
    AttemptRecord, Batch, BusinessKey, Change, ClaimRequest, ClusterCoordinator, Fence, Followed, IdempotencyKey,
    JobId, JobRecord, JobState, NewJob, NodeId, QueueName, Settled, Settlement, SignalKey, SignalRecord, Store,
    StoreError, Timestamp,
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
        self.inner.acquire_lease(name, owner, ttl).await
    }

    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
        self.inner.release_lease(name, owner).await
    }
}

#[async_trait]
impl JobStore for BrokenStore {
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        self.inner.submit(units).await
    }

    async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
        self.inner.find(ids).await
    }

    async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError> {
        self.inner.find_by_business_key(key).await
    }

    async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError> {
        self.inner.find_by_idempotency_key(key).await
    }

    async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        self.inner.delete(id).await
    }
}

#[async_trait]
impl ControlStore for BrokenStore {
    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.inner.cancel(id).await
    }

    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.inner.pause(id).await
    }

    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.inner.resume(id).await
    }

    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.inner.retry(id).await
    }

    async fn release(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.inner.release(id).await
    }

    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
        self.inner.replace(old, new).await
    }
}

#[async_trait]
impl BatchStore for BrokenStore {
    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        self.inner.extend_batch(id, children).await
    }

    async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError> {
        self.inner.seal_batch(id).await
    }

    async fn find_batches(&self, ids: &[JobId]) -> Result<Vec<Batch>, StoreError> {
        self.inner.find_batches(ids).await
    }

    async fn list_batches(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<Batch>, StoreError> {
        self.inner.list_batches(after, limit).await
    }

    async fn canceling_batches(&self, limit: usize) -> Result<Vec<JobId>, StoreError> {
        self.inner.canceling_batches(limit).await
    }

    async fn cancel_children(
        &self,
        id: JobId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<CanceledChildren, StoreError> {
        self.inner.cancel_children(id, after, limit).await
    }
}

#[async_trait]
impl QueueStore for BrokenStore {
    async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.inner.pause_queue(queue).await
    }

    async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.inner.resume_queue(queue).await
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.inner.queues().await
    }
}

#[async_trait]
impl SignalStore for BrokenStore {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError> {
        self.inner.deliver(delivery).await
    }

    async fn expire(&self, limit: usize) -> Result<Expired, StoreError> {
        self.inner.expire(limit).await
    }

    async fn signals(&self, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError> {
        self.inner.signals(ids).await
    }

    async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
        self.inner.sweep_signals(after, limit).await
    }
}

#[async_trait]
impl QueryStore for BrokenStore {
    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord>, StoreError> {
        self.inner.list(filter, after, limit).await
    }

    async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        self.inner.count_by_state().await
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        self.inner.attempts(id).await
    }

    async fn workflow(&self, id: JobId) -> Result<Option<Workflow>, StoreError> {
        self.inner.workflow(id).await
    }

    async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
        self.inner.workflows(after, limit).await
    }

    async fn edges_from(&self, ids: &[JobId]) -> Result<Vec<Edge>, StoreError> {
        self.inner.edges_from(ids).await
    }

    async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
        self.inner.alert_count(id).await
    }
}

#[async_trait]
impl RecurringStore for BrokenStore {
    async fn create_recurring(&self, new: &NewRecurring) -> Result<(), StoreError> {
        self.inner.create_recurring(new).await
    }

    async fn declare_recurring(&self, new: &NewRecurring) -> Result<Declared, StoreError> {
        self.inner.declare_recurring(new).await
    }

    async fn find_recurring(&self, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError> {
        self.inner.find_recurring(ids).await
    }

    async fn list_recurring(
        &self,
        filter: &RecurringFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<RecurringRecord>, StoreError> {
        self.inner.list_recurring(filter, after, limit).await
    }

    async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
        self.inner.next_fire().await
    }

    async fn due_recurring(&self, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError> {
        self.inner.due_recurring(limit).await
    }

    async fn fire_recurring(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let fired = self.inner.fire_recurring(firings).await?;
        self.changed();
        Ok(fired)
    }

    async fn pause_recurring(&self, id: JobId) -> Result<bool, StoreError> {
        self.inner.pause_recurring(id).await
    }

    async fn resume_recurring(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
        self.inner.resume_recurring(id, next_fire).await
    }

    async fn cancel_recurring(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError> {
        self.inner.cancel_recurring(id, reason, idle_for).await
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
