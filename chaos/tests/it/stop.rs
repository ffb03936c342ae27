use std::time::Duration;

use nix::sys::signal::Signal;
use ratchet::sqlite::sqlx::{self, Connection};
use ratchet::{AttemptStatus, JobState};
use ratchet_chaos::deal::Work;
use ratchet_chaos::node::Node;

use crate::site::Site;
use crate::until::until;

/// It would otherwise learn by its reconcile that its jobs are gone, and not even try to settle them.
const LATE_SETTLER: [&str; 2] = ["--reconcile-ms", "600000"];

/// Stops a process at a moment when it does not hold the database's write lock: a probe write shows it.
async fn stop_without_the_lock(site: &Site, node: &Node) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&site.database).busy_timeout(Duration::ZERO);
    let mut probe = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    loop {
        node.signal(Signal::SIGSTOP).unwrap();
        let free = sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut probe).await.is_ok();
        if free {
            return;
        }
        node.signal(Signal::SIGCONT).unwrap();
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

#[tokio::test]
async fn a_stopped_node_that_goes_on_after_its_grace_writes_nothing() {
    let site = Site::new().await;
    let mut sleeper = site.node_with(&LATE_SETTLER);
    let ids = site.submit(Work::Sleep(2_000), 5).await;
    until("five begun jobs", async || site.runs().len() == 5).await;
    stop_without_the_lock(&site, &sleeper).await;
    assert_eq!(site.in_state(JobState::Running).await.len(), 5, "it was stopped before any of them ended");
    let other = site.node();
    until("the jobs' end elsewhere", async || site.count(JobState::Succeeded).await == 5).await;
    let settled: Vec<_> = site.in_state(JobState::Succeeded).await;
    sleeper.signal(Signal::SIGCONT).unwrap();
    until("five conflicts", async || sleeper.stats().unwrap()["conflicts"] == 5).await;
    assert_eq!(sleeper.stats().unwrap()["settled"], 0, "its late results changed nothing");
    until("its new incarnation", async || sleeper.stats().unwrap()["reincarnations"] == 1).await;
    assert_eq!(site.in_state(JobState::Succeeded).await, settled, "not a field of any job changed");
    for id in ids {
        let attempts = site.client.attempts(id).await.unwrap();
        let told: Vec<_> = attempts.iter().map(|attempt| (attempt.status, attempt.node)).collect();
        assert_eq!(told, [(AttemptStatus::Crashed, sleeper.id), (AttemptStatus::Succeeded, other.id)]);
    }
    sleeper.quit().unwrap();
    other.quit().unwrap();
}

#[tokio::test]
async fn fail_and_retry_and_claim_while_it_slept_do_not_let_a_stopped_node_finish() {
    let site = Site::new().await;
    let mut sleeper = site.node_with(&LATE_SETTLER);
    let id = site.submit(Work::FailAfterCrash(500), 1).await[0];
    until("its begin", async || site.runs().len() == 1).await;
    stop_without_the_lock(&site, &sleeper).await;
    let other = site.node();
    // Elsewhere: rescued, claimed, failed, retried by hand, claimed again and running.
    until("its failure", async || site.count(JobState::Failed).await == 1).await;
    assert!(site.client.retry(id).await.unwrap());
    until("its third run", async || site.runs()[&id] == 3).await;
    let running = site.client.find(id).await.unwrap().unwrap();
    assert_eq!((running.state, running.picked_by), (JobState::Running, Some(other.id)));
    sleeper.signal(Signal::SIGCONT).unwrap();
    until("the conflict", async || sleeper.stats().unwrap()["conflicts"] == 1).await;
    until("its success", async || site.count(JobState::Succeeded).await == 1).await;
    let done = site.client.find(id).await.unwrap().unwrap();
    assert_eq!(done.result.unwrap().decode::<u32>().unwrap(), other.pid());
    assert_eq!(sleeper.stats().unwrap()["settled"], 0);
    sleeper.quit().unwrap();
    other.quit().unwrap();
}
