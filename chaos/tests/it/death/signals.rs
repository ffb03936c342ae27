//! Signals: to a job that waits, to one that is yet to come, and those that do not come.

use std::time::Duration;

use ratchet::{JobId, JobRecord, JobState};
use ratchet_chaos::errand::{Errand, key, quick, signaled};

use super::{Dying, all_ended, die_after_every_call};
use crate::until::until;

/// The job got the signal that says its number, and nothing is kept for others.
async fn got_its_signal_once(dying: &Dying, id: JobId) {
    let awaited = dying.client().awaited_signal(id).await.unwrap().unwrap();
    assert_eq!(awaited.signal.unwrap().payload.decode::<u64>().unwrap(), 0);
    let next = dying.client().enqueue(signaled(0)).await_signal(key(0), None).submit().await.unwrap();
    assert_eq!(next.status().await.unwrap(), JobState::Waiting, "a signal is for one job");
    assert_eq!(dying.site.begun_after_success(&dying.jobs().await), 0, "what has ended runs no more");
}

fn has_succeeded(job: &JobRecord) {
    assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1), "{job:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_gets_its_signal_once_and_goes_on() {
    die_after_every_call(async |dying: Dying| {
        let job = dying.client().enqueue(signaled(0)).await_signal(key(0), None).then(quick(1)).then(quick(2));
        let id = job.submit().await.unwrap().id();
        let errand = Errand::Signal(vec![id]);
        let over = async || all_ended(&dying.jobs().await, 3);
        let lived = dying.lives(dying.node_on(&errand, &[]), over).await;
        let second = (!lived).then(|| dying.second_on(&errand, &[]));
        until("the end of what waited and of what follows", over).await;
        dying.jobs().await.iter().for_each(has_succeeded);
        got_its_signal_once(&dying, id).await;
        drop(second);
        lived
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_that_came_first_is_kept_for_one_job() {
    die_after_every_call(async |dying: Dying| {
        let over = async || all_ended(&dying.jobs().await, 1);
        let lived = dying.lives(dying.node_on(&Errand::SignalFirst, &[]), over).await;
        let second = (!lived).then(|| dying.second_on(&Errand::SignalFirst, &[]));
        until("the end of the job that came late", over).await;
        let jobs = dying.jobs().await;
        assert_eq!(jobs.len(), 1);
        has_succeeded(&jobs[0]);
        got_its_signal_once(&dying, jobs[0].id).await;
        drop(second);
        lived
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_over_ends_once_with_all_that_follows() {
    die_after_every_call(async |dying: Dying| {
        let job = dying.client().enqueue(signaled(0)).await_signal(key(0), Duration::from_millis(200));
        let job = job.on_failure(quick(1)).then_on_failure(quick(2)).then(quick(3)).submit().await.unwrap();
        let over = async || all_ended(&dying.jobs().await, 4);
        let lived = dying.lives(dying.node(&[]), over).await;
        let second = (!lived).then(|| dying.second());
        until("the end of the wait and of what follows", over).await;
        let jobs = dying.jobs().await;
        assert_eq!(jobs.len(), 4, "the callback is there once");
        let runs = dying.site.runs();
        for one in &jobs {
            if one.id == job.id() {
                assert_eq!((one.state, one.attempts), (JobState::Failed, 0), "{one:?}");
                assert!(one.last_error.as_ref().unwrap().contains("no signal"), "{one:?}");
                assert_eq!(runs.get(&one.id), None);
            } else if one.state == JobState::Canceled {
                assert_eq!(one.canceled_because, Some(job.id()));
                assert_eq!(runs.get(&one.id), None);
            } else {
                has_succeeded(one);
                assert!(runs.contains_key(&one.id));
            }
        }
        assert_eq!(jobs.iter().filter(|job| job.state == JobState::Succeeded).count(), 2);
        assert_eq!(dying.site.begun_after_success(&jobs), 0, "what has ended runs no more");
        assert_eq!(dying.client().store().alert_count(job.id()).await.unwrap(), 1);
        drop(second);
        lived
    })
    .await;
}
