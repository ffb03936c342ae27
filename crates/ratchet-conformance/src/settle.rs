//! Ending attempts: what the job's row becomes, and whose word counts.

use std::time::Duration;

use ratchet_core::claim::Fence;
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::store::Progress;
use ratchet_core::{Change, Claim, JobState, NodeId, Settled, Settlement, limits};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{
    Harness, another_try, assert_about, deferral, failure, fenced, ids, json as text, mins, rescue, success,
    success_with, work, work_with_key, works,
};

pub(crate) async fn success_keeps_result_timing_and_attempts(harness: Harness) {
    let claim = harness.running(work()).await;
    let settlement = success_with(&claim, Some(text(&json!({"total": 3}))));
    assert_eq!(harness.settle(settlement.clone()).await, Settled::Applied);
    let job = harness.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts), (JobState::Succeeded, 2, 1));
    assert_eq!(job.result.unwrap().decode::<serde_json::Value>().unwrap(), json!({"total": 3}));
    assert_eq!(job.timing, settlement.attempt.map(|attempt| attempt.timing));
    assert_about(job.terminated_at.expect("it ended"), harness.now().await);
    assert_eq!(job.last_error, None);
}

pub(crate) async fn success_without_a_result_has_none(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.succeed(&claim).await;
    assert_eq!(harness.job(claim.job.id).await.result, None);
}

pub(crate) async fn failure_keeps_error_timing_and_attempts(harness: Harness) {
    let first = harness.running(work()).await;
    harness.reschedule(&first, Duration::ZERO).await;
    let claim = harness.claim_one().await;
    let settlement = failure(&claim, "the second was the last");
    assert_eq!(harness.settle(settlement.clone()).await, Settled::Applied);
    let job = harness.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts), (JobState::Failed, 4, 2));
    assert_eq!(job.last_error.as_deref(), Some("the second was the last"));
    assert_eq!(job.timing, settlement.attempt.map(|attempt| attempt.timing));
    assert_about(job.terminated_at.expect("it ended"), harness.now().await);
    assert_eq!(job.result, None);
}

pub(crate) async fn a_rescheduled_job_waits_with_its_error_and_attempts(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.advance(mins(3));
    harness.reschedule(&claim, mins(10)).await;
    let job = harness.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts), (JobState::Pending, 2, 1));
    assert_eq!(job.last_error.as_deref(), Some("not yet"));
    assert_about(job.scheduled_time, harness.now().await + mins(10));
    assert!(harness.claim_all().await.is_empty());
    harness.advance(mins(11));
    let claim = harness.claim_one().await;
    assert_eq!((claim.fence.version, claim.job.attempts), (3, 1));
}

pub(crate) async fn a_deferred_job_consumes_no_attempt_and_keeps_its_time(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.advance(mins(3));
    harness.defer(&claim, mins(10)).await;
    let job = harness.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts, job.last_error), (JobState::Pending, 2, 0, None));
    assert_eq!(job.scheduled_time, claim.job.scheduled_time);
    assert_about(job.deferred_until.expect("it is put off"), harness.now().await + mins(10));
    assert!(harness.claim_all().await.is_empty());
    harness.advance(mins(11));
    assert_eq!(ids(&harness.claim_all().await), [job.id]);
}

pub(crate) async fn a_job_deferred_by_nothing_can_run_at_once(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.defer(&claim, mins(10)).await;
    harness.advance(mins(11));
    let claim = harness.claim_one().await;
    harness.defer(&claim, Duration::ZERO).await;
    assert_eq!(harness.job(claim.job.id).await.deferred_until, None);
    assert_eq!(ids(&harness.claim_all().await), [claim.job.id]);
}

pub(crate) async fn a_rescued_job_counts_the_crash_and_keeps_its_time(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.advance(mins(3));
    harness.rescue(&claim).await;
    let job = harness.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts, job.crash_count), (JobState::Pending, 2, 0, 1));
    assert_eq!((job.scheduled_time, job.deferred_until), (claim.job.scheduled_time, None));
    let claim = harness.claim_one().await;
    assert_eq!(claim.job.crash_count, 1);
    harness.defer(&claim, Duration::ZERO).await;
    assert_eq!(harness.job(job.id).await.crash_count, 1, "a job that went back has proven nothing");
}

pub(crate) async fn a_normally_ended_attempt_clears_the_crash_count(harness: Harness) {
    let ends: [fn(&Claim) -> Settlement; 3] =
        [success, |claim| failure(claim, "boom"), |claim| another_try(claim, Duration::ZERO)];
    for end in ends {
        let claim = harness.running(work()).await;
        harness.rescue(&claim).await;
        let claim = harness.claim_one().await;
        assert_eq!(claim.job.crash_count, 1);
        assert_eq!(harness.settle(end(&claim)).await, Settled::Applied);
        assert_eq!(harness.job(claim.job.id).await.crash_count, 0);
        harness.store.cancel(claim.job.id).await.unwrap();
    }
}

pub(crate) async fn the_last_crash_ends_in_the_dead_letter_queue(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.rescue(&claim).await;
    let claim = harness.claim_one().await;
    let mut last = failure(&claim, "its node died 3 times in a row");
    if let Change::Fail { attempts, reason, .. } = &mut last.change {
        *attempts = 0;
        *reason = DeadLetterReason::CrashLimit { crash_count: 3 };
    }
    assert_eq!(harness.settle(last).await, Settled::Applied);
    let job = harness.job(claim.job.id).await;
    assert_eq!((job.state, job.crash_count, job.attempts), (JobState::Failed, 3, 0));
}

pub(crate) async fn a_job_that_goes_back_has_no_owner(harness: Harness) {
    let ends: [fn(&Claim) -> Settlement; 3] =
        [rescue, |claim| deferral(claim, mins(1)), |claim| another_try(claim, mins(1))];
    for end in ends {
        let claim = harness.running(work()).await;
        let progress = Progress { job_id: claim.job.id, version: claim.fence.version, fraction: 0.5 };
        harness.store.reconcile(harness.node, &[progress]).await.unwrap();
        assert_eq!(harness.job(claim.job.id).await.progress, Some(0.5));
        assert_eq!(harness.settle(end(&claim)).await, Settled::Applied);
        let job = harness.job(claim.job.id).await;
        assert_eq!((job.picked_by, job.picked_at, job.progress), (None, None, None));
        harness.store.cancel(job.id).await.unwrap();
    }
}

/// Asserts that no settlement by this fence changes anything.
async fn assert_fenced_off(harness: &Harness, claim: &Claim, fence: Fence) {
    let before = harness.store.find(&[fence.job_id]).await.unwrap();
    let attempts = harness.attempts(fence.job_id).await;
    let alerts = harness.alerts(fence.job_id).await;
    let all =
        [success(claim), failure(claim, "late"), another_try(claim, mins(1)), deferral(claim, mins(1)), rescue(claim)];
    for settlement in all {
        assert_eq!(harness.settle(fenced(settlement, fence)).await, Settled::Conflict);
        assert_eq!(harness.store.find(&[fence.job_id]).await.unwrap(), before);
        assert_eq!(harness.attempts(fence.job_id).await, attempts);
        assert_eq!(harness.alerts(fence.job_id).await, alerts);
    }
}

pub(crate) async fn a_node_whose_job_was_rescued_can_finish_nothing(harness: Harness) {
    let slow = harness.another_node().await;
    harness.submit(work()).await;
    let late = harness.claim_one_as(slow).await;
    harness.rescue(&late).await;
    assert_fenced_off(&harness, &late, late.fence).await;
    let claim = harness.claim_one().await;
    assert_fenced_off(&harness, &late, late.fence).await;
    harness.succeed(&claim).await;
    assert_fenced_off(&harness, &late, late.fence).await;
}

pub(crate) async fn an_earlier_claim_of_the_same_node_can_finish_nothing(harness: Harness) {
    let late = harness.running(work()).await;
    harness.defer(&late, Duration::ZERO).await;
    let claim = harness.claim_one().await;
    assert_fenced_off(&harness, &late, late.fence).await;
    harness.succeed(&claim).await;
}

pub(crate) async fn another_node_cannot_finish_the_job(harness: Harness) {
    let claim = harness.running(work()).await;
    let other = harness.another_node().await;
    assert_fenced_off(&harness, &claim, Fence { node: other, ..claim.fence }).await;
    assert_fenced_off(&harness, &claim, Fence { node: NodeId(Uuid::new_v4()), ..claim.fence }).await;
    assert_fenced_off(&harness, &claim, Fence { version: claim.fence.version + 1, ..claim.fence }).await;
    harness.succeed(&claim).await;
}

pub(crate) async fn a_canceled_job_can_be_finished_by_nobody(harness: Harness) {
    let claim = harness.running(work_with_key("mine")).await;
    harness.store.cancel(claim.job.id).await.unwrap().expect("a running job can be canceled");
    assert_fenced_off(&harness, &claim, claim.fence).await;
    assert_fenced_off(&harness, &claim, Fence { version: claim.fence.version + 1, ..claim.fence }).await;
}

pub(crate) async fn an_unknown_job_can_be_finished_by_nobody(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.store.cancel(claim.job.id).await.unwrap();
    harness.store.delete(claim.job.id).await.unwrap();
    assert_fenced_off(&harness, &claim, claim.fence).await;
}

pub(crate) async fn a_fence_from_before_a_retry_stays_stale(harness: Harness) {
    let first = harness.running(work()).await;
    harness.fail(&first, "boom").await;
    let revived = harness.store.retry(first.job.id).await.unwrap().expect("a failed job can be retried");
    assert_eq!(revived.job.version, 3, "the version goes on");
    let second = harness.claim_one().await;
    assert_eq!(second.fence.version, 4);
    assert_fenced_off(&harness, &first, first.fence).await;
    harness.succeed(&second).await;
}

pub(crate) async fn a_fence_settles_once_even_in_one_call(harness: Harness) {
    let claim = harness.running(work()).await;
    let turn = harness.turn(&[another_try(&claim, mins(1)), success(&claim)], None).await;
    assert_eq!(turn.settled, [Settled::Applied, Settled::Conflict]);
    let job = harness.job(claim.job.id).await;
    assert_eq!((job.state, job.version), (JobState::Pending, 2));
    assert_eq!(harness.attempts(job.id).await.len(), 1);
}

pub(crate) async fn a_stale_settlement_does_not_harm_its_neighbors(harness: Harness) {
    harness.submit_each(works(3)).await;
    let claims = harness.claim_all().await;
    harness.store.cancel(claims[1].job.id).await.unwrap();
    let all: Vec<_> = claims.iter().map(success).collect();
    let turn = harness.turn(&all, None).await;
    assert_eq!(turn.settled, [Settled::Applied, Settled::Conflict, Settled::Applied]);
    assert_eq!(harness.state(claims[0].job.id).await, JobState::Succeeded);
    assert_eq!(harness.state(claims[1].job.id).await, JobState::Canceled);
    assert_eq!(harness.state(claims[2].job.id).await, JobState::Succeeded);
}

pub(crate) async fn hundreds_of_jobs_are_settled_in_one_turn(harness: Harness) {
    harness.submit_each(works(600)).await;
    let mut request = harness.request();
    (request.limit, request.pools[0].free) = (600, 600);
    let claims = harness.claim(&request).await;
    assert_eq!(claims.len(), 600);
    let all: Vec<_> = claims.iter().map(success).collect();
    let turn = harness.turn(&all, None).await;
    assert!(turn.settled.iter().all(|settled| *settled == Settled::Applied));
    assert_eq!(harness.store.count_by_state().await.unwrap()[&JobState::Succeeded], 600);
}

pub(crate) async fn many_large_results_are_settled_in_one_turn(harness: Harness) {
    let result = text(&json!("x".repeat(limits::RESULT_BYTES_MAX - 2)));
    let ids = harness.submit_each(works(300)).await;
    let mut request = harness.request();
    (request.limit, request.pools[0].free) = (300, 300);
    let all: Vec<_> =
        harness.claim(&request).await.iter().map(|claim| success_with(claim, Some(result.clone()))).collect();
    let turn = harness.turn(&all, None).await;
    assert!(turn.settled.iter().all(|settled| *settled == Settled::Applied));
    let found = harness.store.find(&ids).await.unwrap();
    assert_eq!(found.len(), 300);
    assert!(found.iter().all(|job| job.result.as_ref() == Some(&result)));
}

pub(crate) async fn a_settlement_written_before_is_recognized(harness: Harness) {
    let claim = harness.running(work()).await;
    let again = Settlement { maybe_applied: true, ..success(&claim) };
    harness.succeed(&claim).await;
    let before = harness.job(claim.job.id).await;
    assert_eq!(harness.settle(again).await, Settled::AlreadyApplied);
    assert_eq!(harness.job(claim.job.id).await, before);
    assert_eq!(harness.attempts(claim.job.id).await.len(), 1);
    assert_eq!(harness.settle(success(&claim)).await, Settled::Conflict, "it is looked for only when asked");
}

pub(crate) async fn a_settlement_that_was_not_written_before_is_written(harness: Harness) {
    let claim = harness.running(work()).await;
    assert_eq!(harness.settle(Settlement { maybe_applied: true, ..success(&claim) }).await, Settled::Applied);
    assert_eq!(harness.state(claim.job.id).await, JobState::Succeeded);
}

pub(crate) async fn an_end_that_somebody_else_wrote_is_not_taken_for_ones_own(harness: Harness) {
    let canceled = harness.running(work()).await;
    harness.store.cancel(canceled.job.id).await.unwrap();
    let ours = Settlement { maybe_applied: true, ..success(&canceled) };
    assert_eq!(harness.settle(ours).await, Settled::Conflict, "the recorded attempt was canceled, not ours");
    let rescued = harness.running(work()).await;
    harness.rescue(&rescued).await;
    let ours = Settlement { maybe_applied: true, ..success(&rescued) };
    assert_eq!(harness.settle(ours).await, Settled::Conflict, "the recorded attempt crashed, in the eyes of others");
}
