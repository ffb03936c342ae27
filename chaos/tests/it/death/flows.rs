//! What follows from a job, and schedules.

use std::collections::HashMap;
use std::time::Duration;

use ratchet::{Client, JobExt, JobId, JobRecord, JobState};
use ratchet_chaos::deal::{Deal, Work};
use ratchet_chaos::errand::quick;

use super::{Dying, die_after_every_call};
use crate::until::until;

/// Fills a site with `begin` and lets a node die in it; a second one goes on, and `check` judges what came of it.
async fn goes_on_after_every_death<T>(
    begin: impl AsyncFn(&Client) -> T,
    done: fn(&[JobRecord], &T) -> bool,
    check: fn(&[JobRecord], &T, &HashMap<JobId, usize>),
) {
    die_after_every_call(async |dying: Dying| {
        let node = dying.node(&[]);
        let begun = begin(dying.client()).await;
        let over = async || done(&dying.jobs().await, &begun);
        let lived = dying.lives(node, over).await;
        let second = (!lived).then(|| dying.second());
        until("the end of it all", over).await;
        check(&dying.jobs().await, &begun, &dying.site.runs());
        drop(second);
        lived
    })
    .await;
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what a scene has begun is handed on as it is")]
fn all_ended(jobs: &[JobRecord], count: &usize) -> bool {
    super::all_ended(jobs, *count)
}

/// Every job has ended well, and was stored once; one that was running at the death may have run once more.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "what a scene has begun is handed on as it is")]
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
        client.enqueue(quick(1)).then(quick(2)).then(quick(3)).then(quick(4)).submit().await.unwrap();
        4
    };
    goes_on_after_every_death(begin, all_ended, ended_well).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_is_released_once() {
    let begin = async |client: &Client| {
        let mut flow = client.workflow().step("a", quick(1)).step("end", quick(2));
        for serial in 3..7 {
            let name = format!("step {serial}");
            flow = flow.step(&name, quick(serial)).edge("a", &name).edge(&name, "end");
        }
        flow.submit().await.unwrap();
        6
    };
    goes_on_after_every_death(begin, all_ended, ended_well).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_takes_its_branch_and_cancels_the_other() {
    let begin = async |client: &Client| {
        let fails = Deal { serial: 1, work: Work::FailFirst(1) };
        let first =
            client.enqueue(fails).max_retries(0).then(quick(2)).then_on_failure(quick(3)).submit().await.unwrap();
        (3_usize, first.id())
    };
    let done = |jobs: &[JobRecord], begun: &(usize, JobId)| all_ended(jobs, &begun.0);
    goes_on_after_every_death(begin, done, |jobs, (count, first), _| {
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
        let every = client.schedule(quick(1).with(|step| step.max_retries(0))).every(Duration::from_secs(1));
        every.create().await.unwrap().id()
    };
    let done = |jobs: &[JobRecord], _: &JobId| jobs.iter().filter(|job| job.state == JobState::Succeeded).count() >= 4;
    goes_on_after_every_death(begin, done, |jobs, id, _| {
        let mut instants: Vec<_> = jobs.iter().map(|job| job.scheduled_time).collect();
        instants.sort_unstable();
        let gaps: Vec<i64> = instants.windows(2).map(|pair| (pair[1] - pair[0]).get_seconds()).collect();
        assert!(gaps.iter().all(|gap| *gap == 1), "each second once, none left out: {instants:?}");
        assert!(jobs.iter().all(|job| job.parent == Some(*id)));
    })
    .await;
}
