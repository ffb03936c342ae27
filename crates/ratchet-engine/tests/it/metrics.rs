//! What is counted and timed, and that a collector can do no harm.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ratchet_engine::metrics::{Labels, names};
use ratchet_engine::{JobEventKind, MetricsCollector};

use crate::support::{Play, Stage, event, memory, quick};

/// Keeps what it is told.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, u64>>>);

impl Kept {
    fn get(&self, name: &str) -> u64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    fn add(&self, name: &str, labels: Labels<'_>, times: u64) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let name = if labels.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", labels.join(",")) };
        *self.0.lock().unwrap().entry(name).or_default() += times;
    }
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
        assert!((0.0..=100.0).contains(&value), "{name} is {value}");
        self.add(name, labels, 1);
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
    let late = ratchet.enqueue(Play::UntilCancelled).submit().await.unwrap();
    event(&mut events, |e| matches!(e.what, JobEventKind::Started { .. })).await;
    ratchet.cancel(late.id()).await.unwrap();
    late.wait().await.unwrap();
    ratchet.shutdown().await;
    let table = [
        ("ratchet.jobs.started{kind=play,queue=default}", 7),
        ("ratchet.jobs.completed{kind=play}", 3),
        ("ratchet.jobs.failed{kind=play}", 2),
        ("ratchet.jobs.retrying{kind=play}", 1),
        ("ratchet.jobs.dead_lettered{kind=play,reason=do_not_retry}", 1),
        ("ratchet.jobs.deferred{kind=play,reason=snoozed}", 1),
        ("ratchet.jobs.cancelled{kind=play}", 1),
        ("ratchet.jobs.duration{kind=play,outcome=SUCCEEDED}", 3),
        ("ratchet.jobs.duration{kind=play,outcome=FAILED}", 2),
        ("ratchet.jobs.wait{kind=play,queue=default}", 6),
        ("ratchet.node.claimed", 7),
    ];
    for (name, value) in table {
        assert_eq!(kept.get(name), value, "{name} of {:#?}", kept.0.lock().unwrap());
    }
    assert!(kept.get(&format!("{}{{outcome=ok}}", names::TURN)) >= 5);
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
