//! A machine that is gone at once, in the middle of a transaction: the server still holds its locks.

use std::time::Duration;

use ratchet::JobState;
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::Work;

use crate::cluster::{Cluster, my_turn, on_both_servers};
use crate::until::until;

on_both_servers! {
    a_node_that_vanishes_in_the_middle_of_a_transaction_does_not_keep_its_jobs
}

async fn a_node_that_vanishes_in_the_middle_of_a_transaction_does_not_keep_its_jobs(database: Database) {
    const JOBS: u64 = 20;
    let _turn = my_turn().await;
    let cluster = Cluster::on(database).await;
    let way = cluster.server.proxy().await.unwrap();
    let timers = ["--heartbeat-ms", "200", "--grace-ms", "1000", "--scan-ms", "200", "--store-deadline-ms", "3000"];
    let victim = cluster.node_at(&cluster.server.url_through(&way), &timers);
    let jobs: Vec<_> = (0..JOBS).map(|_| cluster.client.enqueue(Work::Sleep(500).unnumbered())).collect();
    cluster.client.submit_all(jobs).await.unwrap();
    until("their begin", async || cluster.begun().len() as u64 == JOBS).await;
    // The next transaction is the one that settles them.
    way.freeze_at_commit();
    way.frozen_at_commit().await;
    victim.kill().unwrap();
    let _survivor = cluster.node_with(&timers);
    let ends = until("the jobs' end elsewhere", async || cluster.count(JobState::Succeeded).await == JOBS);
    tokio::time::timeout(Duration::from_mins(1), ends).await.expect("the server holds their rows for a dead node");
}
