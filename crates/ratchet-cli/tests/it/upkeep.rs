use std::time::Duration;

use ratchet::prelude::*;
use ratchet::{Ratchet, Timing};

use crate::support::{Place, idle};

/// A heartbeat that reports a change at once.
fn quick_heartbeat() -> Timing {
    Timing { heartbeat: Duration::from_millis(50), ..Timing::default() }
}

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
    let node = Ratchet::builder().store(store).jobs(jobs![idle]).timing(quick_heartbeat());
    let ratchet = node.start().await.unwrap();
    let listed = place.ratchet(&["nodes"]);
    assert!(!listed.out.contains("BREAKERS"), "nothing is said of closed ones: {listed:?}");
    ratchet.open_breaker_here("test.idle");
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

#[tokio::test(flavor = "multi_thread")]
async fn breakers_are_opened_and_reset_on_every_node() {
    let place = Place::migrated().await;
    place.ratchet(&["breakers"]).expect(0, &["No circuit breaker is held open"]);
    place.ratchet(&["breakers", "open", "test.idle"]).expect(0, &["opened", "no living node calls it"]);
    place.ratchet(&["breakers"]).expect(0, &["test.idle", "ago", "0 of 0"]);
    let store = SqliteStore::open(place.database()).await.unwrap();
    let node = Ratchet::builder().store(store).jobs(jobs![idle]).timing(quick_heartbeat());
    let ratchet = node.node_name("workshop").start().await.unwrap();
    let job = ratchet.enqueue(idle(1)).submit().await.unwrap();
    let told = async {
        while ratchet.breakers().await.unwrap()[0].not_closed.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told).await.expect("a heartbeat tells of it");
    place.ratchet(&["breakers"]).expect(0, &["test.idle", "1 of 1", "workshop forced-open"]);
    place.ratchet(&["nodes"]).expect(0, &["BREAKERS", "test.idle forced-open"]);
    place.ratchet(&["breakers", "open", "test.idle"]).expect(0, &["nothing to change, held open already"]);
    let breakers = place.json(&["breakers"]);
    assert!(breakers[0]["held_open_since"].is_string(), "{breakers}");
    let stand =
        serde_json::json!([{"node": ratchet.node_id().to_string(), "name": "workshop", "state": "forced-open"}]);
    assert_eq!((&breakers[0]["calling"], &breakers[0]["not_closed"]), (&1.into(), &stand));
    let reset = place.json(&["breakers", "reset", "test.idle"]);
    let expected = serde_json::json!({"service": "test.idle", "held_open": false, "changed": true, "calling": 1});
    assert_eq!(reset, expected);
    assert_eq!(job.result().await.unwrap(), 1);
    place.ratchet(&["breakers", "open", ""]).expect(2, &["`service` is empty; give 1 to 128 characters"]);
    ratchet.shutdown().await;
}
