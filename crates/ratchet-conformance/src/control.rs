//! What a person may ask of one job: cancel, pause, resume; and the release of one that waits.

use std::time::Duration;

use ratchet_core::transition::Place;
use ratchet_core::{AttemptStatus, Due, JobState, NewJob};

use crate::harness::{Harness, assert_about, ids, mins, new_id, work};
use crate::signals::{awaiting, to_job};

fn waiting() -> NewJob {
    awaiting("go", None)
}

pub(crate) async fn a_live_job_can_be_canceled(harness: Harness) {
    let running = harness.running(work()).await.job.id;
    let paused = harness.submit(work()).await;
    harness.store.pause(paused).await.unwrap();
    let waiting = harness.submit(waiting()).await;
    let pending = harness.submit(work()).await;
    let places = [
        (running, Place::Running),
        (paused, Place::PausedPending),
        (waiting, Place::Waiting),
        (pending, Place::Pending),
    ];
    for (id, from) in places {
        let before = harness.job(id).await;
        let canceled = harness.store.cancel(id).await.unwrap().expect("a live job can be canceled");
        assert_eq!((canceled.from, canceled.job.state), (from, JobState::Canceled));
        assert_eq!(canceled.job.version, before.version + 1);
        assert_about(canceled.job.terminated_at.expect("it ended"), harness.now().await);
        assert_eq!(canceled.job, harness.job(id).await, "the answer shows the job as it now is");
    }
    assert!(harness.claim_all().await.is_empty());
}

pub(crate) async fn a_canceled_attempt_is_recorded_with_its_timing(harness: Harness) {
    harness.submit(work()).await;
    harness.advance(mins(2));
    let claim = harness.claim_one().await;
    harness.advance(mins(5));
    let canceled = harness.store.cancel(claim.job.id).await.unwrap().expect("a running job can be canceled").job;
    let attempts = harness.attempts(claim.job.id).await;
    assert_eq!(attempts.len(), 1);
    let attempt = &attempts[0];
    assert_eq!((attempt.status, attempt.attempt), (AttemptStatus::Canceled, 1));
    assert_eq!((attempt.version, attempt.node), (claim.fence.version, harness.node));
    assert_eq!(Some(attempt.timing.started_at), claim.job.picked_at);
    assert_about(attempt.timing.ended_at, harness.now().await);
    assert_eq!(attempt.timing.duration.as_secs() / 60, 5);
    assert_eq!(attempt.timing.queue_wait.as_secs() / 60, 2);
    assert_eq!(canceled.timing, Some(attempt.timing));
    assert_eq!((canceled.attempts, canceled.result, canceled.last_error), (0, None, None));
}

pub(crate) async fn a_job_canceled_before_it_ran_has_no_attempt(harness: Harness) {
    let id = harness.submit(work()).await;
    harness.store.cancel(id).await.unwrap().expect("a pending job can be canceled");
    assert!(harness.attempts(id).await.is_empty());
    assert_eq!(harness.job(id).await.timing, None);
}

pub(crate) async fn what_is_over_cannot_be_canceled(harness: Harness) {
    let failed = harness.failed(work(), "boom").await;
    let paused = harness.failed(work(), "boom").await;
    harness.store.pause(paused).await.unwrap();
    let done = harness.running(work()).await;
    harness.succeed(&done).await;
    let canceled = harness.submit(work()).await;
    harness.store.cancel(canceled).await.unwrap();
    for id in [failed, paused, done.job.id, canceled] {
        let before = harness.job(id).await;
        assert_eq!(harness.store.cancel(id).await.unwrap(), None);
        assert_eq!(harness.job(id).await, before);
    }
}

pub(crate) async fn a_paused_job_goes_on_from_where_it_was(harness: Harness) {
    let id = harness.submit(NewJob { due: Due::At(harness.now().await - mins(7)), ..work() }).await;
    let before = harness.job(id).await;
    let paused = harness.store.pause(id).await.unwrap().expect("a pending job can be paused");
    assert_eq!((paused.from, paused.job.place(), paused.job.version), (Place::Pending, Place::PausedPending, 1));
    assert!(harness.claim_all().await.is_empty());
    harness.advance(mins(30));
    let resumed = harness.store.resume(id).await.unwrap().expect("a paused job can be resumed");
    assert_eq!((resumed.from, resumed.job.place(), resumed.job.version), (Place::PausedPending, Place::Pending, 2));
    assert_eq!(resumed.job.scheduled_time, before.scheduled_time, "it has waited all the time");
    assert_eq!(ids(&harness.claim_all().await), [id]);
}

pub(crate) async fn a_paused_job_keeps_its_attempts_error_and_deferral(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.reschedule(&claim, Duration::ZERO).await;
    let claim = harness.claim_one().await;
    harness.defer(&claim, mins(20)).await;
    let before = harness.job(claim.job.id).await;
    harness.store.pause(before.id).await.unwrap().expect("a deferred job can be paused");
    let resumed = harness.store.resume(before.id).await.unwrap().expect("and resumed").job;
    assert_eq!((resumed.attempts, &resumed.last_error), (1, &before.last_error));
    assert_eq!(resumed.due(), before.due());
    assert!(harness.claim_all().await.is_empty(), "it is still put off");
    harness.advance(mins(21));
    assert_eq!(ids(&harness.claim_all().await), [before.id]);
}

pub(crate) async fn a_failed_job_can_be_paused_and_is_failed_again_when_resumed(harness: Harness) {
    let id = harness.failed(work(), "boom").await;
    let before = harness.job(id).await;
    let paused = harness.store.pause(id).await.unwrap().expect("a failed job can be paused");
    assert_eq!((paused.from, paused.job.place()), (Place::Failed, Place::PausedFailed));
    assert_eq!((paused.job.attempts, &paused.job.last_error), (1, &before.last_error));
    assert_eq!(harness.store.retry(id).await.unwrap(), None, "a paused job is not retried");
    assert!(harness.claim_all().await.is_empty());
    let resumed = harness.store.resume(id).await.unwrap().expect("a paused job can be resumed");
    assert_eq!((resumed.from, resumed.job.place()), (Place::PausedFailed, Place::Failed));
    let version = before.version + 2;
    let mut expected = before;
    expected.version = version;
    assert_eq!(resumed.job, expected, "nothing of its end is lost");
    assert_eq!(harness.job(id).await, expected);
    assert_eq!(harness.attempts(id).await.len(), 1);
}

pub(crate) async fn pausing_a_paused_job_changes_nothing(harness: Harness) {
    let id = harness.submit(work()).await;
    harness.store.pause(id).await.unwrap();
    let before = harness.job(id).await;
    assert_eq!(harness.store.pause(id).await.unwrap(), None);
    assert_eq!(harness.job(id).await, before);
}

pub(crate) async fn a_running_job_cannot_be_paused(harness: Harness) {
    let claim = harness.running(work()).await;
    assert_eq!(harness.store.pause(claim.job.id).await.unwrap(), None);
    assert_eq!(harness.job(claim.job.id).await, claim.job);
    harness.succeed(&claim).await;
}

pub(crate) async fn a_job_that_is_not_paused_cannot_be_resumed(harness: Harness) {
    let id = harness.submit(work()).await;
    assert_eq!(harness.store.resume(id).await.unwrap(), None);
    assert_eq!(harness.job(id).await.version, 0);
}

pub(crate) async fn a_released_job_is_due_from_its_release(harness: Harness) {
    let id = harness.submit(waiting()).await;
    harness.advance(mins(60));
    harness.release(id).await;
    let released = harness.job(id).await;
    assert_eq!((released.place(), released.version), (Place::Pending, 1));
    assert_about(released.scheduled_time, harness.now().await);
    assert_eq!(ids(&harness.claim_all().await), [id]);
}

pub(crate) async fn a_job_released_before_its_time_keeps_its_time(harness: Harness) {
    let time = ratchet_core::clock::later(harness.now().await, mins(30));
    let id = harness.submit(NewJob { due: Due::At(time), ..waiting() }).await;
    let before = harness.job(id).await;
    harness.release(id).await;
    assert_eq!(harness.job(id).await.scheduled_time, before.scheduled_time);
    assert!(harness.claim_all().await.is_empty());
    harness.advance(mins(31));
    assert_eq!(ids(&harness.claim_all().await), [id]);
}

pub(crate) async fn a_job_is_released_once(harness: Harness) {
    let id = harness.submit(waiting()).await;
    harness.release(id).await;
    let before = harness.job(id).await;
    assert_eq!(harness.count(&to_job(id)).await, 0);
    assert_eq!(harness.job(id).await, before);
}

pub(crate) async fn nothing_can_be_asked_of_an_unknown_job(harness: Harness) {
    harness.submit(work()).await;
    let unknown = new_id();
    assert_eq!(harness.store.cancel(unknown).await.unwrap(), None);
    assert_eq!(harness.store.pause(unknown).await.unwrap(), None);
    assert_eq!(harness.store.resume(unknown).await.unwrap(), None);
    assert_eq!(harness.store.retry(unknown).await.unwrap(), None);
    assert_eq!(harness.count(&to_job(unknown)).await, 0);
}
