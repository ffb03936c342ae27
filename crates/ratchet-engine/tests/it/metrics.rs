//! What is counted and timed, and that a collector can do no harm.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratchet_conformance::coordinator::Bus;
use ratchet_core::store::JobStore as _;
use ratchet_core::{JsonText, Kind, NewJob, Retention, ServiceName};
use ratchet_engine::metrics::{Labels, names};
use ratchet_engine::{
    AllowList, AllowRule, AlwaysAdmit, Client, JobEventKind, JobExt as _, MetricsCollector, Ratchet, Timing,
};

use crate::breakers::{Charge, Payments, node};
use crate::faulty::{Fault, Faulty};
use crate::support::{Ahead, Play, Stage, event, eventually, memory, quick, quick_timing};

/// Keeps what it is told.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<BTreeMap<String, u64>>>, Arc<Mutex<BTreeMap<String, f64>>>);

impl Kept {
    /// What was last told of something that stands at a value.
    fn stands_at(&self, name: &str) -> Option<f64> {
        self.1.lock().unwrap().get(name).copied()
    }

    pub(crate) fn get(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    fn add(&self, name: &str, labels: Labels<'_>, times: u64) {
        *self.0.lock().unwrap().entry(full(name, labels)).or_default() += times;
    }
}

fn full(name: &str, labels: Labels<'_>) -> String {
    let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) }
}

impl MetricsCollector for Kept {
    fn count(&self, name: &'static str, labels: Labels<'_>, times: u64) {
        self.add(name, labels, times);
    }

    fn time(&self, name: &'static str, labels: Labels<'_>, seconds: f64) {
        assert!((0.0..60.0).contains(&seconds), "{name} took {seconds}");
        self.add(name, labels, 1);
    }

    fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64) {
        assert!((0.0..=1e6).contains(&value), "{name} is {value}");
        self.1.lock().unwrap().insert(full(name, labels), value);
    }
}

#[tokio::test]
async fn every_end_of_an_attempt_has_its_figures() {
    let (stage, kept) = (Stage::default(), Kept::default());
    let ratchet = quick(&stage).store(memory()).metrics_collector(kept.clone()).start().await.unwrap();
    for play in [Play::Return("x".into()), Play::FailTimes(1), Play::FailForGood, Play::SnoozeOnce] {
        ratchet.enqueue(play).submit().await.unwrap().wait().await.unwrap();
    }
    let mut events = ratchet.events();
    let late = ratchet.enqueue(Play::UntilCanceled).submit().await.unwrap();
    event(&mut events, |e| matches!(e.what, JobEventKind::Started { .. })).await;
    ratchet.cancel(late.id()).await.unwrap();
    late.wait().await.unwrap();
    // The first heartbeat comes when it is due, however soon the jobs end.
    let beat = "ratchet.store.operation{operation=heartbeat,outcome=ok}";
    eventually("a heartbeat", async || kept.get(beat) >= 1).await;
    ratchet.shutdown().await;
    let table = [
        ("ratchet.jobs.started{kind=play,queue=default}", 7),
        ("ratchet.jobs.completed{kind=play}", 3),
        ("ratchet.jobs.failed{kind=play,class=failed}", 2),
        ("ratchet.jobs.retrying{kind=play}", 1),
        ("ratchet.jobs.dead_lettered{kind=play,reason=do_not_retry}", 1),
        ("ratchet.jobs.deferred{kind=play,reason=snoozed}", 1),
        ("ratchet.jobs.canceled{kind=play}", 1),
        ("ratchet.jobs.duration{kind=play,outcome=SUCCEEDED}", 3),
        ("ratchet.jobs.duration{kind=play,outcome=FAILED}", 2),
        ("ratchet.jobs.wait{kind=play,queue=default}", 6),
        ("ratchet.node.claimed", 7),
    ];
    for (name, value) in table {
        assert_eq!(kept.get(name), value, "{name} of {:#?}", kept.0.lock().unwrap());
    }
    assert!(kept.get(&format!("{}{{outcome=ok}}", names::TURN)) >= 5);
    for operation in ["submit", "settle_and_claim", "reconcile", "heartbeat", "find", "cancel", "waiting_lanes"] {
        let name = format!("ratchet.store.operation{{operation={operation},outcome=ok}}");
        assert!(kept.get(&name) >= 1, "{name} of {:#?}", kept.0.lock().unwrap());
    }
}

#[tokio::test]
async fn a_collector_that_panics_is_called_no_more_and_harms_nobody() {
    struct Broken(Arc<Mutex<usize>>);
    impl MetricsCollector for Broken {
        fn count(&self, _: &'static str, _: Labels<'_>, _: u64) {
            *self.0.lock().unwrap() += 1;
            panic!("a collector gone wrong");
        }
        fn time(&self, _: &'static str, _: Labels<'_>, _: f64) {
            panic!("a collector gone wrong");
        }
        fn gauge(&self, _: &'static str, _: Labels<'_>, _: f64) {
            panic!("a collector gone wrong");
        }
    }
    let (stage, calls) = (Stage::default(), Arc::new(Mutex::new(0)));
    let ratchet = quick(&stage).store(memory()).metrics_collector(Broken(calls.clone())).start().await.unwrap();
    for _ in 0..5 {
        ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap().result().await.unwrap();
    }
    assert!(*calls.lock().unwrap_or_else(std::sync::PoisonError::into_inner) <= 1);
}

#[tokio::test]
async fn a_loop_that_stands_still_shows() {
    let (stage, kept, clock) = (Stage::default(), Kept::default(), Ahead::default());
    let node = quick(&stage).store(memory()).metrics_collector(kept.clone()).clock(Arc::new(clock.clone()));
    let node = node.retention(Retention::keep_everything()).start().await.unwrap();
    eventually("a look at the queues", async || node.stats().last_success.gauges.is_some()).await;
    // The queues are looked at every fifteen seconds of the machine's clock, which is not ahead.
    clock.advance(Duration::from_mins(10));
    let age = |name: &str| kept.stands_at(&format!("{}{{loop={name}}}", names::LOOP_AGE));
    eventually("the one that stands still", async || age("gauges").is_some_and(|age| age >= 600.0)).await;
    for name in ["heartbeat", "rescue", "signals", "breakers"] {
        eventually("those that go on", async || age(name).is_some_and(|age| age < 60.0)).await;
    }
    assert_eq!(age("retention"), None, "this node keeps everything");
    node.shutdown().await;
}

/// Where the breaker of `payments` stands, as the collector was last told.
async fn breaker_is(kept: &Kept, expected: f64) {
    let told = || kept.stands_at("ratchet.breaker.state{service=payments}");
    let stands = async || told().is_some_and(|stands| (stands - expected).abs() < 0.1);
    eventually(&format!("{expected}, which is {:?},", told()), stands).await;
}

const CLOSED: f64 = 0.0;
const HALF_OPEN: f64 = 1.0;
const OPEN: f64 = 2.0;

#[tokio::test]
async fn a_breaker_is_told_as_it_stands_also_when_nobody_calls_its_service() {
    let (payments, stage, kept) = (Payments::default(), Stage::default(), Kept::default());
    let ratchet = node(&payments, &stage).metrics_collector(kept.clone()).start().await.unwrap();
    breaker_is(&kept, CLOSED).await;
    let charges = ratchet.submit_all((0..3).map(|_| ratchet.enqueue(Charge).max_retries(0))).await.unwrap();
    breaker_is(&kept, OPEN).await;
    for charge in charges {
        charge.wait().await.unwrap();
    }
    // Its time is over, and nothing is left that would try the service.
    breaker_is(&kept, HALF_OPEN).await;
    assert!(ratchet.reset_breaker_here("payments"));
    breaker_is(&kept, CLOSED).await;
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_breaker_that_is_held_open_is_told_whatever_the_strategy() {
    let (payments, stage, kept) = (Payments::up(), Stage::default(), Kept::default());
    let ratchet = node(&payments, &stage).metrics_collector(kept.clone()).resilience_strategy(AlwaysAdmit);
    let ratchet = ratchet.start().await.unwrap();
    breaker_is(&kept, CLOSED).await;
    let payments = ServiceName::new("payments").unwrap();
    ratchet.open_breaker(&payments).await.unwrap();
    breaker_is(&kept, OPEN).await;
    ratchet.reset_breaker(&payments).await.unwrap();
    breaker_is(&kept, CLOSED).await;
    ratchet.shutdown().await;
}

#[tokio::test]
async fn failures_are_told_by_how_the_attempt_ended() {
    let (stage, kept) = (Stage::default(), Kept::default());
    let ratchet = quick(&stage).store(memory()).metrics_collector(kept.clone()).start().await.unwrap();
    ratchet.enqueue(Play::Panic).max_retries(0).submit().await.unwrap().wait().await.unwrap();
    let late = ratchet.enqueue(Play::Hang).max_retries(0).timeout(Duration::from_millis(20));
    late.submit().await.unwrap().wait().await.unwrap();
    for class in ["panicked", "timed_out"] {
        assert_eq!(kept.get(&format!("ratchet.jobs.failed{{kind=play,class={class}}}")), 1, "{class}");
    }
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_call_of_the_store_is_timed_however_it_ends() {
    let (store, stage, kept) = (Faulty::new(memory()), Stage::default(), Kept::default());
    let node = quick(&stage).store(store.clone()).metrics_collector(kept.clone());
    let timing = Timing { store_deadline: Duration::from_millis(100), ..quick_timing() };
    let node = node.timing(timing).start().await.unwrap();
    let told = |operation: &str, outcome: &str| {
        kept.get(&format!("ratchet.store.operation{{operation={operation},outcome={outcome}}}"))
    };
    eventually("calls that are answered", async || told("settle_and_claim", "ok") >= 1 && told("archive", "ok") >= 1)
        .await;
    assert_eq!(told("settle_and_claim", "error"), 0);
    store.plan(|_, _| Some(Fault::Down));
    node.enqueue(Play::Return("x".into())).submit().await.unwrap();
    eventually("calls that fail", async || told("settle_and_claim", "error") >= 1).await;
    node.shutdown().await;
    let (stuck, kept) = (Faulty::new(memory()), Kept::default());
    stuck.archives.store(0, std::sync::atomic::Ordering::SeqCst);
    let node = quick(&stage).store(stuck).metrics_collector(kept.clone()).timing(timing);
    let node = node.start().await.unwrap();
    let given_up = "ratchet.store.operation{operation=archive,outcome=given_up}";
    eventually("calls that are given up", async || kept.get(given_up) >= 1).await;
    node.shutdown().await;
}

#[tokio::test]
async fn a_clients_call_may_take_longer_than_the_deadline_of_the_nodes_own() {
    let (mut store, stage, kept) = (Faulty::new(memory()), Stage::default(), Kept::default());
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    store.submit_gate = Some(gate.clone());
    store.archives.store(0, std::sync::atomic::Ordering::SeqCst);
    let node = quick(&stage).store(store.clone()).metrics_collector(kept.clone());
    let timing = Timing { store_deadline: Duration::from_millis(100), ..quick_timing() };
    let node = node.timing(timing).start().await.unwrap();
    let submitted = tokio::spawn(node.enqueue(Play::Return("x".into())).submit());
    store.submit_held.notified().await;
    let given_up = || kept.get("ratchet.store.operation{operation=archive,outcome=given_up}");
    // Of two calls that are given up from now on, the second has begun after the submit.
    let enough = given_up() + 2;
    eventually("calls that are given up", async || given_up() >= enough).await;
    gate.add_permits(1);
    submitted.await.unwrap().unwrap();
    node.shutdown().await;
}

#[tokio::test]
async fn hints_are_told_by_what_became_of_them() {
    let (bus, store, stage, kept) = (Bus::default(), memory(), Stage::default(), Kept::default());
    let node = quick(&stage).store(store.clone()).coordinator(bus.coordinator()).metrics_collector(kept.clone());
    let node = node.start().await.unwrap();
    let client = Client::with_coordinator(store, bus.coordinator());
    client.enqueue(Play::Return("x".into())).submit().await.unwrap().wait().await.unwrap();
    eventually("a hint of another", async || kept.get("ratchet.hints.received{outcome=heard}") == 1).await;
    node.enqueue(Play::Return("x".into())).submit().await.unwrap().wait().await.unwrap();
    eventually("a hint of its own", async || kept.get("ratchet.hints.published{outcome=sent}") >= 1).await;
    node.shutdown().await;
}

#[tokio::test]
async fn what_is_refused_or_cannot_be_read_is_counted() {
    let (store, stage, kept) = (memory(), Stage::default(), Kept::default());
    let policy = AllowList::new([AllowRule::new("plays").kinds(["play"]).queues(["default"])]).unwrap();
    let node = quick(&stage).store(store.clone()).metrics_collector(kept.clone()).job_policy(policy);
    let node = node.start().await.unwrap();
    node.enqueue(Play::Hang).queue("elsewhere").submit().await.unwrap_err();
    let steps = node.enqueue(Play::Hang).then(Play::Hang.with(|step| step.queue("elsewhere")));
    steps.submit().await.unwrap_err();
    assert_eq!(kept.get("ratchet.submits.refused{reason=policy}"), 2);
    // As of another version of the application.
    let spec = ratchet_core::JobSpec::new(Kind::new("play").unwrap(), JsonText::null());
    let unreadable = NewJob::new(ratchet_engine::new_job_id(), spec);
    let id = unreadable.id;
    store.submit(&[ratchet_core::store::SubmitUnit::of(vec![unreadable])]).await.unwrap().remove(0).unwrap();
    node.handle::<String>(id).wait().await.unwrap();
    assert_eq!(kept.get("ratchet.jobs.unreadable{kind=play,by=handler}"), 1);
    node.shutdown().await;
}

#[tokio::test]
async fn a_signal_to_very_many_jobs_is_counted_for_each() {
    let (stage, kept) = (Stage::default(), Kept::default());
    let node = quick(&stage).store(memory()).metrics_collector(kept.clone()).start().await.unwrap();
    let waiting = |node: &Ratchet| node.enqueue(Play::Return("x".into())).await_signal("go", None);
    for _ in 0..2 {
        node.submit_all((0..600).map(|_| waiting(&node))).await.unwrap();
    }
    let sent = node.signal("go").send().await.unwrap();
    assert_eq!((sent.delivered, kept.get("ratchet.signals.delivered{kind=play}")), (1_200, 1_200));
    node.shutdown().await;
}
