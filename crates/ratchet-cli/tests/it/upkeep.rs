use std::time::Duration;

use ratchet::Ratchet;
use ratchet::prelude::*;

use crate::support::{Place, idle};

#[tokio::test(flavor = "multi_thread")]
async fn queues_can_be_paused_resumed_and_listed() {
    let place = Place::migrated().await;
    place.idle_jobs(3).await;
    place.ratchet(&["queues"]).expect(0, &["QUEUE", "default", "open", "3"]);
    place.ratchet(&["queues", "pause", "default"]).expect(0, &["paused queue default"]);
    place.ratchet(&["queues", "pause", "default"]).expect(0, &["paused already"]);
    let queues = place.json(&["queues"]);
    assert_eq!((&queues[0]["name"], &queues[0]["paused"]), (&"default".into(), &true.into()));
    assert_eq!(queues[0]["live"]["PENDING"], 3);
    assert_eq!(place.json(&["queues", "resume", "default"])["changed"], true);
    place.ratchet(&["queues", "resume", "Default"]).expect(2, &["`queue` holds 'D'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_listed_with_what_they_run() {
    let place = Place::migrated().await;
    let store = SqliteStore::open(place.database()).await.unwrap();
    let ratchet = Ratchet::builder().store(store).jobs(jobs![idle]).node_name("workshop").start().await.unwrap();
    place.ratchet(&["nodes"]).expect(0, &["workshop", "alive"]);
    let nodes = place.json(&["nodes"]);
    assert_eq!(nodes[0]["id"], ratchet.node_id().to_string());
    assert_eq!(nodes[0]["standing"], "alive");
    assert_eq!(nodes[0]["info"]["kinds"][0], "test.idle");
    assert_eq!(nodes[0]["vitals"]["services"]["not_closed"], serde_json::json!([]));
    ratchet.shutdown().await;
    place.ratchet(&["nodes"]).expect(0, &["No node runs on this database."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_breakers_are_seen_from_elsewhere() {
    let place = Place::migrated().await;
    let store = SqliteStore::open(place.database()).await.unwrap();
    let node = Ratchet::builder().store(store).jobs(jobs![idle]).heartbeat(Duration::from_millis(50));
    let ratchet = node.start().await.unwrap();
    let listed = place.ratchet(&["nodes"]);
    assert!(!listed.out.contains("BREAKERS"), "nothing is said of closed ones: {listed:?}");
    ratchet.open_breaker("test.idle");
    let job = ratchet.enqueue(idle(1)).submit().await.unwrap();
    let told = async {
        while ratchet.nodes().await.unwrap()[0].vitals.services.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told).await.expect("a heartbeat tells of it");
    place.ratchet(&["nodes"]).expect(0, &["BREAKERS", "test.idle forced-open"]);
    let services = &place.json(&["nodes"])[0]["vitals"]["services"];
    assert_eq!(services["not_closed"], serde_json::json!([{"service": "test.idle", "state": "forced-open"}]));
    let why = "the circuit breaker of test.idle is open on the only node that could run it, until somebody resets it";
    place.ratchet(&["jobs", "explain", &job.id().to_string()]).expect(0, &[why]);
    ratchet.shutdown().await;
}
