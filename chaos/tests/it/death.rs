//! A process that dies right after every single call of its store, in the middle of what hangs together: after a restart
//! everything ends as it should, nothing is stuck and nothing is there twice.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ratchet::{Client, JobExt, JobId, JobRecord, JobState};
use ratchet_chaos::deal::{Deal, Work};
use ratchet_chaos::trial::jobs_in;

use crate::site::Site;
use crate::until::until;

const QUICK: [&str; 6] = ["--heartbeat-ms", "100", "--grace-ms", "500", "--scan-ms", "50"];
/// No scenario here has more calls.
const CALLS_MAX: u64 = 60;
/// How many sites are at work at once: most of the time they wait for a grace.
const TOGETHER: usize = 6;

/// Lets a node die after its first call, after its second, and so on, each time on a fresh site that `begin` fills; a second
/// node goes on, and `check` judges what came of it. Ends when a node has done it all without dying.
async fn die_after_every_call<T: Send + 'static>(
    begin: impl AsyncFn(&Client) -> T,
    done: fn(&[JobRecord], &T) -> bool,
    check: fn(&[JobRecord], &T, &HashMap<JobId, usize>),
) {
    let mut survived = false;
    let mut deaths = 0;
    let mut calls = 1;
    while !survived {
        assert!(calls <= CALLS_MAX, "a node that never gets through");
        let mut sites = Vec::new();
        for calls in calls..calls + TOGETHER as u64 {
            let site = Site::new().await;
            let calls = calls.to_string();
            let node = site.node_with(&[&QUICK[..], &["--dies-after", &calls]].concat());
            let begun = begin(&site.client).await;
            sites.push((site, begun, node));
        }
        calls += TOGETHER as u64;
        for (site, begun, mut node) in sites {
            let deadline = Instant::now() + Duration::from_mins(1);
            let lived = loop {
                if node.has_ended() {
                    break false;
                }
                if done(&all(&site.client).await, &begun) {
                    break true;
                }
                assert!(Instant::now() < deadline, "the node neither ends nor gets through");
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            survived |= lived;
            deaths += usize::from(!lived);
            let second = (!lived).then(|| site.node_with(&QUICK));
            until("the end of it all", async || done(&all(&site.client).await, &begun)).await;
            check(&all(&site.client).await, &begun, &site.runs());
            drop((node, second));
        }
    }
    println!("{deaths} deaths");
    assert!(deaths >= 3, "it dies in the middle: {deaths}");
}

async fn all(client: &Client) -> Vec<JobRecord> {
    jobs_in(client, &JobState::ALL).await.unwrap()
}

fn deal(serial: u64) -> Deal {
    Deal { serial, work: Work::Sleep(1) }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what a scenario has begun is handed on as it is")]
fn all_ended(jobs: &[JobRecord], count: &usize) -> bool {
    jobs.len() >= *count && jobs.iter().all(|job| job.state.is_terminal())
}

/// Every job has ended well, and was stored once; one that was running at the death may have run once more.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "what a scenario has begun is handed on as it is")]
fn ended_well(jobs: &[JobRecord], count: &usize, runs: &HashMap<JobId, usize>) {
    assert_eq!(jobs.len(), *count, "nothing is there twice");
    for job in jobs {
        assert_eq!(job.state, JobState::Succeeded, "{job:?}");
        assert!((1..=2).contains(&runs.get(&job.id).copied().unwrap_or(0)), "{} ran {runs:?}", job.id);
        assert_eq!(job.attempts, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_goes_on_from_wherever_it_was() {
    let begin = async |client: &Client| {
        client.enqueue(deal(1)).then(deal(2)).then(deal(3)).then(deal(4)).submit().await.unwrap();
        4
    };
    die_after_every_call(begin, all_ended, ended_well).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_is_released_once() {
    let begin = async |client: &Client| {
        let mut flow = client.workflow().step("a", deal(1)).step("end", deal(2));
        for serial in 3..7 {
            let name = format!("step {serial}");
            flow = flow.step(&name, deal(serial)).edge("a", &name).edge(&name, "end");
        }
        flow.submit().await.unwrap();
        6
    };
    die_after_every_call(begin, all_ended, ended_well).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_takes_its_branch_and_cancels_the_other() {
    let begin = async |client: &Client| {
        let fails = Deal { serial: 1, work: Work::FailFirst(1) };
        let first = client.enqueue(fails).max_retries(0).then(deal(2)).then_on_failure(deal(3)).submit().await.unwrap();
        (3_usize, first.id())
    };
    let done = |jobs: &[JobRecord], begun: &(usize, JobId)| all_ended(jobs, &begun.0);
    die_after_every_call(begin, done, |jobs, (count, first), _| {
        assert_eq!(jobs.len(), *count);
        for job in jobs {
            let expected = match (job.id == *first, job.canceled_because) {
                (true, _) => JobState::Failed,
                (false, Some(because)) => {
                    assert_eq!(because, *first);
                    JobState::Canceled
                }
                (false, None) => JobState::Succeeded,
            };
            assert_eq!(job.state, expected, "{job:?}");
        }
        let canceled = jobs.iter().filter(|job| job.state == JobState::Canceled).count();
        assert_eq!(canceled, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_fires_each_instant_once() {
    let begin = async |client: &Client| {
        let every = client.schedule(deal(1).with(|step| step.max_retries(0))).every(Duration::from_secs(1));
        every.create().await.unwrap().id()
    };
    let done = |jobs: &[JobRecord], _: &JobId| jobs.iter().filter(|job| job.state == JobState::Succeeded).count() >= 4;
    die_after_every_call(begin, done, |jobs, id, _| {
        let mut instants: Vec<_> = jobs.iter().map(|job| job.scheduled_time).collect();
        instants.sort_unstable();
        let gaps: Vec<i64> = instants.windows(2).map(|pair| (pair[1] - pair[0]).get_seconds()).collect();
        assert!(gaps.iter().all(|gap| *gap == 1), "each second once, none left out: {instants:?}");
        assert!(jobs.iter().all(|job| job.parent == Some(*id)));
    })
    .await;
}
