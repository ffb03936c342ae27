//! Retrying a failed job.

use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::transition::Place;
use ratchet_core::{Change, JobState, Settled};

use crate::harness::{Harness, assert_about, failure, ids, mins, work};

pub(crate) async fn a_retried_job_starts_afresh_and_is_due_now(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.rescue(&claim).await;
    let claim = harness.claim_one().await;
    let mut last = failure(&claim, "crashed too often");
    if let Change::Fail { reason, .. } = &mut last.change {
        *reason = DeadLetterReason::CrashLimit { crash_count: 3 };
    }
    assert_eq!(harness.settle(last).await, Settled::Applied);
    harness.advance(mins(60));
    let retried = harness.store.retry(claim.job.id).await.unwrap().expect("a failed job can be retried");
    let job = retried.job;
    assert_eq!((retried.from, job.place(), job.version), (Place::Failed, Place::Pending, 5));
    assert_eq!((job.attempts, job.crash_count, &job.last_error), (0, 0, &None));
    assert_eq!((&job.result, job.timing, job.terminated_at), (&None, None, None));
    assert_about(job.scheduled_time, harness.now().await);
    assert_eq!(job, harness.job(job.id).await);
    assert_eq!(ids(&harness.claim_all().await), [job.id]);
}

pub(crate) async fn a_retried_job_keeps_its_history_and_its_version_goes_on(harness: Harness) {
    let id = harness.failed(work(), "first").await;
    harness.store.retry(id).await.unwrap().expect("a failed job can be retried");
    let claim = harness.claim_one().await;
    assert_eq!(claim.fence.version, 4);
    harness.fail(&claim, "second").await;
    let errors: Vec<_> =
        harness.attempts(id).await.into_iter().map(|attempt| (attempt.version, attempt.error)).collect();
    assert_eq!(errors, [(1, Some("first".to_owned())), (4, Some("second".to_owned()))]);
}

pub(crate) async fn only_failed_jobs_can_be_retried(harness: Harness) {
    let done = harness.running(work()).await;
    harness.succeed(&done).await;
    let running = harness.running(work()).await;
    let canceled = harness.submit(work()).await;
    harness.store.cancel(canceled).await.unwrap();
    let pending = harness.submit(work()).await;
    for id in [done.job.id, running.job.id, canceled, pending] {
        let before = harness.job(id).await;
        assert_eq!(harness.store.retry(id).await.unwrap(), None);
        assert_eq!(harness.job(id).await, before);
    }
}

pub(crate) async fn a_job_can_be_retried_again_and_again(harness: Harness) {
    let id = harness.failed(work(), "boom").await;
    for round in 1..=3 {
        harness.store.retry(id).await.unwrap().expect("a failed job can be retried");
        assert_eq!(harness.store.retry(id).await.unwrap(), None, "it is pending already");
        let claim = harness.claim_one().await;
        harness.fail(&claim, "boom").await;
        let job = harness.job(id).await;
        assert_eq!((job.state, job.attempts, job.version), (JobState::Failed, 1, 2 + 3 * round));
    }
}
