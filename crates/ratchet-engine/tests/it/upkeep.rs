//! The loops beside the pump, when the store does what no store should.

use std::time::Duration;

use ratchet_core::JobState;
use ratchet_core::store::{ClusterStore as _, ControlStore as _};
use ratchet_engine::{Client, JobExt as _, new_node_id};

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
