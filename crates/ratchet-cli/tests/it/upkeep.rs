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
    ratchet.shutdown().await;
    place.ratchet(&["nodes"]).expect(0, &["No node runs on this database."]);
}
