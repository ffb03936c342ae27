//! Deleting jobs that are over.

use ratchet_core::{ErrorKind, NewJob, StartState};

use crate::harness::{Harness, assert_refused, new_id, work, work_once};

pub(crate) async fn a_terminal_job_is_deleted_with_its_history(harness: Harness) {
    let failed = harness.failed(work(), "boom").await;
    let claim = harness.running(work()).await;
    harness.succeed(&claim).await;
    let canceled = harness.submit(work()).await;
    harness.store.cancel(canceled).await.unwrap();
    for id in [failed, claim.job.id, canceled] {
        assert!(harness.store.delete(id).await.unwrap());
        assert!(!harness.exists(id).await);
        assert_eq!((harness.attempts(id).await.len(), harness.alerts(id).await), (0, 0), "its history is gone too");
        assert!(!harness.store.delete(id).await.unwrap(), "it can be deleted once");
    }
}

pub(crate) async fn deleting_one_job_leaves_the_others(harness: Harness) {
    let kept = harness.failed(work(), "boom").await;
    let deleted = harness.failed(work(), "boom").await;
    assert!(harness.store.delete(deleted).await.unwrap());
    assert!(!harness.exists(deleted).await);
    assert!(harness.exists(kept).await);
    assert_eq!((harness.attempts(kept).await.len(), harness.alerts(kept).await), (1, 1));
}

pub(crate) async fn a_live_job_is_not_deleted(harness: Harness) {
    let running = harness.running(work()).await.job.id;
    let paused_failed = harness.failed(work(), "boom").await;
    harness.store.pause(paused_failed).await.unwrap();
    let paused = harness.submit(work()).await;
    harness.store.pause(paused).await.unwrap();
    let waiting = harness.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    let pending = harness.submit(work()).await;
    for id in [running, paused_failed, paused, waiting, pending] {
        let before = harness.job(id).await;
        assert_refused(harness.store.delete(id).await, &ErrorKind::Conflict);
        assert_eq!(harness.job(id).await, before);
    }
}

pub(crate) async fn deleting_an_unknown_job_says_false(harness: Harness) {
    assert!(!harness.store.delete(new_id()).await.unwrap());
}

pub(crate) async fn an_idempotency_key_outlives_its_job(harness: Harness) {
    let first = harness.submit(work_once("once")).await;
    harness.store.cancel(first).await.unwrap();
    assert!(harness.store.delete(first).await.unwrap());
    assert_eq!(harness.first_with("once").await, Some(first));
    let again = harness.try_submit(work_once("once")).await.unwrap();
    assert_eq!(again, [ratchet_core::store::Submitted::Existing(first)]);
    assert!(harness.claim_all().await.is_empty(), "nothing new was stored");
}
