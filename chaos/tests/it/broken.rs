//! The system itself, broken on purpose: a real run must show it.

use std::time::Duration;

use nix::sys::signal::Signal;
use ratchet::JobState;
use ratchet_chaos::broken::Broken;
use ratchet_chaos::check::{Findings, Promise, Rules, check};
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::{Deal, Work};
use ratchet_chaos::history::{Answer, Fault, FaultKind, Submission};
use ratchet_chaos::node::Node;
use ratchet_chaos::record::now;
use ratchet_chaos::stream::Log;
use ratchet_chaos::trial::{gather, wait_for_ends};

use crate::cluster::{Cluster, my_turn};
use crate::until::until;

const RULES: Rules = Rules { grace: Duration::from_secs(3), end_limit: Duration::from_secs(12) };

/// A few jobs on nodes in which something, or nothing, is broken.
struct Scene {
    cluster: Cluster,
    broken: Option<Broken>,
    submissions: Vec<Submission>,
    faults: Vec<Fault>,
}

impl Scene {
    async fn with(broken: Option<Broken>) -> Self {
        Self { cluster: Cluster::on(Database::Postgres).await, broken, submissions: Vec::new(), faults: Vec::new() }
    }

    fn node(&self) -> Node {
        // The reconcile would tell a node that its jobs are gone before it tries to settle them.
        let timers = ["--heartbeat-ms", "200", "--grace-ms", "3000", "--scan-ms", "100", "--reconcile-ms", "60000"];
        let broken = self.broken.map_or(vec![], |broken| vec!["--broken", broken.name()]);
        self.cluster.node_with(&[&timers[..], &broken].concat())
    }

    async fn submit(&mut self, count: u64, ms: u64) {
        for serial in 1..=count {
            let submitted = self.cluster.client.enqueue(Deal { serial, work: Work::Sleep(ms) }).submit().await;
            self.submissions.push(Submission { serial, answer: Answer::Accepted(submitted.unwrap().id()) });
        }
        until("their begin", async || self.cluster.begun().len() as u64 >= count).await;
    }

    async fn end(self) -> Findings {
        let ended = now();
        wait_for_ends(&self.cluster.client, RULES.end_limit).await.unwrap();
        let mut history =
            gather(&self.cluster.client, &Log::default(), &self.cluster.record, self.faults, ended).await.unwrap();
        history.submissions = self.submissions;
        let findings = check(&history, RULES);
        println!("{:?}: {:#?}", self.broken, findings.violations);
        findings
    }
}

fn broke(findings: &Findings, promise: Promise) -> bool {
    findings.violations.iter().any(|violation| violation.promise == promise)
}

/// A node is stopped past its grace, and goes on while another runs its jobs.
async fn stop_and_go_on(broken: Option<Broken>) -> Findings {
    let mut scene = Scene::with(broken).await;
    let sleeper = scene.node();
    scene.submit(1, 2_000).await;
    let other = scene.node();
    let from = now();
    sleeper.signal(Signal::SIGSTOP).unwrap();
    until("the run elsewhere", async || scene.cluster.begun().len() == 2).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    sleeper.signal(Signal::SIGCONT).unwrap();
    scene.faults.push(Fault { kind: FaultKind::Stopped, pid: Some(sleeper.pid()), from, to: now() });
    until("its end", async || scene.cluster.count(JobState::Succeeded).await == 1).await;
    // The other has to come to its end too, late or not.
    until("the other's end", async || scene.cluster.ended() == 2).await;
    let findings = scene.end().await;
    drop((sleeper, other));
    findings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_result_that_is_accepted_from_whoever_brings_it_is_noticed() {
    let _turn = my_turn().await;
    let whole = stop_and_go_on(None).await;
    assert!(whole.violations.is_empty(), "{:?}", whole.violations);
    assert!(broke(&stop_and_go_on(Some(Broken::Fences)).await, Promise::NoStaleWrite));
}

async fn kill_one_of_two(broken: Option<Broken>) -> Findings {
    let mut scene = Scene::with(broken).await;
    let victim = scene.node();
    scene.submit(3, 700).await;
    let other = scene.node();
    let (pid, from) = (Some(victim.pid()), now());
    victim.kill().unwrap();
    scene.faults.push(Fault { kind: FaultKind::Killed, pid, from, to: i64::MAX });
    let findings = scene.end().await;
    drop(other);
    findings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_job_that_is_dropped_instead_of_rescued_is_noticed() {
    let _turn = my_turn().await;
    let whole = kill_one_of_two(None).await;
    assert!(whole.violations.is_empty(), "{:?}", whole.violations);
    assert!(broke(&kill_one_of_two(Some(Broken::Rescue)).await, Promise::NothingIsLost));
}

/// Two nodes, to which nothing happens.
async fn leave_alone(broken: Option<Broken>) -> Findings {
    let mut scene = Scene::with(broken).await;
    let nodes = [scene.node(), scene.node()];
    // Nodes judge others only after a grace of their own.
    tokio::time::sleep(RULES.grace).await;
    scene.submit(40, 300).await;
    let findings = scene.end().await;
    drop(nodes);
    findings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn jobs_that_are_taken_from_living_nodes_and_ends_that_are_not_written_are_noticed() {
    let _turn = my_turn().await;
    let whole = leave_alone(None).await;
    assert!(whole.violations.is_empty(), "{:?}", whole.violations);
    assert!(broke(&leave_alone(Some(Broken::Grace)).await, Promise::RunsAgainForAReason));
    assert!(broke(&leave_alone(Some(Broken::Settling)).await, Promise::EndsInTime));
}
