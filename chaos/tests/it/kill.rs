use std::collections::HashSet;

use ratchet::{JobId, JobState, NodeId};
use ratchet_chaos::deal::Work;
use ratchet_chaos::node::Node;

use crate::site::Site;
use crate::until::until;

const JOBS: usize = 1_000;

/// Kills nodes in the middle of a thousand jobs and checks what the survivors make of it.
async fn kill_in_the_middle(site: &Site, victims: Vec<Node>, survivor: Option<Node>) {
    let ids = site.submit(Work::Sleep(3), JOBS).await;
    until("a third of the jobs", async || site.begun().len() > JOBS / 3).await;
    let dead: HashSet<NodeId> = victims.iter().map(|node| node.id).collect();
    for victim in victims {
        victim.kill().unwrap();
    }
    let running = site.in_state(JobState::Running).await;
    let orphans: HashSet<JobId> =
        running.iter().filter(|job| job.picked_by.is_some_and(|node| dead.contains(&node))).map(|job| job.id).collect();
    let before = site.count(JobState::Succeeded).await;
    assert!(before < JOBS as u64, "the kill came in the middle");
    assert!(!orphans.is_empty(), "the dead held jobs");
    let node = survivor.unwrap_or_else(|| site.node());
    until("every job's end", async || site.count(JobState::Succeeded).await == JOBS as u64).await;
    node.quit().unwrap();
    let runs = site.runs();
    for id in ids {
        let times = runs.get(&id).copied().unwrap_or(0);
        assert!(times >= 1, "{id} never ran");
        assert!(times == 1 || (times == 2 && orphans.contains(&id)), "{id} ran {times} times but was not RUNNING");
    }
}

#[tokio::test]
async fn a_killed_node_s_jobs_all_succeed_after_a_restart() {
    let site = Site::new().await;
    let victim = site.node();
    kill_in_the_middle(&site, vec![victim], None).await;
}

#[tokio::test]
async fn of_two_nodes_one_is_killed_and_the_other_takes_its_jobs() {
    let site = Site::new().await;
    let (victim, survivor) = (site.node(), site.node());
    kill_in_the_middle(&site, vec![victim], Some(survivor)).await;
}

#[tokio::test]
async fn two_nodes_killed_at_once_lose_nothing() {
    let site = Site::new().await;
    let victims = vec![site.node(), site.node()];
    kill_in_the_middle(&site, victims, None).await;
}
