//! Deleting jobs that are over.

use ratchet_core::{ErrorKind, NewJob, StartState};

use crate::bench::{Bench, assert_refused, new_id, work, work_once};

pub(crate) async fn a_terminal_job_is_deleted_with_its_history(bench: Bench) {
    let failed = bench.failed(work(), "boom").await;
    let claim = bench.running(work()).await;
    bench.succeed(&claim).await;
    let canceled = bench.submit(work()).await;
    bench.store.cancel(canceled).await.unwrap();
    for id in [failed, claim.job.id, canceled] {
        assert!(bench.store.delete(id).await.unwrap());
        assert!(!bench.exists(id).await);
        assert_eq!((bench.attempts(id).await.len(), bench.alerts(id).await), (0, 0), "its history is gone too");
        assert!(!bench.store.delete(id).await.unwrap(), "it can be deleted once");
    }
}

pub(crate) async fn deleting_one_job_leaves_the_others(bench: Bench) {
    let kept = bench.failed(work(), "boom").await;
    let deleted = bench.failed(work(), "boom").await;
    assert!(bench.store.delete(deleted).await.unwrap());
    assert!(!bench.exists(deleted).await);
    assert!(bench.exists(kept).await);
    assert_eq!((bench.attempts(kept).await.len(), bench.alerts(kept).await), (1, 1));
}

pub(crate) async fn a_live_job_is_not_deleted(bench: Bench) {
    let running = bench.running(work()).await.job.id;
    let paused_failed = bench.failed(work(), "boom").await;
    bench.store.pause(paused_failed).await.unwrap();
    let paused = bench.submit(work()).await;
    bench.store.pause(paused).await.unwrap();
    let waiting = bench.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    let pending = bench.submit(work()).await;
    for id in [running, paused_failed, paused, waiting, pending] {
        let before = bench.job(id).await;
        assert_refused(bench.store.delete(id).await, &ErrorKind::Conflict);
        assert_eq!(bench.job(id).await, before);
    }
}

pub(crate) async fn deleting_an_unknown_job_says_false(bench: Bench) {
    assert!(!bench.store.delete(new_id()).await.unwrap());
}

pub(crate) async fn an_idempotency_key_outlives_its_job(bench: Bench) {
    let first = bench.submit(work_once("once")).await;
    bench.store.cancel(first).await.unwrap();
    assert!(bench.store.delete(first).await.unwrap());
    assert_eq!(bench.first_with("once").await, Some(first));
    let again = bench.try_submit(work_once("once")).await.unwrap();
    assert_eq!(again, [ratchet_core::store::Submitted::Existing(first)]);
    assert!(bench.claim_all().await.is_empty(), "nothing new was stored");
}
