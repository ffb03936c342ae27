//! The loops beside the pump, when the store does what no store should.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::store::{ClusterStore as _, ControlStore as _};
use ratchet_core::{Clock, JobState};
use ratchet_engine::{AdaptivePolling, AdaptiveWaits, Client, JobExt as _, SystemClock, new_node_id};

use crate::faulty::Faulty;
use crate::support::{Play, Stage, eventually, memory, quick};

const LEASES: [&str; 3] = ["schedules", "signals", "batches"];

#[tokio::test]
async fn a_panic_ends_no_loop() {
    let store = Faulty::new(memory());
    store.panics.once(&["orphans", "next_fire", "expire", "canceling_batches"]);
    let ratchet = quick(&Stage::default()).store(store.clone()).start().await.unwrap();
    // Not before: a node reads these before it starts.
    store.panics.once(&["breaker_orders"]);
    eventually("the panics", async || store.panics.are_over()).await;
    let begun = ratchet.store().database_time().await.unwrap();
    eventually("a success of every loop", async || {
        let last = ratchet.stats().last_success;
        let all = [last.turn, last.heartbeat, last.rescue, last.schedules, last.signals, last.batches, last.breakers];
        all.iter().all(|last| last.is_some_and(|last| last > begun))
    })
    .await;
    let late = ratchet.enqueue(Play::Gate).await_signal("never", Duration::from_millis(10)).submit().await.unwrap();
    assert_eq!(late.wait().await.unwrap().state, JobState::Failed, "what the loop is for is done");
    let panicked = ["batches", "breakers", "rescue", "schedules", "signals"].map(|name| (name, 1));
    assert_eq!(ratchet.stats().panics, BTreeMap::from(panicked));
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_heartbeat_that_panics_is_one_that_is_missing() {
    let store = Faulty::new(memory());
    let ratchet = quick(&Stage::default()).store(store.clone()).start().await.unwrap();
    let node = ratchet.node_id();
    store.panics.once(&["beat"]);
    eventually("the panic", async || store.panics.are_over()).await;
    let last = ratchet.stats().last_success.heartbeat;
    eventually("a further beat", async || ratchet.stats().last_success.heartbeat > last).await;
    assert_eq!(ratchet.node_id(), node);
    ratchet.shutdown().await;
}

/// The machine's clock, which panics on some thread as often as the test says.
#[derive(Debug)]
struct Stumbling {
    is_on: fn(&str) -> bool,
    left: AtomicUsize,
}

impl Stumbling {
    fn on(is_on: fn(&str) -> bool) -> Arc<Self> {
        Arc::new(Self { is_on, left: AtomicUsize::new(0) })
    }
}

impl Clock for Stumbling {
    fn now(&self) -> Timestamp {
        if (self.is_on)(std::thread::current().name().unwrap_or_default()) {
            let stumbled = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            assert!(stumbled.is_err(), "a clock gone wrong");
        }
        SystemClock.now()
    }
}

#[tokio::test]
async fn a_clock_that_panics_does_not_end_the_heartbeat() {
    let clock = Stumbling::on(|thread| thread == "ratchet-heartbeat");
    let ratchet = quick(&Stage::default()).store(memory()).clock(clock.clone()).start().await.unwrap();
    let node = ratchet.node_id();
    clock.left.store(2, Ordering::SeqCst);
    eventually("the panics", async || ratchet.stats().panics.get("heartbeat") == Some(&2)).await;
    let last = ratchet.stats().last_success.heartbeat;
    eventually("a further beat", async || ratchet.stats().last_success.heartbeat > last).await;
    assert_eq!((ratchet.node_id(), ratchet.stats().reincarnations), (node, 0));
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_clock_that_panics_ends_no_loop() {
    let clock = Stumbling::on(|thread| thread != "ratchet-heartbeat");
    // Of the loops only the pump ends by a panic, and an idle pump does not ask for the time.
    let hour = Duration::from_hours(1);
    let seldom = AdaptiveWaits { burst: hour, normal_min: hour, normal_max: hour, ..AdaptiveWaits::default() };
    let node = quick(&Stage::default()).store(memory()).polling_strategy(AdaptivePolling::new(seldom));
    let ratchet = node.clock(clock.clone()).start().await.unwrap();
    eventually("the pump is idle", async || ratchet.stats().last_success.turn.is_some()).await;
    clock.left.store(20, Ordering::SeqCst);
    let is_over = async || clock.left.load(Ordering::SeqCst) == 0;
    eventually("the panics", is_over).await;
    let begun = SystemClock.now();
    eventually("a success of every loop", async || {
        let last = ratchet.stats().last_success;
        let all = [last.rescue, last.signals, last.batches, last.breakers, last.service_watch, last.loop_watch];
        all.iter().all(|last| last.is_some_and(|last| last > begun))
    })
    .await;
    let panics = ratchet.stats().panics;
    assert_eq!((panics.values().sum::<u64>(), panics.contains_key("turn")), (20, false), "{panics:?}");
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_pump_that_panics_stops_its_node_and_leaves_the_jobs_to_others() {
    let (store, stage) = (Faulty::new(memory()), Stage::default());
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    // Asked when a job is submitted that becomes due later.
    store.panics.once(&["next_due"]);
    let later = ratchet.enqueue(Play::Return("elsewhere".into())).delay(Duration::from_millis(500));
    let later = later.submit().await.unwrap();
    eventually("the node's end", async || !ratchet.health().live).await;
    assert_eq!(ratchet.stats().panics, BTreeMap::from([("turn", 1)]));
    let other = quick(&stage).store(store).start().await.unwrap();
    assert_eq!(later.result().await.unwrap(), "elsewhere");
    let is_alone = async || other.nodes().await.unwrap().iter().all(|node| node.id == other.node_id());
    eventually("the first is heard no more", is_alone).await;
    other.shutdown().await;
}

#[tokio::test]
async fn a_batch_that_cannot_be_canceled_does_not_keep_others_from_it() {
    let store = Faulty::new(memory());
    let client = Client::new(store.clone());
    let child = || Play::Hang.with(|step| step.delay(Duration::from_hours(1)));
    let mut batches = Vec::new();
    for _ in 0..3 {
        let batch = client.batch().child(child()).child(child()).submit().await.unwrap();
        // As if the caller had died after the first of its transactions.
        store.cancel(batch.id()).await.unwrap().unwrap();
        batches.push(batch);
    }
    *store.broken_batch.lock().unwrap() = Some(batches[0].id());
    let ratchet = quick(&Stage::default()).store(store.clone()).start().await.unwrap();
    for batch in &batches[1..] {
        eventually("the children's end", async || batch.record().await.unwrap().counts.canceled == 2).await;
    }
    assert_eq!(batches[0].record().await.unwrap().counts.canceled, 0);
    let other = new_node_id();
    eventually("the lease", async || store.acquire_lease("batches", other, Duration::from_secs(1)).await.unwrap())
        .await;
    *store.broken_batch.lock().unwrap() = None;
    eventually("the end of the first", async || batches[0].record().await.unwrap().counts.canceled == 2).await;
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_node_that_stops_leaves_its_leases_to_others() {
    let store = memory();
    let ratchet = quick(&Stage::default()).store(store.clone()).start().await.unwrap();
    let node = ratchet.node_id();
    for name in LEASES {
        assert!(store.acquire_lease(name, node, Duration::from_mins(1)).await.unwrap(), "{name}");
    }
    ratchet.shutdown().await;
    for name in LEASES {
        assert!(store.acquire_lease(name, new_node_id(), Duration::from_mins(1)).await.unwrap(), "{name}");
    }
}
