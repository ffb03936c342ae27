//! What a node says of itself with its heartbeat.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::Clock;
use ratchet_engine::{Ratchet, SystemClock};

use crate::faulty::{Faulty, Slow};
use crate::support::{Play, Stage, eventually, memory, quick};

/// A clock that is so many seconds off.
#[derive(Debug)]
struct Off(i64);

impl Clock for Off {
    fn now(&self) -> Timestamp {
        SystemClock.now() + jiff::SignedDuration::from_secs(self.0)
    }
}

async fn vitals(node: &Ratchet) -> ratchet_core::node::NodeVitals {
    node.nodes().await.unwrap()[0].vitals
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
async fn a_time_that_took_too_long_to_read_says_nothing() {
    let stage = Stage::default();
    let slow = Slow { time: Duration::from_secs(3), ..Slow::default() };
    let mut store = Faulty::new(memory());
    store.slow = slow.clone();
    let node = quick(&stage).store(store).grace(Duration::from_secs(3)).start().await.unwrap();
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
    let node = quick(&stage).store(store).grace(Duration::from_secs(4)).start().await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    // Every 50 ms it would be nearly twenty.
    let beats = slow.beats.load(Ordering::SeqCst);
    assert!((3..12).contains(&beats), "{beats}");
    node.shutdown().await;
}
