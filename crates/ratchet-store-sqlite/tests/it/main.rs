//! What is SQLite's own; what every store must do is in `ratchet-conformance`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod conformance;
mod cost;
mod lists;
mod migrate;
mod open;
mod plan;
mod statements;
mod unreadable;
mod watch;
mod writer;

use ratchet_core::claim::{Boost, ClaimRequest, Pool};
use ratchet_core::node::NodeRegistration;
use ratchet_core::store::{ClusterStore as _, JobStore as _, SubmitUnit};
use ratchet_core::{JobId, JobSpec, JsonText, Kind, NewJob, NodeId, NodeName, QueueName};
use ratchet_store_sqlite::{SqliteStore, Synchronous};
use tempfile::TempDir;
use uuid::Uuid;

/// A fresh store in a directory of its own; a commit does not wait for the disk, which nothing here is about.
async fn fresh() -> (SqliteStore, TempDir) {
    let dir = TempDir::new().unwrap();
    let options = SqliteStore::options(dir.path().join("jobs.db")).synchronous(Synchronous::Normal);
    (options.open().await.unwrap(), dir)
}

/// Runs `test` on a runtime with two threads.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

async fn register(store: &SqliteStore) -> NodeId {
    let id = NodeId(Uuid::new_v4());
    let node = NodeRegistration { id, name: NodeName::new("test").unwrap(), info: JsonText::null() };
    store.register(&node).await.unwrap();
    id
}

fn request(node: NodeId, kinds: &[&str], limit: usize) -> ClaimRequest {
    let kinds = kinds.iter().map(|kind| Kind::new(kind).unwrap()).collect();
    let pools = vec![Pool { queue: QueueName::default(), kinds, free: limit }];
    ClaimRequest { node, pools, limit, probation: true, boost: Boost::default() }
}

fn job(number: u128) -> NewJob {
    NewJob::new(JobId(Uuid::from_u128(number)), JobSpec::new(Kind::new("work").unwrap(), JsonText::null()))
}

async fn submit(store: &SqliteStore, jobs: Vec<NewJob>) {
    for outcome in store.submit(&[SubmitUnit::of(jobs)]).await.unwrap() {
        outcome.unwrap();
    }
}
