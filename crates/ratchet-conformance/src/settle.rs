//! Ending attempts: what the job's row becomes, and whose word counts.

use std::time::Duration;

use ratchet_core::claim::Fence;
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::store::Progress;
use ratchet_core::{Change, Claim, JobState, NodeId, Settled, Settlement, limits};
use serde_json::json;
use uuid::Uuid;

use crate::bench::{
    Bench, another_try, assert_about, deferral, failure, fenced, ids, json as text, mins, rescue, success,
    success_with, work, work_with_key, works,
};

pub(crate) async fn success_keeps_result_timing_and_attempts(bench: Bench) {
    let claim = bench.running(work()).await;
    let settlement = success_with(&claim, Some(text(&json!({"total": 3}))));
    assert_eq!(bench.settle(settlement.clone()).await, Settled::Applied);
    let job = bench.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts), (JobState::Succeeded, 2, 1));
    assert_eq!(job.result.unwrap().decode::<serde_json::Value>().unwrap(), json!({"total": 3}));
    assert_eq!(job.timing, settlement.attempt.map(|attempt| attempt.timing));
    assert_about(job.terminated_at.expect("it ended"), bench.now().await);
    assert_eq!(job.last_error, None);
}

pub(crate) async fn success_without_a_result_has_none(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.succeed(&claim).await;
    assert_eq!(bench.job(claim.job.id).await.result, None);
}

pub(crate) async fn failure_keeps_error_timing_and_attempts(bench: Bench) {
    let first = bench.running(work()).await;
    bench.reschedule(&first, Duration::ZERO).await;
    let claim = bench.claim_one().await;
    let settlement = failure(&claim, "the second was the last");
    assert_eq!(bench.settle(settlement.clone()).await, Settled::Applied);
    let job = bench.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts), (JobState::Failed, 4, 2));
    assert_eq!(job.last_error.as_deref(), Some("the second was the last"));
    assert_eq!(job.timing, settlement.attempt.map(|attempt| attempt.timing));
    assert_about(job.terminated_at.expect("it ended"), bench.now().await);
    assert_eq!(job.result, None);
}

pub(crate) async fn a_rescheduled_job_waits_with_its_error_and_attempts(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.advance(mins(3));
    bench.reschedule(&claim, mins(10)).await;
    let job = bench.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts), (JobState::Pending, 2, 1));
    assert_eq!(job.last_error.as_deref(), Some("not yet"));
    assert_about(job.scheduled_time, bench.now().await + mins(10));
    assert!(bench.claim_all().await.is_empty());
    bench.advance(mins(11));
    let claim = bench.claim_one().await;
    assert_eq!((claim.fence.version, claim.job.attempts), (3, 1));
}

pub(crate) async fn a_deferred_job_consumes_no_attempt_and_keeps_its_time(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.advance(mins(3));
    bench.defer(&claim, mins(10)).await;
    let job = bench.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts, job.last_error), (JobState::Pending, 2, 0, None));
    assert_eq!(job.scheduled_time, claim.job.scheduled_time);
    assert_about(job.deferred_until.expect("it is put off"), bench.now().await + mins(10));
    assert!(bench.claim_all().await.is_empty());
    bench.advance(mins(11));
    assert_eq!(ids(&bench.claim_all().await), [job.id]);
}

pub(crate) async fn a_job_deferred_by_nothing_can_run_at_once(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.defer(&claim, mins(10)).await;
    bench.advance(mins(11));
    let claim = bench.claim_one().await;
    bench.defer(&claim, Duration::ZERO).await;
    assert_eq!(bench.job(claim.job.id).await.deferred_until, None);
    assert_eq!(ids(&bench.claim_all().await), [claim.job.id]);
}

pub(crate) async fn a_rescued_job_counts_the_crash_and_keeps_its_time(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.advance(mins(3));
    bench.rescue(&claim).await;
    let job = bench.job(claim.job.id).await;
    assert_eq!((job.state, job.version, job.attempts, job.crash_count), (JobState::Pending, 2, 0, 1));
    assert_eq!((job.scheduled_time, job.deferred_until), (claim.job.scheduled_time, None));
    let claim = bench.claim_one().await;
    assert_eq!(claim.job.crash_count, 1);
    bench.defer(&claim, Duration::ZERO).await;
    assert_eq!(bench.job(job.id).await.crash_count, 1, "a job that went back has proven nothing");
}

pub(crate) async fn a_normally_ended_attempt_clears_the_crash_count(bench: Bench) {
    let ends: [fn(&Claim) -> Settlement; 3] =
        [success, |claim| failure(claim, "boom"), |claim| another_try(claim, Duration::ZERO)];
    for end in ends {
        let claim = bench.running(work()).await;
        bench.rescue(&claim).await;
        let claim = bench.claim_one().await;
        assert_eq!(claim.job.crash_count, 1);
        assert_eq!(bench.settle(end(&claim)).await, Settled::Applied);
        assert_eq!(bench.job(claim.job.id).await.crash_count, 0);
        bench.store.cancel(claim.job.id).await.unwrap();
    }
}

pub(crate) async fn the_last_crash_ends_in_the_dead_letter_queue(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.rescue(&claim).await;
    let claim = bench.claim_one().await;
    let mut last = failure(&claim, "its node died 3 times in a row");
    if let Change::Fail { attempts, reason, .. } = &mut last.change {
        *attempts = 0;
        *reason = DeadLetterReason::CrashLimit { crash_count: 3 };
    }
    assert_eq!(bench.settle(last).await, Settled::Applied);
    let job = bench.job(claim.job.id).await;
    assert_eq!((job.state, job.crash_count, job.attempts), (JobState::Failed, 3, 0));
}

pub(crate) async fn a_job_that_goes_back_has_no_owner(bench: Bench) {
    let ends: [fn(&Claim) -> Settlement; 3] =
        [rescue, |claim| deferral(claim, mins(1)), |claim| another_try(claim, mins(1))];
    for end in ends {
        let claim = bench.running(work()).await;
        let progress = Progress { job_id: claim.job.id, version: claim.fence.version, fraction: 0.5 };
        bench.store.reconcile(bench.node, &[progress]).await.unwrap();
        assert_eq!(bench.job(claim.job.id).await.progress, Some(0.5));
        assert_eq!(bench.settle(end(&claim)).await, Settled::Applied);
        let job = bench.job(claim.job.id).await;
        assert_eq!((job.picked_by, job.picked_at, job.progress), (None, None, None));
        bench.store.cancel(job.id).await.unwrap();
    }
}

/// Asserts that no settlement by this fence changes anything.
async fn assert_fenced_off(bench: &Bench, claim: &Claim, fence: Fence) {
    let before = bench.store.find(&[fence.job_id]).await.unwrap();
    let attempts = bench.attempts(fence.job_id).await;
    let alerts = bench.alerts(fence.job_id).await;
    let all =
        [success(claim), failure(claim, "late"), another_try(claim, mins(1)), deferral(claim, mins(1)), rescue(claim)];
    for settlement in all {
        assert_eq!(bench.settle(fenced(settlement, fence)).await, Settled::Conflict);
        assert_eq!(bench.store.find(&[fence.job_id]).await.unwrap(), before);
        assert_eq!(bench.attempts(fence.job_id).await, attempts);
        assert_eq!(bench.alerts(fence.job_id).await, alerts);
    }
}

pub(crate) async fn a_node_whose_job_was_rescued_can_finish_nothing(bench: Bench) {
    let slow = bench.another_node().await;
    bench.submit(work()).await;
    let late = bench.claim_one_as(slow).await;
    bench.rescue(&late).await;
    assert_fenced_off(&bench, &late, late.fence).await;
    let claim = bench.claim_one().await;
    assert_fenced_off(&bench, &late, late.fence).await;
    bench.succeed(&claim).await;
    assert_fenced_off(&bench, &late, late.fence).await;
}

pub(crate) async fn an_earlier_claim_of_the_same_node_can_finish_nothing(bench: Bench) {
    let late = bench.running(work()).await;
    bench.defer(&late, Duration::ZERO).await;
    let claim = bench.claim_one().await;
    assert_fenced_off(&bench, &late, late.fence).await;
    bench.succeed(&claim).await;
}

pub(crate) async fn another_node_cannot_finish_the_job(bench: Bench) {
    let claim = bench.running(work()).await;
    let other = bench.another_node().await;
    assert_fenced_off(&bench, &claim, Fence { node: other, ..claim.fence }).await;
    assert_fenced_off(&bench, &claim, Fence { node: NodeId(Uuid::new_v4()), ..claim.fence }).await;
    assert_fenced_off(&bench, &claim, Fence { version: claim.fence.version + 1, ..claim.fence }).await;
    bench.succeed(&claim).await;
}

pub(crate) async fn a_cancelled_job_can_be_finished_by_nobody(bench: Bench) {
    let claim = bench.running(work_with_key("mine")).await;
    bench.store.cancel(claim.job.id).await.unwrap().expect("a running job can be cancelled");
    assert_fenced_off(&bench, &claim, claim.fence).await;
    assert_fenced_off(&bench, &claim, Fence { version: claim.fence.version + 1, ..claim.fence }).await;
}

pub(crate) async fn an_unknown_job_can_be_finished_by_nobody(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.store.cancel(claim.job.id).await.unwrap();
    bench.store.delete(claim.job.id).await.unwrap();
    assert_fenced_off(&bench, &claim, claim.fence).await;
}

pub(crate) async fn a_fence_from_before_a_retry_stays_stale(bench: Bench) {
    let first = bench.running(work()).await;
    bench.fail(&first, "boom").await;
    let revived = bench.store.retry(first.job.id).await.unwrap().expect("a failed job can be retried");
    assert_eq!(revived.job.version, 3, "the version goes on");
    let second = bench.claim_one().await;
    assert_eq!(second.fence.version, 4);
    assert_fenced_off(&bench, &first, first.fence).await;
    bench.succeed(&second).await;
}

pub(crate) async fn a_fence_settles_once_even_in_one_call(bench: Bench) {
    let claim = bench.running(work()).await;
    let turn = bench.turn(&[another_try(&claim, mins(1)), success(&claim)], None).await;
    assert_eq!(turn.settled, [Settled::Applied, Settled::Conflict]);
    let job = bench.job(claim.job.id).await;
    assert_eq!((job.state, job.version), (JobState::Pending, 2));
    assert_eq!(bench.attempts(job.id).await.len(), 1);
}

pub(crate) async fn a_stale_settlement_does_not_harm_its_neighbours(bench: Bench) {
    bench.submit_each(works(3)).await;
    let claims = bench.claim_all().await;
    bench.store.cancel(claims[1].job.id).await.unwrap();
    let all: Vec<_> = claims.iter().map(success).collect();
    let turn = bench.turn(&all, None).await;
    assert_eq!(turn.settled, [Settled::Applied, Settled::Conflict, Settled::Applied]);
    assert_eq!(bench.state(claims[0].job.id).await, JobState::Succeeded);
    assert_eq!(bench.state(claims[1].job.id).await, JobState::Canceled);
    assert_eq!(bench.state(claims[2].job.id).await, JobState::Succeeded);
}

pub(crate) async fn hundreds_of_jobs_are_settled_in_one_turn(bench: Bench) {
    bench.submit_each(works(600)).await;
    let mut request = bench.request();
    (request.limit, request.pools[0].free) = (600, 600);
    let claims = bench.claim(&request).await;
    assert_eq!(claims.len(), 600);
    let all: Vec<_> = claims.iter().map(success).collect();
    let turn = bench.turn(&all, None).await;
    assert!(turn.settled.iter().all(|settled| *settled == Settled::Applied));
    assert_eq!(bench.store.count_by_state().await.unwrap()[&JobState::Succeeded], 600);
}

pub(crate) async fn many_large_results_are_settled_in_one_turn(bench: Bench) {
    let result = text(&json!("x".repeat(limits::RESULT_BYTES_MAX - 2)));
    let ids = bench.submit_each(works(300)).await;
    let mut request = bench.request();
    (request.limit, request.pools[0].free) = (300, 300);
    let all: Vec<_> =
        bench.claim(&request).await.iter().map(|claim| success_with(claim, Some(result.clone()))).collect();
    let turn = bench.turn(&all, None).await;
    assert!(turn.settled.iter().all(|settled| *settled == Settled::Applied));
    let found = bench.store.find(&ids).await.unwrap();
    assert_eq!(found.len(), 300);
    assert!(found.iter().all(|job| job.result.as_ref() == Some(&result)));
}

pub(crate) async fn a_settlement_written_before_is_recognised(bench: Bench) {
    let claim = bench.running(work()).await;
    let again = Settlement { maybe_applied: true, ..success(&claim) };
    bench.succeed(&claim).await;
    let before = bench.job(claim.job.id).await;
    assert_eq!(bench.settle(again).await, Settled::AlreadyApplied);
    assert_eq!(bench.job(claim.job.id).await, before);
    assert_eq!(bench.attempts(claim.job.id).await.len(), 1);
    assert_eq!(bench.settle(success(&claim)).await, Settled::Conflict, "it is looked for only when asked");
}

pub(crate) async fn a_settlement_that_was_not_written_before_is_written(bench: Bench) {
    let claim = bench.running(work()).await;
    assert_eq!(bench.settle(Settlement { maybe_applied: true, ..success(&claim) }).await, Settled::Applied);
    assert_eq!(bench.state(claim.job.id).await, JobState::Succeeded);
}

pub(crate) async fn an_end_that_somebody_else_wrote_is_not_taken_for_ones_own(bench: Bench) {
    let canceled = bench.running(work()).await;
    bench.store.cancel(canceled.job.id).await.unwrap();
    let ours = Settlement { maybe_applied: true, ..success(&canceled) };
    assert_eq!(bench.settle(ours).await, Settled::Conflict, "the recorded attempt was cancelled, not ours");
    let rescued = bench.running(work()).await;
    bench.rescue(&rescued).await;
    let ours = Settlement { maybe_applied: true, ..success(&rescued) };
    assert_eq!(bench.settle(ours).await, Settled::Conflict, "the recorded attempt crashed, in the eyes of others");
}
