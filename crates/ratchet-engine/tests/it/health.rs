//! What a node says of itself to those who watch it.

use crate::faulty::Faulty;
use crate::support::{Play, Stage, event, eventually, memory, quick, started};

#[tokio::test]
async fn a_node_is_ready_until_it_drains_and_live_until_it_ends() {
    let stage = Stage::default();
    let ratchet = quick(&stage).store(memory()).start().await.unwrap();
    let probe = ratchet.probe();
    eventually("a turn was taken", async || ratchet.health().last_success.turn.is_some()).await;
    let health = ratchet.health();
    assert!(health.live && health.ready && !health.draining && !health.fenced, "{health:?}");
    assert_eq!(health.overdue, Vec::<&str>::new());
    let mut events = ratchet.events();
    let slow = ratchet.enqueue(Play::Gate).submit().await.unwrap();
    started(&mut events, slow.id()).await;
    let stopping = tokio::spawn(ratchet.shutdown());
    eventually("it drains", async || probe.health().draining).await;
    let health = probe.health();
    assert!(health.live && !health.ready, "{health:?}");
    stage.open_gate();
    event(&mut events, |e| e.job_id == slow.id()).await;
    stopping.await.unwrap();
    let health = probe.health();
    assert!(!health.live && !health.ready, "{health:?}");
}

#[tokio::test]
async fn a_node_that_the_database_does_not_hear_is_live_but_not_ready() {
    let (store, stage) = (Faulty::new(memory()), Stage::default());
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    store.break_heart(true);
    eventually("it notices", async || !ratchet.health().ready).await;
    let health = ratchet.health();
    assert!(health.live && health.fenced, "a restart would not help: {health:?}");
    store.break_heart(false);
    eventually("it is heard again", async || ratchet.health().ready).await;
}
