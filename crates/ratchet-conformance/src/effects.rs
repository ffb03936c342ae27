//! What follows from a settlement, in the same transaction: attempts, alerts, callbacks.

use std::time::Duration;

use ratchet_core::count::CountBy;
use ratchet_core::page::{ArchiveScope, JobFilter, PAGE_LIMIT_MAX};
use ratchet_core::store::{ArchiveRequest, LastAttempts, Removal};
use ratchet_core::{
    AttemptRecord, AttemptStatus, Claim, ErrorKind, JobId, JobState, JobType, NewJob, Origin, Settled, Settlement,
};
use serde_json::json;

use crate::harness::{
    Harness, another_try, assert_refused, deferral, failure, json as text, mins, new_id, new_job, pool, request,
    rescue, spec, success, success_with, work, work_with_key,
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

pub(crate) async fn a_callback_is_submitted_with_the_settlement(harness: Harness) {
    let claim = harness.running(work()).await;
    let (settlement, callback) = with_callback(success_with(&claim, Some(text(&json!(42)))), &claim);
    assert_eq!(harness.settle(settlement.clone()).await, Settled::Applied);
    let job = harness.job(callback).await;
    assert_eq!((job.state, job.version, job.job_type), (JobState::Pending, 0, JobType::Callback));
    assert_eq!(job.origin, settlement.new_jobs[0].origin);
    let claimed = harness.claim(&request(harness.node, vec![pool("default", &["callback"])])).await;
    assert_eq!(claimed[0].job.id, callback);
    assert_eq!(claimed[0].job.origin, settlement.new_jobs[0].origin, "the claim carries it too");
}

pub(crate) async fn a_callback_of_a_conflict_is_not_submitted(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.defer(&claim, Duration::ZERO).await;
    let (stale, callback) = with_callback(success(&claim), &claim);
    assert_eq!(harness.settle(stale.clone()).await, Settled::Conflict);
    assert!(!harness.exists(callback).await);
    let claim = harness.claim_one().await;
    let (good, made) = with_callback(success(&claim), &claim);
    assert_eq!(harness.turn(&[stale, good], None).await.settled, [Settled::Conflict, Settled::Applied]);
    assert!(!harness.exists(callback).await && harness.exists(made).await);
}

pub(crate) async fn a_callback_is_submitted_once_when_its_settlement_is_repeated(harness: Harness) {
    let claim = harness.running(work()).await;
    let (settlement, callback) = with_callback(success(&claim), &claim);
    assert_eq!(harness.settle(settlement.clone()).await, Settled::Applied);
    let (again, second) = with_callback(Settlement { maybe_applied: true, ..success(&claim) }, &claim);
    assert_eq!(harness.settle(again).await, Settled::AlreadyApplied);
    assert!(harness.exists(callback).await && !harness.exists(second).await);
}

pub(crate) async fn a_conflict_frees_no_key(harness: Harness) {
    let claim = harness.running(work_with_key("mine")).await;
    harness.defer(&claim, Duration::ZERO).await;
    assert_eq!(harness.settle(success(&claim)).await, Settled::Conflict);
    assert_eq!(harness.holder("mine").await, Some(claim.job.id));
}

pub(crate) async fn a_conflict_frees_no_key_that_another_job_has_taken(harness: Harness) {
    let claim = harness.running(work_with_key("mine")).await;
    harness.store.cancel(claim.job.id).await.unwrap();
    let next = harness.submit(work_with_key("mine")).await;
    assert_eq!(harness.settle(success(&claim)).await, Settled::Conflict);
    assert_eq!(harness.holder("mine").await, Some(next));
}

pub(crate) async fn every_attempt_is_recorded_in_order(harness: Harness) {
    harness.submit(work()).await;
    let ends: [fn(&Claim) -> Settlement; 4] = [
        |claim| another_try(claim, Duration::ZERO),
        |claim| deferral(claim, Duration::ZERO),
        rescue,
        |claim| failure(claim, "boom"),
    ];
    let mut expected = Vec::new();
    for end in ends {
        let settlement = end(&harness.claim_one().await);
        expected.extend(settlement.attempt.clone());
        assert_eq!(harness.settle(settlement).await, Settled::Applied);
    }
    let recorded = harness.attempts(expected[0].job_id).await;
    assert_eq!(recorded, expected);
    assert_eq!(
        recorded.iter().map(|a| a.status).collect::<Vec<_>>(),
        [AttemptStatus::Failed, AttemptStatus::Deferred, AttemptStatus::Crashed, AttemptStatus::Failed]
    );
    assert_eq!(recorded.iter().map(|a| a.attempt).collect::<Vec<_>>(), [1, 2, 2, 2]);
}

pub(crate) async fn every_status_of_an_attempt_comes_back(harness: Harness) {
    for status in AttemptStatus::ALL {
        let claim = harness.running(work()).await;
        let mut settlement = failure(&claim, "boom");
        settlement.attempt.as_mut().unwrap().status = status;
        assert_eq!(harness.settle(settlement.clone()).await, Settled::Applied);
        assert_eq!(harness.attempts(claim.job.id).await, [settlement.attempt.unwrap()]);
    }
}

/// Wherever a store keeps the attempt that ended a job: in a row of its own or in that of the job.
pub(crate) async fn a_success_is_the_last_attempt_wherever_it_is_read(harness: Harness) {
    let node = harness.node;
    harness.submit(work()).await;
    let ends: [fn(&Claim) -> Settlement; 3] =
        [|claim| another_try(claim, Duration::ZERO), |claim| deferral(claim, Duration::ZERO), success];
    let mut expected = Vec::new();
    for end in ends {
        let settlement = end(&harness.claim_one().await);
        expected.extend(settlement.attempt.clone());
        assert_eq!(harness.settle(settlement).await, Settled::Applied);
    }
    let first_try = harness.running(work()).await;
    let first_try = success(&first_try);
    assert_eq!(harness.settle(first_try.clone()).await, Settled::Applied);
    let (id, lone) = (expected[0].job_id, first_try.attempt.unwrap());
    let by_node = async |archive| {
        let filter = JobFilter { archive, ..JobFilter::default() };
        harness.store.count(&filter, &CountBy::Node).await.unwrap().groups
    };
    let check = async |archive| {
        assert_eq!(harness.attempts(id).await, expected);
        assert_eq!(harness.attempts(lone.job_id).await, std::slice::from_ref(&lone));
        let last = harness.store.last_attempts(id, None, 1).await.unwrap();
        assert_eq!((&last.items[..], last.total), (&expected[2..], 3));
        let before = harness.store.last_attempts(id, Some(expected[2].version), 5).await.unwrap();
        assert_eq!((before.items, before.total), (vec![expected[1].clone(), expected[0].clone()], 3));
        assert_eq!(by_node(archive).await, [(node.to_string(), 2)].into());
    };
    check(ArchiveScope::Live).await;
    harness.advance(Duration::from_secs(1));
    let (removal, state, age) = (Removal::Archive, JobState::Succeeded, Duration::ZERO);
    let request = ArchiveRequest { removal, state, age, after: None, limit: 10, only: Some(vec![id, lone.job_id]) };
    assert_eq!(harness.store.archive(&request).await.unwrap().moved, 2);
    check(ArchiveScope::Archived).await;
    assert!(harness.store.delete(lone.job_id).await.unwrap());
    assert_eq!(harness.attempts(lone.job_id).await, []);
}

pub(crate) async fn a_success_whose_attempt_says_something_else_is_recorded_as_it_is(harness: Harness) {
    let changes: [fn(&mut AttemptRecord); 3] = [
        |attempt| attempt.attempt += 1,
        |attempt| attempt.status = AttemptStatus::TimedOut,
        |attempt| attempt.error = Some("a warning".into()),
    ];
    for change in changes {
        let mut settlement = success(&harness.running(work()).await);
        change(settlement.attempt.as_mut().unwrap());
        assert_eq!(harness.settle(settlement.clone()).await, Settled::Applied);
        assert_eq!(harness.attempts(settlement.fence.job_id).await, [settlement.attempt.clone().unwrap()]);
        let again = Settlement { maybe_applied: true, ..settlement };
        assert_eq!(harness.settle(again).await, Settled::AlreadyApplied);
    }
}

pub(crate) async fn a_settlement_without_an_attempt_records_none(harness: Harness) {
    let claim = harness.running(work()).await;
    let lost = Settlement { attempt: None, ..deferral(&claim, Duration::ZERO) };
    assert_eq!(harness.settle(lost).await, Settled::Applied);
    assert!(harness.attempts(claim.job.id).await.is_empty());
    assert_eq!(harness.job(claim.job.id).await.version, 2);
}

pub(crate) async fn the_last_attempts_are_read_backwards(harness: Harness) {
    let id = harness.submit(work()).await;
    let last = async |before, limit| harness.store.last_attempts(id, before, limit).await.unwrap();
    assert_eq!(last(None, 10).await, LastAttempts::default(), "it never ran");
    for _ in 0..4 {
        let claim = harness.claim_one().await;
        harness.reschedule(&claim, Duration::ZERO).await;
    }
    let mut all = harness.attempts(id).await;
    all.reverse();
    assert_eq!(last(None, 10).await, LastAttempts { items: all.clone(), total: 4 });
    assert_eq!(last(None, 1).await, LastAttempts { items: all[..1].to_vec(), total: 4 }, "the latest");
    assert_eq!(last(Some(all[1].version), 1).await, LastAttempts { items: all[2..3].to_vec(), total: 4 });
    assert_eq!(last(Some(all[3].version), 10).await, LastAttempts { items: vec![], total: 4 });
    for limit in [0, PAGE_LIMIT_MAX + 1] {
        assert_refused(harness.store.last_attempts(id, None, limit).await, &ErrorKind::Invalid);
    }
    let nobody = harness.store.last_attempts(new_id(), None, 10).await.unwrap();
    assert_eq!(nobody, LastAttempts::default());
}

pub(crate) async fn attempts_of_two_jobs_do_not_mix(harness: Harness) {
    let one = harness.failed(work(), "one").await;
    let two = harness.failed(work(), "two").await;
    assert_eq!(harness.attempts(one).await[0].error.as_deref(), Some("one"));
    assert_eq!(harness.attempts(two).await[0].error.as_deref(), Some("two"));
    assert!(harness.attempts(new_id()).await.is_empty());
    let fresh = harness.submit(new_job("other")).await;
    assert!(harness.attempts(fresh).await.is_empty());
}

/// Lets the job fail once more.
async fn fail_again(harness: &Harness, id: JobId, text: &str) {
    harness.store.retry(id).await.unwrap().expect("a failed job can be retried");
    let claim = harness.claim_one().await;
    harness.fail(&claim, text).await;
}

pub(crate) async fn an_alert_is_recorded_once_an_hour(harness: Harness) {
    let id = harness.failed(work(), "boom").await;
    assert_eq!(harness.alerts(id).await, 1);
    harness.advance(mins(30));
    fail_again(&harness, id, "boom").await;
    assert_eq!(harness.alerts(id).await, 1, "the same error within the hour");
    harness.advance(mins(31));
    fail_again(&harness, id, "boom").await;
    assert_eq!(harness.alerts(id).await, 2, "an hour after the alert, not after the last failure");
}

pub(crate) async fn another_error_is_another_alert(harness: Harness) {
    let id = harness.failed(work(), "boom").await;
    fail_again(&harness, id, "bang").await;
    assert_eq!(harness.alerts(id).await, 2);
    let other = harness.failed(work(), "boom").await;
    assert_eq!((harness.alerts(id).await, harness.alerts(other).await), (2, 1), "each job has its own");
}

pub(crate) async fn only_a_dead_letter_alerts(harness: Harness) {
    harness.submit(work()).await;
    let ends: [fn(&Claim) -> Settlement; 4] =
        [|claim| another_try(claim, Duration::ZERO), |claim| deferral(claim, Duration::ZERO), rescue, success];
    for end in ends {
        let claim = harness.claim_one().await;
        assert_eq!(harness.settle(end(&claim)).await, Settled::Applied);
        assert_eq!(harness.alerts(claim.job.id).await, 0);
    }
    let claim = harness.running(work()).await;
    harness.store.cancel(claim.job.id).await.unwrap();
    assert_eq!(harness.alerts(claim.job.id).await, 0);
}
