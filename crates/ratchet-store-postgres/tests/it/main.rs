//! What is PostgreSQL's own; what every store must do is in `ratchet-conformance`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod bursts;
mod conformance;
mod coordinator;
mod cost;
mod database;
mod isolation;
mod lists;
mod marks;
mod migrate;
mod outages;
mod plan;
mod pooled;
mod statements;
mod take;

use ratchet_conformance::success;
use ratchet_core::claim::{Boost, ClaimRequest, Pool};
use ratchet_core::node::NodeRegistration;
use ratchet_core::store::ClusterStore;
use ratchet_core::{JobId, JobSpec, JsonText, Kind, NewJob, NodeId, NodeName, QueueName};
use uuid::Uuid;

/// Runs `test` on a runtime with two threads.
fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

async fn register(store: &impl ClusterStore) -> NodeId {
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
