//! What cases are written with: a store, its clock, and short words for what one does with them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::claim::{Boost, ClaimRequest, Pool};
use ratchet_core::node::{NodeInfo, NodeRecord, NodeRegistration, NodeVitals};
use ratchet_core::record::{AttemptTiming, JobRecord};
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::store::{MovableClock, SubmitOutcome, SubmitUnit, Submitted, Turn};
use ratchet_core::{
    AttemptRecord, AttemptStatus, BusinessKey, Change, Claim, Due, ErrorReport, Fence, IdempotencyKey, JobId, JobSpec,
    JobState, JsonText, Kind, NewJob, NodeId, NodeName, QueueName, Settled, Settlement, Store, StoreError,
};
use uuid::Uuid;

/// A fresh, empty store and the hand on its clock.
pub struct Fixture {
    /// The store under test.
    pub store: Arc<dyn Store>,
    /// Moves the time by which the store lives.
    pub clock: Arc<dyn MovableClock + Send + Sync>,
    /// Whatever must outlive the store: a temporary directory, a database of its own.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl Fixture {
    /// A fixture of a store that is its own clock.
    pub fn new<S: Store + MovableClock + 'static>(store: S, guard: impl Any + Send + Sync) -> Self {
        let store = Arc::new(store);
        Self { clock: store.clone(), store, guard: Box::new(guard) }
    }
}

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("store", &self.store).finish_non_exhaustive()
    }
}

/// A case's tools: the store, its clock, and one registered node.
#[derive(Debug)]
pub struct Harness {
    pub(crate) store: Arc<dyn Store>,
    /// A node that is registered and alive, unless the case lets it die.
    pub(crate) node: NodeId,
    fixture: Fixture,
}

/// The kind of jobs that do not matter otherwise.
pub(crate) const KIND: &str = "work";

impl Harness {
    /// Sets up the harness on a fresh store.
    pub async fn new(fixture: Fixture) -> Self {
        let node = registration("harness");
        fixture.store.register(&node).await.expect("a fresh store takes a node");
        Self { store: fixture.store.clone(), node: node.id, fixture }
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.fixture.clock.advance_clock(by);
    }

    /// Moves the store's clock to `at`, however far it has come by itself.
    pub(crate) async fn advance_to(&self, at: Timestamp) {
        let left = at.duration_since(self.now().await);
        self.advance(left.try_into().expect("what happened before took less time than the clock was to advance by"));
    }

    pub(crate) async fn now(&self) -> Timestamp {
        self.store.database_time().await.unwrap()
    }

    // Nodes.

    /// A further registered node.
    pub(crate) async fn another_node(&self) -> NodeId {
        let node = registration("another");
        self.store.register(&node).await.unwrap();
        node.id
    }

    pub(crate) async fn beat(&self, node: NodeId) -> bool {
        self.store.open_heartbeat().await.unwrap().beat(node, NodeVitals::default()).await.unwrap()
    }

    pub(crate) async fn find_node(&self, node: NodeId) -> Option<NodeRecord> {
        self.store.nodes().await.unwrap().into_iter().find(|record| record.id == node)
    }

    // Submitting and reading.

    pub(crate) async fn try_submit(&self, job: NewJob) -> SubmitOutcome {
        self.submit_units(vec![vec![job]]).await.pop().expect("one unit has one outcome")
    }

    pub(crate) async fn submit_units(&self, units: Vec<Vec<NewJob>>) -> Vec<SubmitOutcome> {
        let count = units.len();
        let units: Vec<_> = units.into_iter().map(SubmitUnit::of).collect();
        let outcomes = self.store.submit(&units).await.expect("a submit of good units is no error as a whole");
        assert_eq!(outcomes.len(), count, "one outcome per unit");
        outcomes
    }

    /// Submits a job that must be created.
    pub(crate) async fn submit(&self, job: NewJob) -> JobId {
        let id = job.id;
        let outcome = self.try_submit(job).await.expect("the job is not refused");
        assert_eq!(outcome, [Submitted::Created(id)]);
        id
    }

    /// Submits many jobs, each a unit of its own.
    pub(crate) async fn submit_each(&self, jobs: Vec<NewJob>) -> Vec<JobId> {
        let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
        for (outcome, id) in self.submit_units(jobs.into_iter().map(|job| vec![job]).collect()).await.iter().zip(&ids) {
            assert_eq!(outcome.as_ref().expect("the job is not refused"), &[Submitted::Created(*id)]);
        }
        ids
    }

    /// The job, which must be there.
    pub(crate) async fn job(&self, id: JobId) -> JobRecord {
        self.store.find(&[id]).await.unwrap().pop().expect("the job is there")
    }

    pub(crate) async fn exists(&self, id: JobId) -> bool {
        !self.store.find(&[id]).await.unwrap().is_empty()
    }

    pub(crate) async fn state(&self, id: JobId) -> JobState {
        self.job(id).await.state
    }

    pub(crate) async fn holder(&self, key: &str) -> Option<JobId> {
        self.store.find_by_business_key(&business_key(key)).await.unwrap()
    }

    pub(crate) async fn first_with(&self, key: &str) -> Option<JobId> {
        self.store.find_by_idempotency_key(&idempotency_key(key)).await.unwrap()
    }

    pub(crate) async fn attempts(&self, id: JobId) -> Vec<AttemptRecord> {
        self.store.attempts(id).await.unwrap()
    }

    pub(crate) async fn alerts(&self, id: JobId) -> u64 {
        self.store.alert_count(id).await.unwrap()
    }

    // Claiming.

    /// Room for a hundred jobs of [`KIND`] in the default queue.
    pub(crate) fn request(&self) -> ClaimRequest {
        request(self.node, vec![pool("default", &[KIND])])
    }

    pub(crate) async fn claim(&self, request: &ClaimRequest) -> Vec<Claim> {
        self.turn(&[], Some(request)).await.claimed
    }

    pub(crate) async fn claim_all(&self) -> Vec<Claim> {
        self.claim(&self.request()).await
    }

    /// Claims the next job, which must be there.
    pub(crate) async fn claim_one(&self) -> Claim {
        self.claim_one_as(self.node).await
    }

    pub(crate) async fn claim_one_as(&self, node: NodeId) -> Claim {
        let mut claimed = self.claim(&ClaimRequest { limit: 1, node, ..self.request() }).await;
        assert_eq!(claimed.len(), 1, "there is a job to claim");
        claimed.remove(0)
    }

    /// Submits a job and claims it at once; nothing else may be claimable.
    pub(crate) async fn running(&self, job: NewJob) -> Claim {
        let id = self.submit(job).await;
        let claim = self.claim_one().await;
        assert_eq!(claim.job.id, id, "nothing else is claimable");
        claim
    }

    // Settling.

    pub(crate) async fn turn(&self, settlements: &[Settlement], claim: Option<&ClaimRequest>) -> Turn {
        let turn = self.store.settle_and_claim(settlements, claim).await.expect("the turn is no error");
        assert_eq!(turn.settled.len(), settlements.len(), "one answer per settlement");
        turn
    }

    pub(crate) async fn settle(&self, settlement: Settlement) -> Settled {
        self.turn(&[settlement], None).await.settled[0]
    }

    pub(crate) async fn succeed(&self, claim: &Claim) {
        assert_eq!(self.settle(success(claim)).await, Settled::Applied);
    }

    pub(crate) async fn fail(&self, claim: &Claim, text: &str) {
        assert_eq!(self.settle(failure(claim, text)).await, Settled::Applied);
    }

    pub(crate) async fn reschedule(&self, claim: &Claim, delay: Duration) {
        assert_eq!(self.settle(another_try(claim, delay)).await, Settled::Applied);
    }

    pub(crate) async fn defer(&self, claim: &Claim, delay: Duration) {
        assert_eq!(self.settle(deferral(claim, delay)).await, Settled::Applied);
    }

    pub(crate) async fn rescue(&self, claim: &Claim) {
        assert_eq!(self.settle(rescue(claim)).await, Settled::Applied);
    }

    /// A job that is FAILED with `text` as its error; nothing else may be claimable.
    pub(crate) async fn failed(&self, job: NewJob, text: &str) -> JobId {
        let claim = self.running(job).await;
        self.fail(&claim, text).await;
        claim.job.id
    }
}

/// A minute, the unit of time in cases: what a slow database adds never matters.
pub(crate) const fn mins(count: u64) -> Duration {
    Duration::from_mins(count)
}

/// A new id; ids sort in the order in which they were made.
pub(crate) fn new_id() -> JobId {
    new_id_from(fastrand::u64(..))
}

/// A new id whose second half is `random`.
pub(crate) fn new_id_from(random: u64) -> JobId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let count = NEXT.fetch_add(1, Ordering::SeqCst);
    // An hour before the clock of a `MemoryStore::manual` begins: no job is created in the future of its store.
    let ms = 1_767_222_000_000 + count / 4_096;
    let high = (ms << 16) | 0x7000 | (count % 4_096);
    let low = (random & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    JobId(Uuid::from_u64_pair(high, low))
}

pub(crate) fn json(value: &serde_json::Value) -> JsonText {
    JsonText::encode("value", value, usize::MAX).expect("a JSON value is JSON")
}

pub(crate) fn spec(kind: &str) -> JobSpec {
    JobSpec::new(Kind::new(kind).unwrap(), JsonText::null())
}

/// A job of `kind` in the default queue, due at once.
pub(crate) fn new_job(kind: &str) -> NewJob {
    NewJob::new(new_id(), spec(kind))
}

/// A job that does not matter otherwise.
pub(crate) fn work() -> NewJob {
    new_job(KIND)
}

pub(crate) fn works(count: usize) -> Vec<NewJob> {
    (0..count).map(|_| work()).collect()
}

pub(crate) fn work_after(delay: Duration) -> NewJob {
    NewJob { due: Due::After(delay), ..work() }
}

pub(crate) fn work_with_key(key: &str) -> NewJob {
    NewJob { business_key: Some(business_key(key)), ..work() }
}

pub(crate) fn work_once(key: &str) -> NewJob {
    NewJob { idempotency_key: Some(idempotency_key(key)), ..work() }
}

pub(crate) fn business_key(key: &str) -> BusinessKey {
    BusinessKey::new(key).unwrap()
}

pub(crate) fn idempotency_key(key: &str) -> IdempotencyKey {
    IdempotencyKey::new(key).unwrap()
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(crate) fn registration(name: &str) -> NodeRegistration {
    let info = NodeInfo { version: "1".to_owned(), kinds: vec![Kind::new(KIND).unwrap()], ..NodeInfo::default() };
    NodeRegistration { id: NodeId(Uuid::new_v4()), name: NodeName::new(name).unwrap(), info }
}

pub(crate) fn pool(queue_name: &str, kinds: &[&str]) -> Pool {
    Pool { queue: queue(queue_name), kinds: kinds.iter().map(|kind| Kind::new(kind).unwrap()).collect(), free: 100 }
}

pub(crate) fn request(node: NodeId, pools: Vec<Pool>) -> ClaimRequest {
    ClaimRequest { node, pools, limit: 100, probation: true, boost: Boost::default() }
}

pub(crate) fn ids(claims: &[Claim]) -> Vec<JobId> {
    claims.iter().map(|claim| claim.job.id).collect()
}

// Settlements as `decide` would make them.

/// That an attempt succeeded without a result.
pub fn success(claim: &Claim) -> Settlement {
    success_with(claim, None)
}

pub(crate) fn success_with(claim: &Claim, result: Option<JsonText>) -> Settlement {
    settlement(claim, Change::Succeed { attempts: claim.job.attempts + 1, result }, AttemptStatus::Succeeded, None)
}

pub(crate) fn failure(claim: &Claim, text: &str) -> Settlement {
    let error = ErrorReport::new("Broken", text);
    let change = Change::Fail {
        attempts: claim.job.attempts + 1,
        error: error.clone(),
        reason: DeadLetterReason::RetriesExhausted,
    };
    settlement(claim, change, AttemptStatus::Failed, Some(&error))
}

pub(crate) fn another_try(claim: &Claim, delay: Duration) -> Settlement {
    let error = ErrorReport::new("Broken", "not yet");
    let change = Change::Reschedule { delay, attempts: claim.job.attempts + 1, error: error.clone() };
    settlement(claim, change, AttemptStatus::Failed, Some(&error))
}

pub(crate) fn deferral(claim: &Claim, delay: Duration) -> Settlement {
    settlement(claim, Change::Defer { delay }, AttemptStatus::Deferred, None)
}

pub(crate) fn rescue(claim: &Claim) -> Settlement {
    let error = ErrorReport::new("Crashed", "its node died");
    let change = Change::Rescue { crash_count: claim.job.crash_count + 1 };
    settlement(claim, change, AttemptStatus::Crashed, Some(&error))
}

fn settlement(claim: &Claim, change: Change, status: AttemptStatus, error: Option<&ErrorReport>) -> Settlement {
    let started_at = claim.job.picked_at.expect("a claimed job knows since when it runs");
    let duration = Duration::from_millis(1_500);
    let attempt = AttemptRecord {
        job_id: claim.job.id,
        version: claim.fence.version,
        attempt: claim.job.attempts + 1,
        node: claim.fence.node,
        status,
        timing: AttemptTiming {
            started_at,
            ended_at: ratchet_core::clock::later(started_at, duration),
            duration,
            queue_wait: Duration::from_millis(250),
        },
        error_class: error.map(|error| error.class().to_owned()),
        error: error.map(|error| error.text().to_owned()),
    };
    let ends_permit = claim.job.spec.resource.is_some();
    Settlement { attempt: Some(attempt), ends_permit, ..Settlement::of(claim.fence, change) }
}

/// The same settlement by another right.
pub(crate) fn fenced(settlement: Settlement, fence: Fence) -> Settlement {
    Settlement { fence, ..settlement }
}

// What is asserted often.

/// Asserts that a call was refused with this kind of error.
#[track_caller]
pub(crate) fn assert_refused<T: fmt::Debug>(result: Result<T, StoreError>, kind: &ratchet_core::ErrorKind) {
    match result {
        Ok(value) => panic!("expected {kind}, got {value:?}"),
        Err(error) => assert_eq!(error.kind(), kind, "{error}"),
    }
}

/// Asserts that two times are the same but for what a slow database adds.
#[track_caller]
pub(crate) fn assert_about(actual: Timestamp, expected: Timestamp) {
    let apart = actual.duration_since(expected).abs();
    assert!(apart.as_secs() < 30, "{actual} is not about {expected}");
}
