//! What a child of a batch costs beside a job that belongs to nothing.

use ratchet_conformance::cost::{self, Spent};
use ratchet_conformance::{Fixture, Harness};

use super::{ServerDatabase, SqlDatabase, TestServer};

/// A server counts bytes of its log one by one, so that the least of some rounds tells.
pub async fn a_child_costs_about_as_much_as_a_plain_job<S: TestServer>() {
    let database = ServerDatabase::<S>::fresh().await;
    let store = database.store().await;
    let mut conn = database.connect().await;
    let harness = Harness::new(Fixture::new(store.clone(), database)).await;
    let spent = async || Spent { statements: store.counts().statements, log_bytes: S::log_position(&mut conn).await };
    cost::a_child_costs_about_as_much_as_a_plain_job(&harness, spent).await;
}

/// Fails if plain jobs cost more, from submit to end: bytes of the log for each, and statements for all of a round.
pub async fn plain_jobs_cost_at_most<S: TestServer>(log_bytes: u64, statements: u64) {
    let database = ServerDatabase::<S>::fresh().await;
    let store = database.store().await;
    let mut conn = database.connect().await;
    let harness = Harness::new(Fixture::new(store.clone(), database)).await;
    let spent = async || Spent { statements: store.counts().statements, log_bytes: S::log_position(&mut conn).await };
    let cost = cost::of_plain_jobs(&harness, spent).await;
    let each = cost.log_bytes / u64::from(cost::JOBS);
    println!("{each} bytes of log per plain job; {} statements for {} jobs", cost.statements, cost::JOBS);
    assert!(each <= log_bytes, "{each} bytes of log per plain job, more than {log_bytes}");
    assert!(cost.statements <= statements, "{} statements, more than {statements}", cost.statements);
}

/// Dead children take a few statements together, not some for each.
pub async fn dead_children_are_retried_together<D: SqlDatabase>() {
    let database = D::fresh().await;
    let store = database.store().await;
    let harness = Harness::new(Fixture::new(store.clone(), database)).await;
    cost::dead_children_are_retried_together(&harness, || store.counts().statements).await;
}
