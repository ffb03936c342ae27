//! What a person may ask of one job: cancel, pause, resume; and the release of one that waits.

use std::time::Duration;

use ratchet_core::transition::Place;
use ratchet_core::{AttemptStatus, Due, JobState, NewJob};

use crate::bench::{Bench, assert_about, ids, mins, new_id, work};
use crate::signals::{awaiting, to_job};

fn waiting() -> NewJob {
    awaiting("go", None)
}

pub(crate) async fn a_live_job_can_be_cancelled(bench: Bench) {
    let running = bench.running(work()).await.job.id;
    let paused = bench.submit(work()).await;
    bench.store.pause(paused).await.unwrap();
    let waiting = bench.submit(waiting()).await;
    let pending = bench.submit(work()).await;
    let places = [
        (running, Place::Running),
        (paused, Place::PausedPending),
        (waiting, Place::Waiting),
        (pending, Place::Pending),
    ];
    for (id, from) in places {
        let before = bench.job(id).await;
        let canceled = bench.store.cancel(id).await.unwrap().expect("a live job can be cancelled");
        assert_eq!((canceled.from, canceled.job.state), (from, JobState::Canceled));
        assert_eq!(canceled.job.version, before.version + 1);
        assert_about(canceled.job.terminated_at.expect("it ended"), bench.now().await);
        assert_eq!(canceled.job, bench.job(id).await, "the answer shows the job as it now is");
    }
    assert!(bench.claim_all().await.is_empty());
}

pub(crate) async fn a_cancelled_attempt_is_recorded_with_its_timing(bench: Bench) {
    bench.submit(work()).await;
    bench.advance(mins(2));
    let claim = bench.claim_one().await;
    bench.advance(mins(5));
    let canceled = bench.store.cancel(claim.job.id).await.unwrap().expect("a running job can be cancelled").job;
    let attempts = bench.attempts(claim.job.id).await;
    assert_eq!(attempts.len(), 1);
    let attempt = &attempts[0];
    assert_eq!((attempt.status, attempt.attempt), (AttemptStatus::Canceled, 1));
    assert_eq!((attempt.version, attempt.node), (claim.fence.version, bench.node));
    assert_eq!(Some(attempt.timing.started_at), claim.job.picked_at);
    assert_about(attempt.timing.ended_at, bench.now().await);
    assert_eq!(attempt.timing.duration.as_secs() / 60, 5);
    assert_eq!(attempt.timing.queue_wait.as_secs() / 60, 2);
    assert_eq!(canceled.timing, Some(attempt.timing));
    assert_eq!((canceled.attempts, canceled.result, canceled.last_error), (0, None, None));
}

pub(crate) async fn a_job_cancelled_before_it_ran_has_no_attempt(bench: Bench) {
    let id = bench.submit(work()).await;
    bench.store.cancel(id).await.unwrap().expect("a pending job can be cancelled");
    assert!(bench.attempts(id).await.is_empty());
    assert_eq!(bench.job(id).await.timing, None);
}

pub(crate) async fn what_is_over_cannot_be_cancelled(bench: Bench) {
    let failed = bench.failed(work(), "boom").await;
    let paused = bench.failed(work(), "boom").await;
    bench.store.pause(paused).await.unwrap();
    let done = bench.running(work()).await;
    bench.succeed(&done).await;
    let canceled = bench.submit(work()).await;
    bench.store.cancel(canceled).await.unwrap();
    for id in [failed, paused, done.job.id, canceled] {
        let before = bench.job(id).await;
        assert_eq!(bench.store.cancel(id).await.unwrap(), None);
        assert_eq!(bench.job(id).await, before);
    }
}

pub(crate) async fn a_paused_job_goes_on_from_where_it_was(bench: Bench) {
    let id = bench.submit(NewJob { due: Due::At(bench.now().await - mins(7)), ..work() }).await;
    let before = bench.job(id).await;
    let paused = bench.store.pause(id).await.unwrap().expect("a pending job can be paused");
    assert_eq!((paused.from, paused.job.place(), paused.job.version), (Place::Pending, Place::PausedPending, 1));
    assert!(bench.claim_all().await.is_empty());
    bench.advance(mins(30));
    let resumed = bench.store.resume(id).await.unwrap().expect("a paused job can be resumed");
    assert_eq!((resumed.from, resumed.job.place(), resumed.job.version), (Place::PausedPending, Place::Pending, 2));
    assert_eq!(resumed.job.scheduled_time, before.scheduled_time, "it has waited all the time");
    assert_eq!(ids(&bench.claim_all().await), [id]);
}

pub(crate) async fn a_paused_job_keeps_its_attempts_error_and_deferral(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.reschedule(&claim, Duration::ZERO).await;
    let claim = bench.claim_one().await;
    bench.defer(&claim, mins(20)).await;
    let before = bench.job(claim.job.id).await;
    bench.store.pause(before.id).await.unwrap().expect("a deferred job can be paused");
    let resumed = bench.store.resume(before.id).await.unwrap().expect("and resumed").job;
    assert_eq!((resumed.attempts, &resumed.last_error), (1, &before.last_error));
    assert_eq!(resumed.due(), before.due());
    assert!(bench.claim_all().await.is_empty(), "it is still put off");
    bench.advance(mins(21));
    assert_eq!(ids(&bench.claim_all().await), [before.id]);
}

pub(crate) async fn a_failed_job_can_be_paused_and_is_failed_again_when_resumed(bench: Bench) {
    let id = bench.failed(work(), "boom").await;
    let before = bench.job(id).await;
    let paused = bench.store.pause(id).await.unwrap().expect("a failed job can be paused");
    assert_eq!((paused.from, paused.job.place()), (Place::Failed, Place::PausedFailed));
    assert_eq!((paused.job.attempts, &paused.job.last_error), (1, &before.last_error));
    assert_eq!(bench.store.retry(id).await.unwrap(), None, "a paused job is not retried");
    assert!(bench.claim_all().await.is_empty());
    let resumed = bench.store.resume(id).await.unwrap().expect("a paused job can be resumed");
    assert_eq!((resumed.from, resumed.job.place()), (Place::PausedFailed, Place::Failed));
    let version = before.version + 2;
    let mut expected = before;
    expected.version = version;
    assert_eq!(resumed.job, expected, "nothing of its end is lost");
    assert_eq!(bench.job(id).await, expected);
    assert_eq!(bench.attempts(id).await.len(), 1);
}

pub(crate) async fn pausing_a_paused_job_changes_nothing(bench: Bench) {
    let id = bench.submit(work()).await;
    bench.store.pause(id).await.unwrap();
    let before = bench.job(id).await;
    assert_eq!(bench.store.pause(id).await.unwrap(), None);
    assert_eq!(bench.job(id).await, before);
}

pub(crate) async fn a_running_job_cannot_be_paused(bench: Bench) {
    let claim = bench.running(work()).await;
    assert_eq!(bench.store.pause(claim.job.id).await.unwrap(), None);
    assert_eq!(bench.job(claim.job.id).await, claim.job);
    bench.succeed(&claim).await;
}

pub(crate) async fn a_job_that_is_not_paused_cannot_be_resumed(bench: Bench) {
    let id = bench.submit(work()).await;
    assert_eq!(bench.store.resume(id).await.unwrap(), None);
    assert_eq!(bench.job(id).await.version, 0);
}

pub(crate) async fn a_released_job_is_due_from_its_release(bench: Bench) {
    let id = bench.submit(waiting()).await;
    bench.advance(mins(60));
    bench.release(id).await;
    let released = bench.job(id).await;
    assert_eq!((released.place(), released.version), (Place::Pending, 1));
    assert_about(released.scheduled_time, bench.now().await);
    assert_eq!(ids(&bench.claim_all().await), [id]);
}

pub(crate) async fn a_job_released_before_its_time_keeps_its_time(bench: Bench) {
    let time = ratchet_core::clock::later(bench.now().await, mins(30));
    let id = bench.submit(NewJob { due: Due::At(time), ..waiting() }).await;
    let before = bench.job(id).await;
    bench.release(id).await;
    assert_eq!(bench.job(id).await.scheduled_time, before.scheduled_time);
    assert!(bench.claim_all().await.is_empty());
    bench.advance(mins(31));
    assert_eq!(ids(&bench.claim_all().await), [id]);
}

pub(crate) async fn a_job_is_released_once(bench: Bench) {
    let id = bench.submit(waiting()).await;
    bench.release(id).await;
    let before = bench.job(id).await;
    assert_eq!(bench.count(&to_job(id)).await, 0);
    assert_eq!(bench.job(id).await, before);
}

pub(crate) async fn nothing_can_be_asked_of_an_unknown_job(bench: Bench) {
    bench.submit(work()).await;
    let unknown = new_id();
    assert_eq!(bench.store.cancel(unknown).await.unwrap(), None);
    assert_eq!(bench.store.pause(unknown).await.unwrap(), None);
    assert_eq!(bench.store.resume(unknown).await.unwrap(), None);
    assert_eq!(bench.store.retry(unknown).await.unwrap(), None);
    assert_eq!(bench.count(&to_job(unknown)).await, 0);
}
