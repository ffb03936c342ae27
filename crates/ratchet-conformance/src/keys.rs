//! Business keys, which at most one live job holds, and idempotency keys, which are taken for ever.

use ratchet_core::store::Submitted;
use ratchet_core::{ErrorKind, JobId, JobState, NewJob, StartState};

use crate::bench::{
    Bench, assert_refused, business_key, idempotency_key, mins, new_job, work, work_once, work_with_key,
};
use crate::signals::wait;

async fn assert_held(bench: &Bench, key: &str, holder: JobId) {
    assert_eq!(bench.holder(key).await, Some(holder));
    let refused = bench.try_submit(work_with_key(key)).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key(key), holder });
}

async fn assert_free(bench: &Bench, key: &str) {
    assert_eq!(bench.holder(key).await, None);
    let next = bench.submit(work_with_key(key)).await;
    assert_eq!(bench.holder(key).await, Some(next));
}

pub(crate) async fn a_business_key_is_held_while_its_job_is_pending_running_or_deferred(bench: Bench) {
    let id = bench.submit(work_with_key("mine")).await;
    assert_held(&bench, "mine", id).await;
    let claim = bench.claim_one().await;
    assert_held(&bench, "mine", id).await;
    bench.defer(&claim, mins(5)).await;
    assert_held(&bench, "mine", id).await;
    bench.advance(mins(6));
    let claim = bench.claim_one().await;
    bench.reschedule(&claim, mins(5)).await;
    assert_held(&bench, "mine", id).await;
    bench.advance(mins(6));
    let claim = bench.claim_one().await;
    bench.rescue(&claim).await;
    assert_held(&bench, "mine", id).await;
}

pub(crate) async fn a_business_key_is_held_through_pause_and_resume(bench: Bench) {
    let id = bench.submit(work_with_key("mine")).await;
    bench.store.pause(id).await.unwrap().expect("a pending job can be paused");
    assert_held(&bench, "mine", id).await;
    bench.store.resume(id).await.unwrap().expect("a paused job can be resumed");
    assert_held(&bench, "mine", id).await;
}

pub(crate) async fn a_business_key_is_held_while_its_job_waits(bench: Bench) {
    let id = bench.submit(work_with_key("mine").awaiting(wait("go", None))).await;
    assert_held(&bench, "mine", id).await;
    bench.release(id).await;
    assert_held(&bench, "mine", id).await;
}

pub(crate) async fn a_business_key_is_free_after_success(bench: Bench) {
    let claim = bench.running(work_with_key("mine")).await;
    bench.succeed(&claim).await;
    assert_free(&bench, "mine").await;
    assert_eq!(bench.job(claim.job.id).await.business_key, Some(business_key("mine")), "it is still known by it");
}

pub(crate) async fn a_business_key_is_free_after_failure(bench: Bench) {
    bench.failed(work_with_key("mine"), "boom").await;
    assert_free(&bench, "mine").await;
}

pub(crate) async fn a_business_key_is_free_after_cancellation(bench: Bench) {
    let id = bench.submit(work_with_key("pending")).await;
    bench.store.cancel(id).await.unwrap().expect("a pending job can be cancelled");
    assert_free(&bench, "pending").await;
    let running = bench.running(new_running("running")).await.job.id;
    bench.store.cancel(running).await.unwrap().expect("a running job can be cancelled");
    assert_free(&bench, "running").await;
    let paused = bench.submit(work_with_key("paused")).await;
    bench.store.pause(paused).await.unwrap().expect("a pending job can be paused");
    bench.store.cancel(paused).await.unwrap().expect("a paused job can be cancelled");
    assert_free(&bench, "paused").await;
    let waiting = bench.submit(NewJob { start: StartState::Waiting, ..work_with_key("waiting") }).await;
    bench.store.cancel(waiting).await.unwrap().expect("a waiting job can be cancelled");
    assert_free(&bench, "waiting").await;
}

/// A job that is claimed before any other.
fn new_running(key: &str) -> NewJob {
    let mut job = work_with_key(key);
    job.spec.priority = ratchet_core::Priority::Critical;
    job
}

pub(crate) async fn a_job_paused_after_its_failure_holds_no_key(bench: Bench) {
    let id = bench.failed(work_with_key("mine"), "boom").await;
    bench.store.pause(id).await.unwrap().expect("a failed job can be paused");
    assert_eq!(bench.holder("mine").await, None);
    bench.submit(work_with_key("mine")).await;
    bench.store.resume(id).await.unwrap().expect("it goes back to FAILED, for which it needs no key");
    assert_eq!(bench.state(id).await, JobState::Failed);
}

pub(crate) async fn a_retried_job_takes_its_key_again_and_frees_it_once(bench: Bench) {
    let id = bench.failed(work_with_key("mine"), "boom").await;
    bench.store.retry(id).await.unwrap().expect("a failed job can be retried");
    assert_held(&bench, "mine", id).await;
    let claim = bench.claim_one().await;
    bench.succeed(&claim).await;
    assert_free(&bench, "mine").await;
}

pub(crate) async fn a_retry_is_refused_while_another_job_holds_the_key(bench: Bench) {
    let id = bench.failed(work_with_key("mine"), "boom").await;
    let holder = bench.submit(work_with_key("mine")).await;
    let before = bench.job(id).await;
    let refused = bench.store.retry(id).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key("mine"), holder });
    assert_eq!(bench.job(id).await, before);
    bench.store.cancel(holder).await.unwrap();
    bench.store.retry(id).await.unwrap().expect("the key is free now");
    assert_eq!(bench.holder("mine").await, Some(id));
}

pub(crate) async fn each_business_key_finds_its_own_job(bench: Bench) {
    let one = bench.submit(work_with_key("one")).await;
    let two = bench.submit(work_with_key("two")).await;
    assert_eq!((bench.holder("one").await, bench.holder("two").await), (Some(one), Some(two)));
    bench.store.cancel(one).await.unwrap();
    assert_eq!((bench.holder("one").await, bench.holder("two").await), (None, Some(two)));
    assert_eq!(bench.holder("three").await, None);
    assert_eq!(bench.first_with("one").await, None, "a business key is no idempotency key");
}

pub(crate) async fn an_idempotency_key_stands_for_its_first_job(bench: Bench) {
    let first = bench.submit(work_once("once")).await;
    let other = NewJob { idempotency_key: Some(idempotency_key("once")), ..new_job("other.kind") };
    let ghost = other.id;
    assert_eq!(bench.try_submit(other).await.unwrap(), [Submitted::Existing(first)]);
    assert!(!bench.exists(ghost).await);
    let claim = bench.claim_one().await;
    bench.succeed(&claim).await;
    assert_eq!(bench.try_submit(work_once("once")).await.unwrap(), [Submitted::Existing(first)], "also after its end");
    assert_eq!(bench.first_with("once").await, Some(first));
    bench.submit(work_once("another")).await;
}

pub(crate) async fn an_idempotency_key_counts_within_one_call(bench: Bench) {
    let (first, second, third) = (work_once("once"), work_once("once"), work_once("once"));
    let id = first.id;
    let outcomes = bench.submit_units(vec![vec![first, second], vec![third]]).await;
    assert_eq!(outcomes[0].as_ref().unwrap(), &[Submitted::Created(id), Submitted::Existing(id)]);
    assert_eq!(outcomes[1].as_ref().unwrap(), &[Submitted::Existing(id)]);
    assert_eq!(bench.claim_all().await.len(), 1);
}

pub(crate) async fn a_key_of_a_refused_unit_is_free_for_the_next_of_the_same_call(bench: Bench) {
    bench.submit(work_with_key("taken")).await;
    let (lost, next) = (work_once("once"), work_once("once"));
    let next_id = next.id;
    let outcomes = bench.submit_units(vec![vec![lost, work_with_key("taken")], vec![next]]).await;
    assert!(outcomes[0].is_err());
    assert_eq!(outcomes[1].as_ref().unwrap(), &[Submitted::Created(next_id)]);
}

pub(crate) async fn a_job_that_stands_for_another_takes_no_business_key(bench: Bench) {
    let first = bench.submit(work_once("once")).await;
    let again = NewJob { business_key: Some(business_key("mine")), ..work_once("once") };
    assert_eq!(bench.try_submit(again).await.unwrap(), [Submitted::Existing(first)]);
    assert_eq!(bench.holder("mine").await, None);
    let holder = bench.submit(work_with_key("mine")).await;
    let again = NewJob { business_key: Some(business_key("mine")), ..work_once("once") };
    assert_eq!(bench.try_submit(again).await.unwrap(), [Submitted::Existing(first)], "a held key does not refuse it");
    assert_eq!(bench.holder("mine").await, Some(holder));
}

pub(crate) async fn jobs_without_keys_do_not_meet(bench: Bench) {
    let ids = bench.submit_each(vec![work(), work(), work()]).await;
    assert_eq!(bench.store.find(&ids).await.unwrap().len(), 3);
}
