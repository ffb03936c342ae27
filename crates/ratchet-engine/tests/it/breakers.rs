//! Circuit breakers: a service that fails is left alone, at no cost, and tried again by a few.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ratchet_core::breaker::{Admission, BreakerConfig, BreakerState, CallEnd, Ticket};
use ratchet_core::explain::Reason;
use ratchet_core::{DeferReason, JobRecord, JobState};
use ratchet_engine::{
    AlwaysAdmit, CircuitBreakers, Failure, Job, JobContext, JobDefaults, JobEventKind, Ratchet, RatchetBuilder,
    Requirement, ResilienceStrategy, RetryPolicy, RetryVerdict, StartError,
};
use serde::{Deserialize, Serialize};

use crate::support::{Play, Stage, event, eventually, memory, quick};

/// A service that is down or up, and counts who calls it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payments(Arc<PaymentsInner>);

#[derive(Debug, Default)]
struct PaymentsInner {
    up: AtomicBool,
    calls: AtomicUsize,
    slow: AtomicBool,
}

impl Payments {
    /// A service that answers.
    pub(crate) fn up() -> Self {
        let payments = Self::default();
        payments.0.up.store(true, Ordering::SeqCst);
        payments
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.calls.load(Ordering::SeqCst)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Charge;

impl Job for Charge {
    const KIND: &'static str = "charge";
    type Output = ();

    fn defaults() -> JobDefaults {
        JobDefaults::default().service("payments").breaker(BREAKER).max_retries(50).backoff(ratchet_core::Backoff::None)
    }

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<Payments>()]
    }

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        let payments = ctx.state::<Payments>();
        payments.0.calls.fetch_add(1, Ordering::SeqCst);
        if payments.0.slow.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if payments.0.up.load(Ordering::SeqCst) { Ok(()) } else { Err(Failure::new("no answer")) }
    }
}

const BREAKER: BreakerConfig = BreakerConfig::FAST;
const OPEN_FOR: Duration = Duration::from_millis(400);

pub(crate) fn node(payments: &Payments, stage: &Stage) -> RatchetBuilder {
    quick(stage)
        .store(memory())
        .queue("default", 20)
        .job::<Charge>()
        .state(payments.clone())
        .resilience_strategy(breakers())
}

fn breakers() -> CircuitBreakers {
    CircuitBreakers::default().with("payments", BREAKER.open_for(OPEN_FOR))
}

fn state_of(ratchet: &Ratchet, service: &str) -> Option<BreakerState> {
    ratchet.services().into_iter().find(|one| one.service == service).map(|one| one.state)
}

async fn until(ratchet: &Ratchet, state: BreakerState) {
    eventually("the breaker stands so", async || state_of(ratchet, "payments") == Some(state)).await;
}

#[tokio::test]
async fn a_failing_service_is_left_alone_and_tried_by_a_few() {
    let (payments, stage) = (Payments::default(), Stage::default());
    let ratchet = node(&payments, &stage).start().await.unwrap();
    let jobs: Vec<_> = (0..500).map(|_| ratchet.enqueue(Charge)).collect();
    let charges = ratchet.submit_all(jobs).await.unwrap();
    until(&ratchet, BreakerState::Open).await;
    // What had begun may end; then nothing is called and nothing is claimed.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (calls, claimed) = (payments.calls(), ratchet.stats().claimed);
    assert!(calls <= 20 + 3, "{calls} calls by 20 slots before it opened");
    assert!(claimed <= 3 * 20, "{claimed} were claimed by 20 slots, and those that came too late went back");
    let play = ratchet.enqueue(Play::Return("others".into())).submit().await.unwrap();
    assert_eq!(play.result().await.unwrap(), "others", "other services run on");
    assert_eq!(ratchet.stats().claimed, claimed + 1, "waiting jobs are not claimed while it is open");
    assert_eq!(payments.calls(), calls);
    // Still down: it is tried by no more than the trials, then left alone again.
    eventually("the service is tried", async || payments.calls() > calls).await;
    until(&ratchet, BreakerState::Open).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let tried = payments.calls() - calls;
    assert!(tried <= BREAKER.trials, "{tried} calls tried it");
    payments.0.up.store(true, Ordering::SeqCst);
    for charge in &charges {
        charge.result().await.unwrap();
    }
    assert_eq!(state_of(&ratchet, "payments"), Some(BreakerState::Closed));
    let mut attempts = 0;
    for charge in &charges {
        attempts += charge.record().await.unwrap().attempts as usize;
    }
    assert_eq!(attempts, payments.calls(), "an attempt is a call: none was burned by waiting");
}

#[tokio::test]
async fn a_recovered_service_is_tried_by_no_more_than_the_trials_before_it_closes() {
    let (payments, stage) = (Payments::default(), Stage::default());
    let ratchet = node(&payments, &stage).start().await.unwrap();
    let jobs: Vec<_> = (0..100).map(|_| ratchet.enqueue(Charge)).collect();
    ratchet.submit_all(jobs).await.unwrap();
    until(&ratchet, BreakerState::Open).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let calls = payments.calls();
    // Slow, so that many could begin before the first has ended.
    payments.0.slow.store(true, Ordering::SeqCst);
    payments.0.up.store(true, Ordering::SeqCst);
    eventually("the service is tried", async || payments.calls() > calls).await;
    tokio::time::sleep(Duration::from_millis(25)).await;
    let tried = payments.calls() - calls;
    assert!((1..=BREAKER.trials).contains(&tried), "{tried} calls tried it");
    until(&ratchet, BreakerState::Closed).await;
}

/// Lets everything be claimed, but refuses the first jobs that come: as a breaker that opens between claim and start.
struct OpensAfterTheClaim(AtomicUsize);

impl ResilienceStrategy for OpensAfterTheClaim {
    fn admits(&self, _service: &str) -> Admission {
        Admission::All
    }

    fn enter(&self, _service: &str) -> Result<Ticket, Duration> {
        let refuses = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if refuses { Err(Duration::from_millis(20)) } else { Ok(Ticket(0)) }
    }

    fn leave(&self, _service: &str, _ticket: Ticket, _end: CallEnd) {}
}

#[tokio::test]
async fn jobs_that_were_claimed_when_it_opened_go_back_without_an_attempt() {
    let (payments, stage) = (Payments::default(), Stage::default());
    payments.0.up.store(true, Ordering::SeqCst);
    let strategy = OpensAfterTheClaim(AtomicUsize::new(5));
    let ratchet = node(&payments, &stage).resilience_strategy(strategy).start().await.unwrap();
    let mut events = ratchet.events();
    let charge = ratchet.enqueue(Charge).submit().await.unwrap();
    for _ in 0..5 {
        let deferred = event(&mut events, |e| {
            assert!(!matches!(e.what, JobEventKind::Started { .. }), "it has not started");
            matches!(e.what, JobEventKind::Deferred { .. })
        });
        let deferred = deferred.await;
        let JobEventKind::Deferred { reason, delay } = deferred.what else { unreachable!("it was looked for") };
        assert_eq!(reason, DeferReason::BreakerOpen);
        let (least, most) = (Duration::from_millis(20), Duration::from_millis(25));
        assert!((least..=most).contains(&delay), "about as long as was asked for: {delay:?}");
    }
    charge.result().await.unwrap();
    let record = charge.record().await.unwrap();
    assert_eq!((record.attempts, payments.calls()), (1, 1));
    assert_eq!(ratchet.attempts(charge.id()).await.unwrap().len(), 1, "no handler ran, so nothing is recorded");
}

#[tokio::test]
async fn errors_that_lie_in_the_job_do_not_open_it() {
    let (payments, stage) = (Payments::default(), Stage::default());
    let ratchet = node(&payments, &stage).start().await.unwrap();
    for _ in 0..20 {
        let job = ratchet.enqueue(Play::FailForGood).submit().await.unwrap();
        job.result().await.unwrap_err();
    }
    assert_eq!(state_of(&ratchet, "play"), Some(BreakerState::Closed), "the kind is the service, if none is named");
}

/// Has another idea of what is worth a second attempt.
struct NeverAgain;

impl RetryPolicy for NeverAgain {
    fn verdict(&self, _job: &JobRecord, _attempt: u32, _failure: &Failure) -> RetryVerdict {
        RetryVerdict::Refuse
    }
}

#[tokio::test]
async fn errors_that_the_retry_policy_refuses_do_not_open_it() {
    let (payments, stage) = (Payments::default(), Stage::default());
    let ratchet = node(&payments, &stage).retry_policy(NeverAgain).start().await.unwrap();
    for _ in 0..5 {
        let job = ratchet.enqueue(Play::FailTimes(1)).submit().await.unwrap();
        job.result().await.unwrap_err();
    }
    assert_eq!(state_of(&ratchet, "play"), Some(BreakerState::Closed));
}

#[tokio::test]
async fn by_hand_it_stays_open_until_it_is_reset() {
    let (payments, stage) = (Payments::default(), Stage::default());
    payments.0.up.store(true, Ordering::SeqCst);
    let ratchet = node(&payments, &stage).start().await.unwrap();
    ratchet.open_breaker_here("payments");
    let charge = ratchet.enqueue(Charge).submit().await.unwrap();
    tokio::time::sleep(OPEN_FOR * 2).await;
    assert_eq!((payments.calls(), charge.record().await.unwrap().state), (0, JobState::Pending));
    let begun = Instant::now();
    ratchet.reset_breaker_here("payments");
    charge.result().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "a reset wakes the node: {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_breaker_that_is_open_on_every_node_is_the_reason_wherever_one_asks() {
    let (payments, stage, store) = (Payments::default(), Stage::default(), memory());
    payments.0.up.store(true, Ordering::SeqCst);
    let client = Ratchet::client(store.clone());
    let one = node(&payments, &stage).store(store.clone()).start().await.unwrap();
    let other = node(&payments, &stage).store(store).start().await.unwrap();
    one.open_breaker_here("payments");
    other.open_breaker_here("payments");
    let charge = client.enqueue(Charge).submit().await.unwrap();
    let breaker = [Reason::Breaker { service: "payments".to_owned(), nodes: 2, until: None }];
    let reasons = async || client.explain(charge.id()).await.unwrap().unwrap().reasons;
    eventually("both nodes have told of it", async || reasons().await == breaker).await;
    assert_eq!(one.explain(charge.id()).await.unwrap().unwrap().reasons, breaker);
    other.reset_breaker_here("payments");
    charge.result().await.unwrap();
    assert_eq!(state_of(&one, "payments"), Some(BreakerState::Open), "the other one ran it");
}

#[tokio::test]
async fn a_node_whose_every_service_is_open_does_not_spin() {
    let (payments, stage) = (Payments::default(), Stage::default());
    let ratchet = node(&payments, &stage).start().await.unwrap();
    ratchet.open_breaker_here("payments");
    ratchet.open_breaker_here("play");
    ratchet.enqueue(Charge).submit().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let turns = ratchet.stats().turns;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let turned = ratchet.stats().turns - turns;
    assert!(turned < 10, "{turned} turns in half a second with nothing to run");
}

#[tokio::test]
async fn without_breakers_everything_runs() {
    let (payments, stage) = (Payments::default(), Stage::default());
    let ratchet = node(&payments, &stage).resilience_strategy(AlwaysAdmit).start().await.unwrap();
    let job = ratchet.enqueue(Charge).max_retries(30).submit().await.unwrap();
    job.result().await.unwrap_err();
    assert_eq!(payments.calls(), 31);
}

/// Another kind of the same service, which asks for another breaker.
#[derive(Debug, Serialize, Deserialize)]
struct Refund;

impl Job for Refund {
    const KIND: &'static str = "refund";
    type Output = ();

    fn defaults() -> JobDefaults {
        JobDefaults::default().service("payments").breaker(BreakerConfig::CRITICAL)
    }

    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

#[tokio::test]
async fn a_service_is_tried_by_whichever_of_its_kinds_waits_wherever_it_does() {
    for queue in ["default", "refunds"] {
        let (payments, stage) = (Payments::default(), Stage::default());
        let ratchet = node(&payments, &stage).job::<Refund>().queue("refunds", 20).start().await.unwrap();
        let charges: Vec<_> = (0..3).map(|_| ratchet.enqueue(Charge).max_retries(0)).collect();
        for charge in ratchet.submit_all(charges).await.unwrap() {
            charge.result().await.unwrap_err();
        }
        until(&ratchet, BreakerState::Open).await;
        // No charge waits: all are dead letters.
        let refund = ratchet.enqueue(Refund).queue(queue).submit().await.unwrap();
        let refunded = tokio::time::timeout(Duration::from_secs(10), refund.result()).await;
        refunded.expect("it is tried by a refund").unwrap();
    }
}

#[tokio::test]
async fn two_breakers_for_one_service_are_refused_unless_the_node_decides() {
    let payments = Payments::default();
    let builder = || Ratchet::builder().store(memory()).job::<Charge>().state(payments.clone());
    let refused = async |builder: RatchetBuilder, advice: &str| {
        let error = builder.start().await.unwrap_err().to_string();
        assert!(error.contains("`breaker` of \"payments\" is given twice, as BreakerConfig {"), "{error}");
        assert!(error.ends_with(advice), "{error}");
    };
    refused(builder().job::<Refund>(), "or decide with CircuitBreakers::with").await;
    let twice = breakers().with("payments", BREAKER);
    refused(builder().resilience_strategy(twice), "keep one").await;
    let decided = breakers().with("payments", BREAKER.open_for(OPEN_FOR));
    builder().job::<Refund>().resilience_strategy(decided).start().await.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_service_that_nobody_calls_is_told_of() {
    let spans = crate::spans::listen();
    let (payments, stage) = (Payments::default(), Stage::default());
    let mistyped = breakers().with("paymnets", BREAKER);
    let ratchet = node(&payments, &stage).resilience_strategy(mistyped).start().await.unwrap();
    let warned = spans.with("warning", "service", "paymnets");
    assert_eq!(
        warned.iter().map(|warning| warning.field("called")).collect::<Vec<_>>(),
        ["payments, play, play.blocking"]
    );
    assert!(spans.with("warning", "service", "payments").is_empty());
    assert!(!ratchet.open_breaker_here("paymnets") && !ratchet.reset_breaker_here("paymnets"));
    assert_eq!(state_of(&ratchet, "paymnets"), None);
    assert!(ratchet.open_breaker_here("payments") && ratchet.reset_breaker_here("payments"));
}

#[tokio::test]
async fn a_breaker_that_cannot_work_is_refused_at_the_start() {
    let (payments, stage) = (Payments::default(), Stage::default());
    let impossible = breakers().with("play", BREAKER.failure_rate(2.0));
    let refused = node(&payments, &stage).resilience_strategy(impossible).start().await;
    let Err(StartError::Invalid(invalid)) = refused else { panic!("it started") };
    assert_eq!(invalid.field(), "breaker.failure_rate");
}
