//! Three nodes share a large backlog, which goes to the archive afterwards.

use std::collections::HashSet;
use std::time::Instant;

use ratchet::{JobId, JobState};
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::Nothing;

use super::archiving::they_are_archived_while_jobs_flow;
use crate::cluster::{Cluster, on_both_servers};
use crate::until::until;

on_both_servers! { three_nodes_drain_a_large_backlog_each_job_exactly_once_and_one_archives_it }

/// The backlog. MariaDB archives a tenth as fast, and a fifth of the jobs shows the same.
fn jobs(database: Database) -> u32 {
    match database {
        Database::Postgres => 100_000,
        Database::Mysql => 20_000,
    }
}

const TOGETHER: u32 = 10_000;

async fn three_nodes_drain_a_large_backlog_each_job_exactly_once_and_one_archives_it(database: Database) {
    let jobs = jobs(database);
    let cluster = Cluster::on(database).await;
    let begun = Instant::now();
    let mut submitted = HashSet::new();
    for _ in 0..jobs / TOGETHER {
        let group: Vec<_> = (0..TOGETHER).map(|_| cluster.client.enqueue(Nothing)).collect();
        submitted.extend(cluster.client.submit_all(group).await.unwrap().iter().map(ratchet::JobHandle::id));
    }
    println!("{database:?}: submitted {jobs} in {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(submitted.len(), jobs as usize);

    let begun = Instant::now();
    let tallies = [0, 1, 2].map(|node| cluster.file(&format!("tally-{node}")));
    let mut nodes = tallies.clone().map(|tally| {
        // A grace that a busy machine does not exceed: this is not about dead nodes.
        let timers = ["--heartbeat-ms", "2000", "--grace-ms", "60000", "--slots", "200"];
        cluster.node_with(&[&timers[..], &["--tally", tally.to_str().unwrap()]].concat())
    });
    until("the last job", async || {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let live = [JobState::Pending, JobState::Running];
        let counts = cluster.counts().await;
        live.iter().all(|state| counts.get(state).is_none_or(|count| *count == 0))
    })
    .await;
    let took = begun.elapsed().as_secs_f64();
    let stats = nodes.each_mut().map(|node| node.stats().unwrap());
    let sum = |name: &str| stats.iter().map(|stats| stats[name]).sum::<u64>();
    let deadlocks = cluster.server.deadlocks().unwrap();
    println!(
        "{database:?}: drained in {took:.1} s, {:.0} jobs a second; {} turns, {} tried again, {deadlocks} deadlocks; shares {:?}",
        f64::from(jobs) / took,
        sum("turns"),
        sum("tried_again"),
        stats.each_ref().map(|stats| stats["claimed"]),
    );
    for node in nodes {
        node.quit().unwrap();
    }

    assert_eq!(sum("turn_errors"), 0, "a transaction was given up");
    assert!(deadlocks <= sum("tried_again"), "a deadlock was not tried again");
    assert_eq!((sum("claimed"), sum("settled"), sum("conflicts")), (u64::from(jobs), u64::from(jobs), 0));
    assert_eq!(cluster.count(JobState::Succeeded).await, u64::from(jobs), "{:?}", cluster.counts().await);
    let ran: Vec<JobId> = tallies.iter().flat_map(|tally| read_ids(tally)).collect();
    assert_eq!(ran.len(), submitted.len(), "every job ran once");
    assert_eq!(ran.into_iter().collect::<HashSet<_>>(), submitted, "and every one of them");
    they_are_archived_while_jobs_flow(&cluster, submitted).await;
}

fn read_ids(tally: &std::path::Path) -> Vec<JobId> {
    std::fs::read_to_string(tally).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}
