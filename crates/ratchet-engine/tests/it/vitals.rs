//! What a node says of itself with its heartbeat.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ratchet_core::Clock;
use ratchet_core::breaker::{Admission, CallEnd, Ticket};
use ratchet_core::clock::elapsed;
use ratchet_engine::{Ratchet, ResilienceStrategy, SystemClock, Timing};

use crate::faulty::{Faulty, Slow};
use crate::support::{Play, Stage, eventually, memory, quick, quick_timing};

/// A clock that is so many seconds off.
#[derive(Debug)]
struct Off(i64);

impl Clock for Off {
    fn now(&self) -> Timestamp {
        SystemClock.now() + jiff::SignedDuration::from_secs(self.0)
    }
}

/// Admits of `play` what the test says.
#[derive(Clone)]
struct Says(Arc<Mutex<Admission>>);

impl ResilienceStrategy for Says {
    fn admits(&self, service: &str) -> Admission {
        if service == "play" { *self.0.lock().unwrap() } else { Admission::All }
    }

    fn enter(&self, _service: &str) -> Result<Ticket, Duration> {
        Ok(Ticket(0))
    }

    fn leave(&self, _service: &str, _ticket: Ticket, _end: CallEnd) {}
}

async fn vitals(node: &Ratchet) -> ratchet_core::node::NodeVitals {
    node.nodes().await.unwrap()[0].vitals.clone()
}

#[tokio::test]
async fn a_heartbeat_says_how_many_jobs_run() {
    let stage = Stage::default();
    let node = quick(&stage).store(memory()).start().await.unwrap();
    let gates: Vec<_> = (0..3).map(|_| node.enqueue(Play::Gate)).collect();
    let gates = node.submit_all(gates).await.unwrap();
    eventually("three running jobs", async || vitals(&node).await.running == 3).await;
    assert_eq!(node.stats().vitals.running, 3);
    // A gate keeps one permit: the next is given when this one was used.
    for open in 1..=gates.len() as u64 {
        stage.open_gate();
        eventually("an open gate", async || node.stats().settled == open).await;
    }
    eventually("no running job", async || vitals(&node).await.running == 0).await;
    node.shutdown().await;
}

#[tokio::test]
async fn a_clock_that_is_off_is_noticed_and_shown() {
    for seconds in [90, -90, 0] {
        let stage = Stage::default();
        let node = quick(&stage).store(memory()).clock(Arc::new(Off(seconds))).start().await.unwrap();
        eventually("a measured skew", async || vitals(&node).await.clock_skew_us.is_some()).await;
        let shown = vitals(&node).await.clock_skew_us.unwrap();
        assert!(shown.abs_diff(seconds * 1_000_000) < 200_000, "{shown}");
        assert_eq!(node.stats().vitals.clock_skew_us, Some(shown));
        node.shutdown().await;
    }
}

#[tokio::test]
async fn a_heartbeat_says_which_breakers_are_not_closed() {
    let (stage, says) = (Stage::default(), Says(Arc::new(Mutex::new(Admission::All))));
    let node = quick(&stage).store(memory()).clock(Arc::new(Off(90))).resilience_strategy(says.clone());
    let node = node.start().await.unwrap();
    eventually("a measured skew", async || vitals(&node).await.clock_skew_us.is_some()).await;
    assert!(vitals(&node).await.services.is_empty());
    let a_while = Duration::from_secs(20);
    let table = [
        (Admission::None(None), "forced-open"),
        (Admission::AtMost(1), "half-open"),
        (Admission::None(Some(a_while)), "open"),
    ];
    for (admission, state) in table {
        *says.0.lock().unwrap() = admission;
        let stand = async || vitals(&node).await.services.stand("play");
        eventually(state, async || stand().await.is_some_and(|stand| stand.as_str() == state)).await;
    }
    let services = vitals(&node).await.services;
    assert_eq!((services.not_closed.len(), services.left_out), (1, 0), "the other kind is called as usual");
    let until = services.not_closed[0].stand.until().unwrap();
    let left = elapsed(node.store().database_time().await.unwrap(), until);
    assert!(left.abs_diff(a_while) < Duration::from_secs(5), "by the database's clock, not the node's: {left:?}");
    *says.0.lock().unwrap() = Admission::All;
    eventually("all closed", async || vitals(&node).await.services.is_empty()).await;
    assert!(node.stats().vitals.services.is_empty());
    node.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_strategy_that_blocks_does_not_keep_the_node_from_being_heard() {
    let (stage, says) = (Stage::default(), Says(Arc::new(Mutex::new(Admission::All))));
    let mut store = Faulty::new(memory());
    let slow = Slow::default();
    store.slow = slow.clone();
    let node = quick(&stage).store(store).resilience_strategy(says.clone()).start().await.unwrap();
    let blocking = tokio::task::spawn_blocking(move || {
        let _nobody_is_answered = says.0.lock().unwrap();
        let (begun, beats) = (Instant::now(), slow.beats.load(Ordering::SeqCst));
        while slow.beats.load(Ordering::SeqCst) < beats + 5 {
            assert!(begun.elapsed() < Duration::from_secs(10), "no more heartbeats");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    blocking.await.unwrap();
    assert_eq!(node.stats().reincarnations, 0);
    node.shutdown().await;
}

#[tokio::test]
async fn a_time_that_took_too_long_to_read_says_nothing() {
    let stage = Stage::default();
    let slow = Slow { time: Duration::from_secs(3), ..Slow::default() };
    let mut store = Faulty::new(memory());
    store.slow = slow.clone();
    let timing = Timing { grace: Duration::from_secs(3), ..quick_timing() };
    let node = quick(&stage).store(store).timing(timing).start().await.unwrap();
    // Beats go on after the question was given up, on a fresh connection.
    eventually("three beats", async || slow.beats.load(Ordering::SeqCst) >= 3).await;
    assert_eq!(node.stats().vitals.clock_skew_us, None);
    node.shutdown().await;
}

#[tokio::test]
async fn a_slow_database_is_asked_less_often() {
    let stage = Stage::default();
    let slow = Slow { beat: Duration::from_millis(30), ..Slow::default() };
    let mut store = Faulty::new(memory());
    store.slow = slow.clone();
    let timing = Timing { grace: Duration::from_secs(4), ..quick_timing() };
    let node = quick(&stage).store(store).timing(timing).start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    // Every 50 ms it would be nearly twenty.
    let beats = slow.beats.load(Ordering::SeqCst);
    assert!((3..12).contains(&beats), "{beats}");
    node.shutdown().await;
}
