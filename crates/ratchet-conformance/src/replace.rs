//! Canceling a job and submitting another in its place, in one transaction.

use ratchet_core::store::Replacement;
use ratchet_core::transition::Place;
use ratchet_core::{ErrorKind, JobId, JobState, NewJob, Settled, StartState};

use crate::harness::{
    Harness, assert_refused, business_key, idempotency_key, ids, new_id, success, work, work_once, work_with_key,
};

async fn replaced(harness: &Harness, old: JobId, new: NewJob) -> ratchet_core::store::Transitioned {
    match harness.store.replace(old, &new).await.expect("the job can be replaced") {
        Replacement::Replaced(transitioned) => transitioned,
        Replacement::Existing(id) => panic!("{id} stands for the new job"),
    }
}

pub(crate) async fn a_replaced_job_is_canceled_and_names_its_successor(harness: Harness) {
    let old = harness.submit(work()).await;
    let new = work();
    let new_id = new.id;
    let was = replaced(&harness, old, new).await;
    assert_eq!((was.from, was.job.state, was.job.version), (Place::Pending, JobState::Canceled, 1));
    assert_eq!(was.job.superseded_by, Some(new_id));
    assert!(was.job.terminated_at.is_some());
    assert_eq!(was.job, harness.job(old).await);
    let new = harness.job(new_id).await;
    assert_eq!((new.state, new.version, new.superseded_by), (JobState::Pending, 0, None));
    assert_eq!(ids(&harness.claim_all().await), [new_id]);
}

pub(crate) async fn a_running_job_can_be_replaced_and_its_attempt_finishes_nothing(harness: Harness) {
    let claim = harness.running(work()).await;
    let was = replaced(&harness, claim.job.id, work()).await;
    assert_eq!(was.from, Place::Running);
    assert_eq!(harness.attempts(claim.job.id).await.len(), 1, "the canceled attempt is recorded");
    assert_eq!(harness.settle(success(&claim)).await, Settled::Conflict);
    assert_eq!(harness.state(claim.job.id).await, JobState::Canceled);
}

pub(crate) async fn a_waiting_or_paused_job_can_be_replaced(harness: Harness) {
    let waiting = harness.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    assert_eq!(replaced(&harness, waiting, work()).await.from, Place::Waiting);
    let paused = harness.submit(work()).await;
    harness.store.pause(paused).await.unwrap();
    assert_eq!(replaced(&harness, paused, work()).await.from, Place::PausedPending);
}

pub(crate) async fn a_replacement_may_take_over_the_business_key(harness: Harness) {
    let old = harness.submit(work_with_key("mine")).await;
    let new = work_with_key("mine");
    let new_id = new.id;
    replaced(&harness, old, new).await;
    assert_eq!(harness.holder("mine").await, Some(new_id));
    replaced(&harness, new_id, work()).await;
    assert_eq!(harness.holder("mine").await, None, "one without a key frees it");
}

pub(crate) async fn a_refused_replacement_changes_nothing(harness: Harness) {
    let holder = harness.submit(work_with_key("taken")).await;
    let old = harness.submit(work_with_key("mine")).await;
    let before = harness.job(old).await;
    let new = NewJob { idempotency_key: Some(idempotency_key("once")), ..work_with_key("taken") };
    let refused = harness.store.replace(old, &new).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key("taken"), holder });
    assert_eq!(harness.job(old).await, before);
    assert!(!harness.exists(new.id).await);
    assert_eq!((harness.holder("mine").await, harness.first_with("once").await), (Some(old), None));
}

pub(crate) async fn what_is_over_cannot_be_replaced(harness: Harness) {
    let failed = harness.failed(work(), "boom").await;
    let canceled = harness.submit(work()).await;
    harness.store.cancel(canceled).await.unwrap();
    for old in [failed, canceled] {
        let before = harness.job(old).await;
        let new = work_with_key("mine");
        assert_refused(harness.store.replace(old, &new).await, &ErrorKind::Conflict);
        assert_eq!(harness.job(old).await, before);
        assert!(!harness.exists(new.id).await);
        assert_eq!(harness.holder("mine").await, None);
    }
}

pub(crate) async fn an_unknown_job_cannot_be_replaced(harness: Harness) {
    let new = work_with_key("mine");
    assert_refused(harness.store.replace(new_id(), &new).await, &ErrorKind::NotFound);
    assert!(!harness.exists(new.id).await);
    assert_eq!(harness.holder("mine").await, None);
}

pub(crate) async fn a_replacement_with_a_used_idempotency_key_changes_nothing(harness: Harness) {
    let first = harness.submit(work_once("once")).await;
    let old = harness.submit(work_with_key("mine")).await;
    let before = harness.job(old).await;
    let new = work_once("once");
    assert_eq!(harness.store.replace(old, &new).await.unwrap(), Replacement::Existing(first));
    assert_eq!(harness.job(old).await, before);
    assert!(!harness.exists(new.id).await);
}

pub(crate) async fn a_replacement_asked_for_again_finds_the_first(harness: Harness) {
    let old = harness.submit(work()).await;
    let new = work_once("once");
    replaced(&harness, old, new.clone()).await;
    let again = NewJob { id: new_id(), ..new.clone() };
    assert_eq!(harness.store.replace(old, &again).await.unwrap(), Replacement::Existing(new.id));
    assert_eq!(harness.first_with("once").await, Some(new.id));
}
