//! A store that fails when it is told to.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::node::{NodeRegistration, NodeVitals};
use ratchet_core::page::{JobCursor, JobFilter, Page};
use ratchet_core::store::{
    ArchiveRequest, Archived, Call, CanceledChildren, HeartbeatStore, Progress, Running, StoreDecorator, SubmitOutcome,
    SubmitUnit, Submitted, Turn,
};
use ratchet_core::{
    BreakerOrder, ClaimRequest, ClusterCoordinator, DeadLetter, ErrorKind, JobId, JobState, MemoryStore, NewJob,
    NodeId, Settlement, Store, StoreError, Timestamp,
};

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
    /// A batch whose children cannot be canceled.
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
    pub(crate) dead_letter_pages: Arc<AtomicUsize>,
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
            dead_letter_pages: Arc::default(),
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

impl StoreDecorator for Faulty {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    async fn around<T: Send>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.panics.look(call.operation);
        self.failures.look(call.operation)?;
        answer.await
    }

    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        self.coordinator.clone()
    }

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
        self.inner().submit(units).await
    }

    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError> {
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
        let turn = self.inner().settle_and_claim(settlements, claim).await?;
        let lost = fault == Some(Fault::LostReply)
            || (!turn.claimed.is_empty() && self.lose_a_claim.swap(false, Ordering::SeqCst));
        if lost { Err(down()) } else { Ok(turn) }
    }

    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let stored = self.inner().extend_batch(id, children).await;
        let lost = self.lost_chunks.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if lost.is_ok() { Err(down()) } else { stored }
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
        self.inner().cancel_children(id, after, limit).await
    }

    async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError> {
        let left = self.archives.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() {
            std::future::pending::<()>().await;
        }
        if *self.unarchivable.lock().unwrap() == Some(request.state) {
            return Err(StoreError::new(ErrorKind::Invalid, "testing", "the test refuses to archive these"));
        }
        self.inner().archive(request).await
    }

    async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError> {
        if self.dead_letter_pages.load(Ordering::SeqCst) > 0 {
            self.dead_letter_pages.fetch_sub(1, Ordering::SeqCst);
            return Ok(Page { items: Vec::new(), next: Some(JobCursor(JobId(uuid::Uuid::nil()))) });
        }
        self.inner().dead_letters(filter, after, limit).await
    }

    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError> {
        self.panics.look("breaker_orders");
        let left = self.order_reads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { self.inner().breaker_orders().await } else { Err(down()) }
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError> {
        let inner = self.inner().open_heartbeat().await?;
        Ok(Box::new(FaultyHeartbeat {
            inner,
            dead: self.dead_heart.clone(),
            slow: self.slow.clone(),
            panics: self.panics.clone(),
        }))
    }

    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
        self.reconciles.send_modify(|count| *count += 1);
        if !self.slow.reconcile.is_zero() {
            tokio::time::sleep(self.slow.reconcile).await;
        }
        self.failures.look("reconcile")?;
        self.inner().reconcile(node, progress).await
    }
}

struct FaultyHeartbeat {
    inner: Box<dyn HeartbeatStore>,
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
impl HeartbeatStore for FaultyHeartbeat {
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
