//! Business keys, which at most one live job holds, and idempotency keys, which are taken for ever.

use ratchet_core::store::Submitted;
use ratchet_core::{ErrorKind, JobId, JobState, NewJob, StartState};

use crate::harness::{
    Harness, assert_refused, business_key, idempotency_key, mins, new_job, work, work_once, work_with_key,
};
use crate::signals::wait;

async fn assert_held(harness: &Harness, key: &str, holder: JobId) {
    assert_eq!(harness.holder(key).await, Some(holder));
    let refused = harness.try_submit(work_with_key(key)).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key(key), holder });
}

async fn assert_free(harness: &Harness, key: &str) {
    assert_eq!(harness.holder(key).await, None);
    let next = harness.submit(work_with_key(key)).await;
    assert_eq!(harness.holder(key).await, Some(next));
}

pub(crate) async fn a_business_key_is_held_while_its_job_is_pending_running_or_deferred(harness: Harness) {
    let id = harness.submit(work_with_key("mine")).await;
    assert_held(&harness, "mine", id).await;
    let claim = harness.claim_one().await;
    assert_held(&harness, "mine", id).await;
    harness.defer(&claim, mins(5)).await;
    assert_held(&harness, "mine", id).await;
    harness.advance(mins(6));
    let claim = harness.claim_one().await;
    harness.reschedule(&claim, mins(5)).await;
    assert_held(&harness, "mine", id).await;
    harness.advance(mins(6));
    let claim = harness.claim_one().await;
    harness.rescue(&claim).await;
    assert_held(&harness, "mine", id).await;
}

pub(crate) async fn a_business_key_is_held_through_pause_and_resume(harness: Harness) {
    let id = harness.submit(work_with_key("mine")).await;
    harness.store.pause(id).await.unwrap().expect("a pending job can be paused");
    assert_held(&harness, "mine", id).await;
    harness.store.resume(id).await.unwrap().expect("a paused job can be resumed");
    assert_held(&harness, "mine", id).await;
}

pub(crate) async fn a_business_key_is_held_while_its_job_waits(harness: Harness) {
    let id = harness.submit(work_with_key("mine").awaiting(wait("go", None))).await;
    assert_held(&harness, "mine", id).await;
    harness.release(id).await;
    assert_held(&harness, "mine", id).await;
}

pub(crate) async fn a_business_key_is_free_after_success(harness: Harness) {
    let claim = harness.running(work_with_key("mine")).await;
    harness.succeed(&claim).await;
    assert_free(&harness, "mine").await;
    assert_eq!(harness.job(claim.job.id).await.business_key, Some(business_key("mine")), "it is still known by it");
}

pub(crate) async fn a_business_key_is_free_after_failure(harness: Harness) {
    harness.failed(work_with_key("mine"), "boom").await;
    assert_free(&harness, "mine").await;
}

pub(crate) async fn a_business_key_is_free_after_cancellation(harness: Harness) {
    let id = harness.submit(work_with_key("pending")).await;
    harness.store.cancel(id).await.unwrap().expect("a pending job can be canceled");
    assert_free(&harness, "pending").await;
    let running = harness.running(new_running("running")).await.job.id;
    harness.store.cancel(running).await.unwrap().expect("a running job can be canceled");
    assert_free(&harness, "running").await;
    let paused = harness.submit(work_with_key("paused")).await;
    harness.store.pause(paused).await.unwrap().expect("a pending job can be paused");
    harness.store.cancel(paused).await.unwrap().expect("a paused job can be canceled");
    assert_free(&harness, "paused").await;
    let waiting = harness.submit(NewJob { start: StartState::Waiting, ..work_with_key("waiting") }).await;
    harness.store.cancel(waiting).await.unwrap().expect("a waiting job can be canceled");
    assert_free(&harness, "waiting").await;
}

/// A job that is claimed before any other.
fn new_running(key: &str) -> NewJob {
    let mut job = work_with_key(key);
    job.spec.priority = ratchet_core::Priority::Critical;
    job
}

pub(crate) async fn a_job_paused_after_its_failure_holds_no_key(harness: Harness) {
    let id = harness.failed(work_with_key("mine"), "boom").await;
    harness.store.pause(id).await.unwrap().expect("a failed job can be paused");
    assert_eq!(harness.holder("mine").await, None);
    harness.submit(work_with_key("mine")).await;
    harness.store.resume(id).await.unwrap().expect("it goes back to FAILED, for which it needs no key");
    assert_eq!(harness.state(id).await, JobState::Failed);
}

pub(crate) async fn a_retried_job_takes_its_key_again_and_frees_it_once(harness: Harness) {
    let id = harness.failed(work_with_key("mine"), "boom").await;
    harness.store.retry(id).await.unwrap().expect("a failed job can be retried");
    assert_held(&harness, "mine", id).await;
    let claim = harness.claim_one().await;
    harness.succeed(&claim).await;
    assert_free(&harness, "mine").await;
}

pub(crate) async fn a_retry_is_refused_while_another_job_holds_the_key(harness: Harness) {
    let id = harness.failed(work_with_key("mine"), "boom").await;
    let holder = harness.submit(work_with_key("mine")).await;
    let before = harness.job(id).await;
    let refused = harness.store.retry(id).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key("mine"), holder });
    assert_eq!(harness.job(id).await, before);
    harness.store.cancel(holder).await.unwrap();
    harness.store.retry(id).await.unwrap().expect("the key is free now");
    assert_eq!(harness.holder("mine").await, Some(id));
}

pub(crate) async fn each_business_key_finds_its_own_job(harness: Harness) {
    let one = harness.submit(work_with_key("one")).await;
    let two = harness.submit(work_with_key("two")).await;
    assert_eq!((harness.holder("one").await, harness.holder("two").await), (Some(one), Some(two)));
    harness.store.cancel(one).await.unwrap();
    assert_eq!((harness.holder("one").await, harness.holder("two").await), (None, Some(two)));
    assert_eq!(harness.holder("three").await, None);
    assert_eq!(harness.first_with("one").await, None, "a business key is no idempotency key");
}

pub(crate) async fn an_idempotency_key_stands_for_its_first_job(harness: Harness) {
    let first = harness.submit(work_once("once")).await;
    let other = NewJob { idempotency_key: Some(idempotency_key("once")), ..new_job("other.kind") };
    let ghost = other.id;
    assert_eq!(harness.try_submit(other).await.unwrap(), [Submitted::Existing(first)]);
    assert!(!harness.exists(ghost).await);
    let claim = harness.claim_one().await;
    harness.succeed(&claim).await;
    assert_eq!(
        harness.try_submit(work_once("once")).await.unwrap(),
        [Submitted::Existing(first)],
        "also after its end"
    );
    assert_eq!(harness.first_with("once").await, Some(first));
    harness.submit(work_once("another")).await;
}

pub(crate) async fn an_idempotency_key_counts_within_one_call(harness: Harness) {
    let (first, second, third) = (work_once("once"), work_once("once"), work_once("once"));
    let id = first.id;
    let outcomes = harness.submit_units(vec![vec![first, second], vec![third]]).await;
    assert_eq!(outcomes[0].as_ref().unwrap(), &[Submitted::Created(id), Submitted::Existing(id)]);
    assert_eq!(outcomes[1].as_ref().unwrap(), &[Submitted::Existing(id)]);
    assert_eq!(harness.claim_all().await.len(), 1);
}

pub(crate) async fn a_key_of_a_refused_unit_is_free_for_the_next_of_the_same_call(harness: Harness) {
    harness.submit(work_with_key("taken")).await;
    let (lost, next) = (work_once("once"), work_once("once"));
    let next_id = next.id;
    let outcomes = harness.submit_units(vec![vec![lost, work_with_key("taken")], vec![next]]).await;
    assert!(outcomes[0].is_err());
    assert_eq!(outcomes[1].as_ref().unwrap(), &[Submitted::Created(next_id)]);
}

pub(crate) async fn a_job_that_stands_for_another_takes_no_business_key(harness: Harness) {
    let first = harness.submit(work_once("once")).await;
    let again = NewJob { business_key: Some(business_key("mine")), ..work_once("once") };
    assert_eq!(harness.try_submit(again).await.unwrap(), [Submitted::Existing(first)]);
    assert_eq!(harness.holder("mine").await, None);
    let holder = harness.submit(work_with_key("mine")).await;
    let again = NewJob { business_key: Some(business_key("mine")), ..work_once("once") };
    assert_eq!(harness.try_submit(again).await.unwrap(), [Submitted::Existing(first)], "a held key does not refuse it");
    assert_eq!(harness.holder("mine").await, Some(holder));
}

pub(crate) async fn jobs_without_keys_do_not_meet(harness: Harness) {
    let ids = harness.submit_each(vec![work(), work(), work()]).await;
    assert_eq!(harness.store.find(&ids).await.unwrap().len(), 3);
}
