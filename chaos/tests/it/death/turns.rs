//! A node dies with two calls of its store under way: one that settles, and one that claims.

use std::collections::HashMap;
use std::time::Duration;

use clap::ValueEnum as _;
use ratchet::{JobId, JobState};
use ratchet_chaos::check::{Rules, check};
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::{Deal, Work};
use ratchet_chaos::history::{Answer, Fault, FaultKind, Submission};
use ratchet_chaos::record::now;
use ratchet_chaos::stream::Log;
use ratchet_chaos::trial::{gather, wait_for_ends};
use ratchet_chaos::twin::Moment;

use super::QUICK;
use crate::cluster::{Cluster, my_turn};
use crate::until::until;

const JOBS: u64 = 800;
const RULES: Rules = Rules { grace: Duration::from_millis(500), end_limit: Duration::from_mins(1) };

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_dies_while_it_settles_and_claims_loses_and_doubles_nothing() {
    let _turn = my_turn().await;
    for moment in Moment::value_variants() {
        dies_at(*moment).await;
    }
}

async fn dies_at(moment: Moment) {
    let cluster = Cluster::on(Database::Postgres).await;
    let jobs = (1..=JOBS).map(|serial| cluster.client.enqueue(Deal { serial, work: Work::Sleep(1) }).max_retries(0));
    let submitted = cluster.client.submit_all(jobs.collect::<Vec<_>>()).await.unwrap();
    let submitted: Vec<JobId> = submitted.iter().map(ratchet::JobHandle::id).collect();
    let name = moment.to_possible_value().expect("every moment has a name");
    let from = now();
    let mut node = cluster.node_with(&[&QUICK[..], &["--slots", "160", "--dies-between", name.get_name()]].concat());
    let pid = Some(node.pid());
    // Nothing else aborts it, so that the two calls have met.
    until(&format!("the death {moment:?}"), async || node.has_aborted().unwrap()).await;
    let second = cluster.node_with(&QUICK);
    wait_for_ends(&cluster.client, RULES.end_limit).await.unwrap();

    let fault = Fault { kind: FaultKind::Killed, pid, from, to: i64::MAX };
    let mut history = gather(&cluster.client, &Log::default(), &cluster.record, vec![fault], now()).await.unwrap();
    let accepted = |(serial, id): (u64, &JobId)| Submission { serial, answer: Answer::Accepted(*id) };
    history.submissions = (1..=JOBS).zip(&submitted).map(accepted).collect();
    let findings = check(&history, RULES);
    assert!(findings.violations.is_empty(), "{moment:?}: {:#?}", findings.violations);
    assert_eq!(cluster.count(JobState::Succeeded).await, JOBS, "{moment:?}");
    let mut runs: HashMap<JobId, u32> = HashMap::new();
    for (_, _, run) in cluster.begun() {
        *runs.entry(run.job).or_default() += 1;
    }
    assert!(runs.values().all(|runs| *runs <= 2), "{moment:?}: {runs:?}");
    second.quit().unwrap();
}
