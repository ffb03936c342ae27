//! What follows from a settlement, in the same transaction: attempts, alerts, callbacks.

use std::time::Duration;

use ratchet_core::page::PAGE_LIMIT_MAX;
use ratchet_core::store::LastAttempts;
use ratchet_core::{AttemptStatus, Claim, ErrorKind, JobId, JobState, JobType, NewJob, Origin, Settled, Settlement};
use serde_json::json;

use crate::bench::{
    Bench, another_try, assert_refused, deferral, failure, json as text, mins, new_id, new_job, pool, request, rescue,
    spec, success, success_with, work, work_with_key,
};

/// A settlement with a callback, as `decide` makes it.
fn with_callback(settlement: Settlement, job: &Claim) -> (Settlement, JobId) {
    let id = new_id();
    let origin = Origin {
        job_id: job.job.id,
        kind: job.job.spec.kind.clone(),
        params: job.job.spec.params.clone(),
        result: Some(text(&json!(42))),
        error: None,
    };
    let callback = NewJob { job_type: JobType::Callback, origin: Some(origin), ..NewJob::new(id, spec("callback")) };
    (Settlement { new_jobs: vec![callback], ..settlement }, id)
}

pub(crate) async fn a_callback_is_submitted_with_the_settlement(bench: Bench) {
    let claim = bench.running(work()).await;
    let (settlement, callback) = with_callback(success_with(&claim, Some(text(&json!(42)))), &claim);
    assert_eq!(bench.settle(settlement.clone()).await, Settled::Applied);
    let job = bench.job(callback).await;
    assert_eq!((job.state, job.version, job.job_type), (JobState::Pending, 0, JobType::Callback));
    assert_eq!(job.origin, settlement.new_jobs[0].origin);
    let claimed = bench.claim(&request(bench.node, vec![pool("default", &["callback"])])).await;
    assert_eq!(claimed[0].job.id, callback);
    assert_eq!(claimed[0].job.origin, settlement.new_jobs[0].origin, "the claim carries it too");
}

pub(crate) async fn a_callback_of_a_conflict_is_not_submitted(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.defer(&claim, Duration::ZERO).await;
    let (stale, callback) = with_callback(success(&claim), &claim);
    assert_eq!(bench.settle(stale.clone()).await, Settled::Conflict);
    assert!(!bench.exists(callback).await);
    let claim = bench.claim_one().await;
    let (good, made) = with_callback(success(&claim), &claim);
    assert_eq!(bench.turn(&[stale, good], None).await.settled, [Settled::Conflict, Settled::Applied]);
    assert!(!bench.exists(callback).await && bench.exists(made).await);
}

pub(crate) async fn a_callback_is_submitted_once_when_its_settlement_is_repeated(bench: Bench) {
    let claim = bench.running(work()).await;
    let (settlement, callback) = with_callback(success(&claim), &claim);
    assert_eq!(bench.settle(settlement.clone()).await, Settled::Applied);
    let (again, second) = with_callback(Settlement { maybe_applied: true, ..success(&claim) }, &claim);
    assert_eq!(bench.settle(again).await, Settled::AlreadyApplied);
    assert!(bench.exists(callback).await && !bench.exists(second).await);
}

pub(crate) async fn a_conflict_frees_no_key(bench: Bench) {
    let claim = bench.running(work_with_key("mine")).await;
    bench.defer(&claim, Duration::ZERO).await;
    assert_eq!(bench.settle(success(&claim)).await, Settled::Conflict);
    assert_eq!(bench.holder("mine").await, Some(claim.job.id));
}

pub(crate) async fn a_conflict_frees_no_key_that_another_job_has_taken(bench: Bench) {
    let claim = bench.running(work_with_key("mine")).await;
    bench.store.cancel(claim.job.id).await.unwrap();
    let next = bench.submit(work_with_key("mine")).await;
    assert_eq!(bench.settle(success(&claim)).await, Settled::Conflict);
    assert_eq!(bench.holder("mine").await, Some(next));
}

pub(crate) async fn every_attempt_is_recorded_in_order(bench: Bench) {
    bench.submit(work()).await;
    let ends: [fn(&Claim) -> Settlement; 4] = [
        |claim| another_try(claim, Duration::ZERO),
        |claim| deferral(claim, Duration::ZERO),
        rescue,
        |claim| failure(claim, "boom"),
    ];
    let mut expected = Vec::new();
    for end in ends {
        let settlement = end(&bench.claim_one().await);
        expected.extend(settlement.attempt.clone());
        assert_eq!(bench.settle(settlement).await, Settled::Applied);
    }
    let recorded = bench.attempts(expected[0].job_id).await;
    assert_eq!(recorded, expected);
    assert_eq!(
        recorded.iter().map(|a| a.status).collect::<Vec<_>>(),
        [AttemptStatus::Failed, AttemptStatus::Deferred, AttemptStatus::Crashed, AttemptStatus::Failed]
    );
    assert_eq!(recorded.iter().map(|a| a.attempt).collect::<Vec<_>>(), [1, 2, 2, 2]);
}

pub(crate) async fn every_status_of_an_attempt_comes_back(bench: Bench) {
    for status in AttemptStatus::ALL {
        let claim = bench.running(work()).await;
        let mut settlement = failure(&claim, "boom");
        settlement.attempt.as_mut().unwrap().status = status;
        assert_eq!(bench.settle(settlement.clone()).await, Settled::Applied);
        assert_eq!(bench.attempts(claim.job.id).await, [settlement.attempt.unwrap()]);
    }
}

pub(crate) async fn a_settlement_without_an_attempt_records_none(bench: Bench) {
    let claim = bench.running(work()).await;
    let lost = Settlement { attempt: None, ..deferral(&claim, Duration::ZERO) };
    assert_eq!(bench.settle(lost).await, Settled::Applied);
    assert!(bench.attempts(claim.job.id).await.is_empty());
    assert_eq!(bench.job(claim.job.id).await.version, 2);
}

pub(crate) async fn the_last_attempts_are_read_backwards(bench: Bench) {
    let id = bench.submit(work()).await;
    let last = async |before, limit| bench.store.last_attempts(id, before, limit).await.unwrap();
    assert_eq!(last(None, 10).await, LastAttempts::default(), "it never ran");
    for _ in 0..4 {
        let claim = bench.claim_one().await;
        bench.reschedule(&claim, Duration::ZERO).await;
    }
    let mut all = bench.attempts(id).await;
    all.reverse();
    assert_eq!(last(None, 10).await, LastAttempts { items: all.clone(), total: 4 });
    assert_eq!(last(None, 1).await, LastAttempts { items: all[..1].to_vec(), total: 4 }, "the latest");
    assert_eq!(last(Some(all[1].version), 1).await, LastAttempts { items: all[2..3].to_vec(), total: 4 });
    assert_eq!(last(Some(all[3].version), 10).await, LastAttempts { items: vec![], total: 4 });
    for limit in [0, PAGE_LIMIT_MAX + 1] {
        assert_refused(bench.store.last_attempts(id, None, limit).await, &ErrorKind::Invalid);
    }
    let nobody = bench.store.last_attempts(new_id(), None, 10).await.unwrap();
    assert_eq!(nobody, LastAttempts::default());
}

pub(crate) async fn attempts_of_two_jobs_do_not_mix(bench: Bench) {
    let one = bench.failed(work(), "one").await;
    let two = bench.failed(work(), "two").await;
    assert_eq!(bench.attempts(one).await[0].error.as_deref(), Some("one"));
    assert_eq!(bench.attempts(two).await[0].error.as_deref(), Some("two"));
    assert!(bench.attempts(new_id()).await.is_empty());
    let fresh = bench.submit(new_job("other")).await;
    assert!(bench.attempts(fresh).await.is_empty());
}

/// Lets the job fail once more.
async fn fail_again(bench: &Bench, id: JobId, text: &str) {
    bench.store.retry(id).await.unwrap().expect("a failed job can be retried");
    let claim = bench.claim_one().await;
    bench.fail(&claim, text).await;
}

pub(crate) async fn an_alert_is_recorded_once_an_hour(bench: Bench) {
    let id = bench.failed(work(), "boom").await;
    assert_eq!(bench.alerts(id).await, 1);
    bench.advance(mins(30));
    fail_again(&bench, id, "boom").await;
    assert_eq!(bench.alerts(id).await, 1, "the same error within the hour");
    bench.advance(mins(31));
    fail_again(&bench, id, "boom").await;
    assert_eq!(bench.alerts(id).await, 2, "an hour after the alert, not after the last failure");
}

pub(crate) async fn another_error_is_another_alert(bench: Bench) {
    let id = bench.failed(work(), "boom").await;
    fail_again(&bench, id, "bang").await;
    assert_eq!(bench.alerts(id).await, 2);
    let other = bench.failed(work(), "boom").await;
    assert_eq!((bench.alerts(id).await, bench.alerts(other).await), (2, 1), "each job has its own");
}

pub(crate) async fn only_a_dead_letter_alerts(bench: Bench) {
    bench.submit(work()).await;
    let ends: [fn(&Claim) -> Settlement; 4] =
        [|claim| another_try(claim, Duration::ZERO), |claim| deferral(claim, Duration::ZERO), rescue, success];
    for end in ends {
        let claim = bench.claim_one().await;
        assert_eq!(bench.settle(end(&claim)).await, Settled::Applied);
        assert_eq!(bench.alerts(claim.job.id).await, 0);
    }
    let claim = bench.running(work()).await;
    bench.store.cancel(claim.job.id).await.unwrap();
    assert_eq!(bench.alerts(claim.job.id).await, 0);
}
