//! What a node says of itself to those who watch it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ratchet_core::Retention;
use ratchet_engine::{RatchetBuilder, Timing};

use crate::faulty::Faulty;
use crate::support::{Ahead, Play, Stage, event, eventually, memory, quick, quick_timing, started};

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

#[tokio::test]
async fn a_loop_is_overdue_by_its_own_interval_and_only_if_it_runs() {
    let (mins, hours) = (Duration::from_mins, Duration::from_hours);
    let check = async |why: &str, options: fn(RatchetBuilder) -> RatchetBuilder, later: Duration, overdue: &[&str]| {
        let (clock, stage) = (Ahead::default(), Stage::default());
        let ratchet = options(quick(&stage)).store(memory()).clock(Arc::new(clock.clone())).start().await.unwrap();
        let begun = async || {
            let last = ratchet.health().last_success;
            last.gauges.is_some() && last.turn.is_some() && last.heartbeat.is_some() && last.signals.is_some()
        };
        eventually("the first looks", begun).await;
        clock.advance(later);
        ratchet.enqueue(Play::Return("a turn".into())).submit().await.unwrap().wait().await.unwrap();
        // Those that look often will have looked; the others wait by the machine's clock, which is not ahead.
        let awake = async || ratchet.health().overdue.iter().all(|name| overdue.contains(name));
        eventually(&format!("{why}: {:?}", ratchet.health()), awake).await;
        assert_eq!(ratchet.health().overdue, overdue, "{why}");
        ratchet.shutdown().await;
    };
    let keeps = |node: RatchetBuilder| node.retention(Retention::keep_everything());
    let seldom = |node: RatchetBuilder| {
        let (gauges, retention_interval) = (Duration::from_hours(1), Duration::from_hours(12));
        node.timing(Timing { gauges, retention_interval, scan: Duration::from_hours(24), ..quick_timing() })
    };
    tokio::join!(
        check("not yet", |node| node, mins(4), &[]),
        check("those that look every minute or so", |node| node, mins(10), &["retention", "gauges"]),
        check("who keeps everything takes no care", keeps, mins(10), &["gauges"]),
        check("those that look seldom", seldom, hours(1), &[]),
        check("those that look seldom, and did not", seldom, hours(3), &["gauges"]),
        check("all that look seldom, and did not", seldom, hours(49), &["rescue", "batches", "retention", "gauges"]),
    );
}

#[tokio::test]
async fn care_that_has_much_to_do_is_not_overdue() {
    let (store, stage) = (Faulty::new(memory()), Stage::default());
    store.archives.store(1, Ordering::SeqCst);
    let ratchet = quick(&stage).store(store).start().await.unwrap();
    eventually("a portion of a round that goes on", async || ratchet.health().last_success.retention.is_some()).await;
}
