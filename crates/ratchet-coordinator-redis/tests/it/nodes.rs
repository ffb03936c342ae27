//! Nodes and clients of several processes, as far as one process can play them: each with a coordinator of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratchet_coordinator_redis::RedisCoordinator;
use ratchet_core::{ClusterCoordinator, MemoryStore};
use ratchet_engine::{Client, Failure, Job, JobContext, JobEventKind, Ratchet, SystemClock};
use serde::{Deserialize, Serialize};

use crate::suite::{channel, server};

#[derive(Debug, Serialize, Deserialize)]
struct Nothing;

impl Job for Nothing {
    const KIND: &'static str = "nothing";
    type Output = ();
    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_submit_elsewhere_starts_at_once() {
    let channel = channel();
    let connect = async || {
        let coordinator = RedisCoordinator::options(server()).channel(&channel).connect().await.unwrap();
        Arc::new(coordinator) as Arc<dyn ClusterCoordinator>
    };
    let store = MemoryStore::new(Arc::new(SystemClock));
    let node = Ratchet::builder().store(store.clone()).job::<Nothing>().coordinator(connect().await);
    let node = node.start().await.unwrap();
    let client = Client::with_coordinator(store, connect().await);
    let mut events = node.events();
    let mut took = Vec::new();
    for _ in 0..50 {
        let handle = client.enqueue(Nothing).submit().await.unwrap();
        let submitted = Instant::now();
        while events.next().await.is_some_and(|event| !matches!(event.what, JobEventKind::Started { .. })) {}
        took.push(submitted.elapsed());
        handle.wait().await.unwrap();
    }
    took.sort();
    println!("from a submit elsewhere to its start: median {:?}, slowest {:?}", took[25], took[49]);
    // Without hints a poll comes after half a second at the soonest.
    assert!(took[25] < Duration::from_millis(200), "{took:?}");
    node.shutdown().await;
}
