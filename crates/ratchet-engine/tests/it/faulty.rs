//! A store that fails when it is told to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::claim::ClaimRequest;
use ratchet_core::flow::{Edge, Workflow};
use ratchet_core::node::{NodeRecord, NodeRegistration, NodeVitals, QueueRecord};
use ratchet_core::page::{JobCursor, JobFilter, ListCursor, Page};
use ratchet_core::recurring::{ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord};
use ratchet_core::store::*;
use ratchet_core::store::{Declared, Fired, RecurringStore};
use ratchet_core::*;

/// What goes wrong in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The turn is committed, but the reply is lost.
    LostReply,
    /// The database cannot be reached.
    Down,
    /// The database refuses it, whatever it holds.
    Refused,
}

/// Whether a turn is to go wrong.
type Plan = Box<dyn FnMut(&[Settlement], Option<&ClaimRequest>) -> Option<Fault> + Send>;

/// The in-memory store with faults.
#[derive(Clone)]
pub(crate) struct Faulty {
    pub(crate) inner: MemoryStore,
    plan: Arc<Mutex<Plan>>,
    /// Settlements that hold this text are refused for good.
    poison: Arc<Mutex<Option<String>>>,
    dead_heart: Arc<Mutex<bool>>,
    lose_a_claim: Arc<AtomicBool>,
    pub(crate) slow: Slow,
    /// So many chunks of children are stored, but the replies are lost.
    pub(crate) lost_chunks: Arc<AtomicUsize>,
    /// Calls that panic.
    pub(crate) panics: Panics,
    /// Calls that fail.
    pub(crate) failures: Failures,
    /// How many times a reconcile was asked for.
    pub(crate) reconciles: Arc<tokio::sync::watch::Sender<usize>>,
    /// A batch whose children cannot be cancelled.
    pub(crate) broken_batch: Arc<Mutex<Option<JobId>>>,
    /// What the store offers to carry hints.
    pub(crate) coordinator: Option<Arc<dyn ClusterCoordinator>>,
    /// Submits are written only after this has a permit for each.
    pub(crate) submit_gate: Option<Arc<tokio::sync::Semaphore>>,
    /// Submits that begin while this is set never return.
    pub(crate) hold_submits: Arc<AtomicBool>,
    pub(crate) submit_held: Arc<tokio::sync::Notify>,
    /// Ended jobs of this state cannot be archived.
    pub(crate) unarchivable: Arc<Mutex<Option<JobState>>>,
    /// So many pages of dead letters hold none, and have a next one.
    pub(crate) letter_pages: Arc<AtomicUsize>,
    /// How many times orders about breakers can still be read.
    pub(crate) order_reads: Arc<AtomicUsize>,
    /// How many times the store still archives; then it never returns.
    pub(crate) archives: Arc<AtomicUsize>,
}

impl std::fmt::Debug for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Faulty")
    }
}

impl Faulty {
    pub(crate) fn new(inner: MemoryStore) -> Self {
        Self {
            inner,
            plan: Arc::new(Mutex::new(Box::new(|_, _| None))),
            poison: Arc::default(),
            dead_heart: Arc::default(),
            lost_chunks: Arc::default(),
            panics: Panics::default(),
            failures: Failures::default(),
            reconciles: Arc::default(),
            broken_batch: Arc::default(),
            lose_a_claim: Arc::default(),
            slow: Slow::default(),
            coordinator: None,
            submit_gate: None,
            hold_submits: Arc::default(),
            submit_held: Arc::default(),
            unarchivable: Arc::default(),
            letter_pages: Arc::default(),
            order_reads: Arc::new(AtomicUsize::new(usize::MAX)),
            archives: Arc::new(AtomicUsize::new(usize::MAX)),
        }
    }

    pub(crate) fn plan(
        &self,
        plan: impl FnMut(&[Settlement], Option<&ClaimRequest>) -> Option<Fault> + Send + 'static,
    ) {
        *self.plan.lock().unwrap() = Box::new(plan);
    }

    /// The reply to the next claim that finds a job is lost.
    pub(crate) fn lose_a_claim(&self) {
        self.lose_a_claim.store(true, Ordering::SeqCst);
    }

    pub(crate) fn poison(&self, text: &str) {
        *self.poison.lock().unwrap() = Some(text.to_owned());
    }

    /// Heartbeats fail from now on, or work again.
    pub(crate) fn break_heart(&self, fail: bool) {
        *self.dead_heart.lock().unwrap() = fail;
    }
}

/// Names of calls that panic the next time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panics(Arc<Mutex<BTreeSet<&'static str>>>);

impl Panics {
    pub(crate) fn once(&self, calls: &[&'static str]) {
        self.0.lock().unwrap().extend(calls);
    }

    pub(crate) fn are_over(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }

    fn look(&self, call: &str) {
        let panics = self.0.lock().unwrap().remove(call);
        assert!(!panics, "the test lets {call} panic");
    }
}

/// Names of calls that find no database.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<BTreeSet<&'static str>>>);

impl Failures {
    pub(crate) fn of(&self, calls: &[&'static str]) {
        self.0.lock().unwrap().extend(calls);
    }

    fn look(&self, call: &str) -> Result<(), StoreError> {
        if self.0.lock().unwrap().contains(call) { Err(down()) } else { Ok(()) }
    }
}

fn down() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "testing", "the test took the database away")
}

/// Whether what a settlement changes holds this text.
pub(crate) fn holds(settlement: &Settlement, text: &str) -> bool {
    format!("{:?}", settlement.change).contains(text)
}

#[async_trait]
impl TurnStore for Faulty {
    async fn turn(&self, settlements: &[Settlement], claim: Option<&ClaimRequest>) -> Result<Turn, StoreError> {
        let fault = (self.plan.lock().unwrap())(settlements, claim);
        if fault == Some(Fault::Down) {
            // Not even one that is down answers at once.
            tokio::task::yield_now().await;
            return Err(down());
        }
        let poison = self.poison.lock().unwrap().clone();
        let poisoned = poison.is_some_and(|poison| settlements.iter().any(|s| holds(s, &poison)));
        if poisoned || fault == Some(Fault::Refused) {
            return Err(StoreError::new(ErrorKind::Invalid, "testing", "the test refuses this settlement"));
        }
        let turn = self.inner.turn(settlements, claim).await?;
        let lost = fault == Some(Fault::LostReply)
            || (!turn.claimed.is_empty() && self.lose_a_claim.swap(false, Ordering::SeqCst));
        if lost { Err(down()) } else { Ok(turn) }
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        self.inner.next_due(request).await
    }
}

struct FaultyPulse {
    inner: Box<dyn PulseStore>,
    dead: Arc<Mutex<bool>>,
    slow: Slow,
    panics: Panics,
}

/// How long questions take that are asked again and again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slow {
    pub(crate) beat: Duration,
    pub(crate) time: Duration,
    pub(crate) register: Duration,
    pub(crate) reconcile: Duration,
    pub(crate) beats: Arc<AtomicUsize>,
}

#[async_trait]
impl PulseStore for FaultyPulse {
    async fn beat(&mut self, node: NodeId, vitals: NodeVitals) -> Result<bool, StoreError> {
        tokio::time::sleep(self.slow.beat).await;
        self.slow.beats.fetch_add(1, Ordering::SeqCst);
        self.panics.look("beat");
        if *self.dead.lock().unwrap() { Err(down()) } else { self.inner.beat(node, vitals).await }
    }
    async fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        let now = self.inner.database_time().await;
        tokio::time::sleep(self.slow.time).await;
        if *self.dead.lock().unwrap() { Err(down()) } else { now }
    }
    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError> {
        tokio::time::sleep(self.slow.register).await;
        if *self.dead.lock().unwrap() { Err(down()) } else { self.inner.register(node).await }
    }
}

macro_rules! delegated {
    ($trait:ident { $(fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)* }) => {
        #[async_trait]
        impl $trait for Faulty {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$out, StoreError> {
                self.panics.look(stringify!($name));
                self.failures.look(stringify!($name))?;
                self.inner.$name($($arg),*).await
            })*
        }
    };
}

#[async_trait]
impl JobStore for Faulty {
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        if self.hold_submits.load(Ordering::SeqCst) {
            self.submit_held.notify_one();
            std::future::pending::<()>().await;
        }
        if let Some(gate) = &self.submit_gate {
            self.submit_held.notify_one();
            gate.acquire().await.unwrap().forget();
            // A database is never as quick as to answer at once.
            tokio::task::yield_now().await;
        }
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
    async fn keep(&self, id: JobId) -> Result<(), StoreError> {
        self.inner.keep(id).await
    }
}

delegated!(ControlStore {
    fn cancel(id: JobId) -> Option<Transitioned>;
    fn pause(id: JobId) -> Option<Transitioned>;
    fn resume(id: JobId) -> Option<Transitioned>;
    fn retry(id: JobId) -> Option<Transitioned>;
    fn release(id: JobId) -> Option<Transitioned>;
    fn replace(old: JobId, new: &NewJob) -> Replacement;
});
#[async_trait]
impl BatchStore for Faulty {
    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let stored = self.inner.extend_batch(id, children).await;
        let lost = self.lost_chunks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if lost.is_ok() { Err(down()) } else { stored }
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
        self.panics.look("canceling_batches");
        self.inner.canceling_batches(limit).await
    }
    async fn cancel_children(
        &self,
        id: JobId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<CanceledChildren, StoreError> {
        if *self.broken_batch.lock().unwrap() == Some(id) {
            return Err(StoreError::new(ErrorKind::Invalid, "testing", "the test refuses this batch"));
        }
        self.inner.cancel_children(id, after, limit).await
    }
}

delegated!(QueueStore {
    fn pause_queue(queue: &QueueName) -> bool;
    fn resume_queue(queue: &QueueName) -> bool;
    fn queues() -> Vec<QueueRecord>;
});
delegated!(SignalStore {
    fn deliver(delivery: &ratchet_core::signal::Delivery) -> Delivered;
    fn expire(limit: usize) -> Expired;
    fn signals(ids: &[JobId]) -> Vec<SignalRecord>;
    fn sweep_signals(after: Option<&SignalKey>, limit: usize) -> Swept;
});
#[async_trait]
impl ArchiveStore for Faulty {
    async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError> {
        let left = self.archives.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() {
            std::future::pending::<()>().await;
        }
        if *self.unarchivable.lock().unwrap() == Some(request.state) {
            return Err(StoreError::new(ErrorKind::Invalid, "testing", "the test refuses to archive these"));
        }
        self.inner.archive(request).await
    }
    async fn purge_archive(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        self.inner.purge_archive(age, limit).await
    }
    async fn purge_schedules(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        self.inner.purge_schedules(age, limit).await
    }
}
#[async_trait]
impl DeadLetterStore for Faulty {
    async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError> {
        if self.letter_pages.load(Ordering::SeqCst) > 0 {
            self.letter_pages.fetch_sub(1, Ordering::SeqCst);
            return Ok(Page { items: Vec::new(), next: Some(JobCursor(JobId(uuid::Uuid::nil()))) });
        }
        self.inner.dead_letters(filter, after, limit).await
    }
    async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
        self.inner.retry_all(filter, limit).await
    }
}
delegated!(JobLogStore {
    fn append_log(lines: Arc<[LogLine]>) -> ();
    fn read_log(id: JobId, filter: &LogFilter, after: Option<LogPlace>, limit: usize) -> LogPage;
    fn purge_log(request: &PurgeLog) -> PurgedLog;
});
delegated!(QueryStore {
    fn list(filter: &JobFilter, after: Option<ListCursor>, limit: usize) -> Page<JobRecord, ListCursor>;
    fn count(filter: &JobFilter, by: &CountBy) -> Counted;
    fn count_by_state() -> StateCounts;
    fn count_by_state_of(principal: &Principal) -> StateCounts;
    fn attempts(id: JobId) -> Vec<AttemptRecord>;
    fn last_attempts(id: JobId, before: Option<u64>, limit: usize) -> LastAttempts;
    fn workflow(id: JobId) -> Option<Workflow>;
    fn workflows(after: Option<JobCursor>, limit: usize) -> Page<JobId>;
    fn edges_from(ids: &[JobId]) -> Vec<Edge>;
    fn alert_count(id: JobId) -> u64;
});

delegated!(RecurringStore {
    fn create_recurring(new: &NewRecurring) -> ();
    fn declare_recurring(new: &NewRecurring) -> Declared;
    fn find_recurring(ids: &[JobId]) -> Vec<RecurringRecord>;
    fn list_recurring(filter: &RecurringFilter, after: Option<JobCursor>, limit: usize) -> Page<RecurringRecord>;
    fn next_fire() -> Option<Duration>;
    fn due_recurring(limit: usize) -> (Timestamp, Vec<RecurringRecord>);
    fn fire_recurring(firings: &[Firing]) -> Vec<Fired>;
    fn pause_recurring(id: JobId) -> bool;
    fn resume_recurring(id: JobId, next_fire: Option<Timestamp>) -> bool;
    fn cancel_recurring(id: JobId, reason: ArchiveReason, idle_for: Option<Duration>) -> bool;
});

delegated!(InsightStore {
    fn waiting_lanes() -> Vec<WaitingLane>;
    fn count_waiting(ranges: &[insight::LaneRange], most: u64) -> Vec<u64>;
    fn recent_ends(state: JobState, limit: usize) -> Vec<insight::RecentEnd>;
    fn count_ended(state: JobState, most: u64) -> u64;
    fn running_by_queue() -> std::collections::BTreeMap<QueueName, u64>;
    fn paused_queues() -> Vec<QueueName>;
    fn edges_to(id: JobId) -> Vec<Edge>;
});

delegated!(ResourceStore {
    fn declare_resource(limit: &ResourceLimit) -> ();
    fn set_resource(limit: &ResourceLimit) -> ();
    fn remove_resource(name: &ResourceName) -> bool;
    fn resources() -> Vec<ResourceRecord>;
    fn permits_of(node: NodeId) -> Vec<Fence>;
    fn release_permits(attempts: &[Fence]) -> ();
});

#[async_trait]
impl BreakerStore for Faulty {
    async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.inner.open_breaker(service).await
    }
    async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.inner.reset_breaker(service).await
    }
    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError> {
        self.panics.look("breaker_orders");
        let left = self.order_reads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { self.inner.breaker_orders().await } else { Err(down()) }
    }
}

#[async_trait]
impl ClusterStore for Faulty {
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
        let inner = self.inner.open_pulse().await?;
        Ok(Box::new(FaultyPulse {
            inner,
            dead: self.dead_heart.clone(),
            slow: self.slow.clone(),
            panics: self.panics.clone(),
        }))
    }
    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.inner.nodes().await
    }
    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
        self.reconciles.send_modify(|count| *count += 1);
        if !self.slow.reconcile.is_zero() {
            tokio::time::sleep(self.slow.reconcile).await;
        }
        self.failures.look("reconcile")?;
        self.inner.reconcile(node, progress).await
    }
    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError> {
        self.panics.look("orphans");
        self.inner.orphans(observer, grace, limit).await
    }
    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
        self.inner.acquire_lease(name, owner, ttl).await
    }
    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
        self.inner.release_lease(name, owner).await
    }
}

impl Store for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        self.coordinator.clone()
    }
}
