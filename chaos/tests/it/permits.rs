//! Four nodes, five permits, and kills: never more than five run, none waits for ever, and they go in order.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ratchet::{AttemptStatus, JobHandle, JobId, JobState, ResourceLimit};
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::{Deal, Work};
use ratchet_chaos::node::Node;
use ratchet_chaos::record::{Deed, Run, now};

use crate::cluster::{Cluster, my_turn, on_both_servers};
use crate::until::until;

const JOBS: usize = 2_000;
/// As the limit below.
const LIMIT: usize = 5;
const NODES: usize = 4;
const KILLS: usize = 6;

async fn no_more_run_than_there_are_permits_while_nodes_are_killed(database: Database) {
    let _turn = my_turn().await;
    let cluster = Cluster::on(database).await;
    let limit = ResourceLimit::new("printer", 5).unwrap().retry_delay(Duration::from_millis(100));
    cluster.client.set_resource_limit(&limit).await.unwrap();
    let job = |serial| cluster.client.enqueue(Deal { serial, work: Work::Sleep(5) }).resource("printer");
    let submitted = cluster.client.submit_all((0..JOBS as u64).map(job).collect::<Vec<_>>()).await.unwrap();
    let order: HashMap<JobId, usize> = submitted.iter().map(JobHandle::id).zip(0..).collect();

    // A machine that is busy with the test must not make a node seem dead while its handlers run.
    let timers = ["--heartbeat-ms", "200", "--grace-ms", "2000", "--scan-ms", "200"];
    let mut nodes: Vec<Node> = (0..NODES).map(|_| cluster.node_with(&timers)).collect();
    let mut deaths: HashMap<u32, i64> = HashMap::new();
    for kill in 0..KILLS {
        let begun = JOBS * (kill + 1) / (KILLS + 2);
        until("some to begin", async || cluster.begun().len() >= begun).await;
        let victim = nodes.remove(fastrand::usize(..NODES));
        let pid = victim.pid();
        victim.kill().unwrap();
        deaths.insert(pid, now());
        nodes.push(cluster.node_with(&timers));
    }
    until("the last job", async || cluster.count(JobState::Succeeded).await == JOBS as u64).await;
    drop(nodes);

    let most = most_at_once(&cluster, &deaths);
    let interrupted = interrupted(&cluster, &order).await;
    let overtaken = most_overtaken(&cluster, &order, &interrupted);
    println!("{database:?}: at most {most} at once, overtaken by {overtaken}; {} interrupted", interrupted.len());
    assert!(most <= LIMIT, "{most} ran at once");
    assert!(most == LIMIT, "only {most} ran at once: the test has seen nothing");
    assert!(overtaken <= 2 * LIMIT * NODES, "a job was overtaken by {overtaken} younger ones");
    let left: Vec<_> = cluster.client.resources().await.unwrap();
    assert!(left.iter().all(|resource| resource.in_use == 0), "{left:?}");
}

/// How many handlers ran at once: a handler ends when it says so, or with its process.
fn most_at_once(cluster: &Cluster, deaths: &HashMap<u32, i64>) -> usize {
    let mut open: HashMap<(u32, Run), i64> = HashMap::new();
    // At the same microsecond ends come first.
    let mut steps: Vec<(i64, i64)> = Vec::new();
    for line in cluster.lines() {
        match line.deed {
            Deed::Began(run) => {
                open.insert((line.pid, run), line.at);
                steps.push((line.at, 1));
            }
            Deed::Ended(run) => {
                open.remove(&(line.pid, run)).expect("it began");
                steps.push((line.at, -1));
            }
            _ => {}
        }
    }
    steps.extend(open.keys().map(|(pid, _)| (*deaths.get(pid).expect("what did not end was killed"), -1)));
    steps.sort_unstable();
    let mut running = 0;
    let mut most = 0;
    for (_, step) in steps {
        running += step;
        most = most.max(running);
    }
    usize::try_from(most).unwrap()
}

/// Jobs that a dying node had claimed: they had their permits and waited for something else.
async fn interrupted(cluster: &Cluster, jobs: &HashMap<JobId, usize>) -> HashSet<JobId> {
    let mut interrupted = HashSet::new();
    for id in jobs.keys() {
        let attempts = cluster.client.attempts(*id).await.unwrap();
        if attempts.iter().any(|attempt| attempt.status == AttemptStatus::Crashed) {
            interrupted.insert(*id);
        }
    }
    interrupted
}

/// By how many younger jobs a job was overtaken, at most.
fn most_overtaken(cluster: &Cluster, order: &HashMap<JobId, usize>, interrupted: &HashSet<JobId>) -> usize {
    let mut begun: Vec<(i64, usize)> = Vec::new();
    let mut seen = HashSet::new();
    for (at, _, run) in cluster.begun() {
        if seen.insert(run.job) && !interrupted.contains(&run.job) {
            begun.push((at, order[&run.job]));
        }
    }
    begun.sort_unstable();
    let overtaken = |(at, place): &(usize, usize)| begun[..*at].iter().filter(|(_, other)| other > place).count();
    begun.iter().map(|(_, place)| *place).enumerate().map(|one| overtaken(&one)).max().unwrap_or(0)
}

on_both_servers!(no_more_run_than_there_are_permits_while_nodes_are_killed);
