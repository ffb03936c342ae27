//! How soon the jobs of a dead node run elsewhere, and how soon a cancel reaches a handler elsewhere.

use std::time::Duration;

use ratchet::JobState;
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::Work;
use ratchet_chaos::record::now;

use crate::cluster::{Cluster, on_both_servers};
use crate::until::until;

on_both_servers! {
    a_dead_node_s_jobs_run_elsewhere_within_three_seconds_if_configured_so
    a_cancel_reaches_a_handler_on_another_node_within_a_second
}

async fn a_dead_node_s_jobs_run_elsewhere_within_three_seconds_if_configured_so(database: Database) {
    let took =
        time_to_run_elsewhere(database, &["--heartbeat-ms", "200", "--grace-ms", "1000", "--scan-ms", "200"]).await;
    println!("{database:?}: a dead node's jobs ran elsewhere after {took:?}");
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// From the kill of a node to the begin of the last of its jobs elsewhere.
pub(crate) async fn time_to_run_elsewhere(database: Database, timers: &[&str]) -> Duration {
    const JOBS: usize = 10;
    let cluster = Cluster::on(database).await;
    let victim = cluster.node_with(timers);
    // They take for ever where they run first, and no time afterwards: jobs of dead nodes run one by one.
    let job = || cluster.client.enqueue(Work::FailAfterCrash(1_000_000).unnumbered()).max_retries(0);
    cluster.client.submit_all((0..JOBS).map(|_| job()).collect::<Vec<_>>()).await.unwrap();
    until("their begin", async || cluster.begun().len() == JOBS).await;
    // It has to be there for a grace before it may judge others, as in a cluster that has been up for a while.
    let survivor = cluster.node_with(timers);
    let grace = timers.iter().skip_while(|arg| **arg != "--grace-ms").nth(1).unwrap().parse().unwrap();
    tokio::time::sleep(Duration::from_millis(grace)).await;
    let pid = survivor.pid();
    victim.kill().unwrap();
    let killed = now();
    let elsewhere =
        || -> Vec<i64> { cluster.begun().into_iter().filter(|(_, by, _)| *by == pid).map(|(at, _, _)| at).collect() };
    until("the runs elsewhere", async || elsewhere().len() == JOBS).await;
    let last = elsewhere().into_iter().max().unwrap();
    Duration::from_micros(u64::try_from(last - killed).unwrap())
}

async fn a_cancel_reaches_a_handler_on_another_node_within_a_second(database: Database) {
    let cluster = Cluster::on(database).await;
    let node = cluster.node_with(&["--heartbeat-ms", "500", "--grace-ms", "10000"]);
    let mut slowest = 0;
    for _ in 0..5 {
        let id = cluster.client.enqueue(Work::Endure(1_000_000).unnumbered()).submit().await.unwrap().id();
        until("its begin", async || cluster.begun().iter().any(|(_, _, run)| run.job == id)).await;
        let canceled = now();
        assert!(cluster.client.cancel(id).await.unwrap());
        until("the handler's end", async || cluster.ended_at(id).is_some()).await;
        slowest = slowest.max(cluster.ended_at(id).unwrap() - canceled);
        assert_eq!(cluster.client.find(id).await.unwrap().unwrap().state, JobState::Canceled);
    }
    println!("{database:?}: the slowest of five cancels arrived after {} ms", slowest / 1_000);
    // The node looks every 750 ms by default; the rest is for the machine.
    assert!(slowest < 1_000_000, "{slowest} µs");
    node.quit().unwrap();
}
