//! Submitting and completing in the caller's own SQLite transaction.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ratchet::prelude::*;
use ratchet::sqlite::sqlx::{self, SqlitePool};
use ratchet::sqlite::{CompleteIn, SubmitIn};
use ratchet::{BoxError, ErrorKind, SubmitError, Timing};
use tokio::sync::Notify;

/// Adds a row and completes in one transaction, then does as it is told.
#[job(backoff = "none", max_retries = 1)]
async fn book(ctx: &JobContext, pool: State<SqlitePool>, end: String) -> Result<String, BoxError> {
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO booking (job) VALUES (?)").bind(ctx.id().to_string()).execute(&mut *tx).await?;
    if end == "fail first" && ctx.attempt() == 1 {
        return Err("before the completion".into());
    }
    ctx.complete_in(&mut tx, &"booked".to_owned()).await?;
    if end == "roll back once" && ctx.attempt() == 1 {
        tx.rollback().await?;
        return Err("rolled back".into());
    }
    if end == "forget the commit once" && ctx.attempt() == 1 {
        drop(tx);
        return Ok("all is well".to_owned());
    }
    tx.commit().await?;
    if end == "fail after" { Err("after the commit".into()) } else { Ok("not this".to_owned()) }
}

/// Is canceled while it runs, and only then tries to complete.
#[job(max_retries = 0)]
async fn too_late(ctx: &JobContext, pool: State<SqlitePool>, gate: State<Arc<Gate>>) -> Result<(), BoxError> {
    gate.begun.notify_one();
    gate.open.notified().await;
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO booking (job) VALUES (?)").bind(ctx.id().to_string()).execute(&mut *tx).await?;
    let refused = ctx.complete_in(&mut tx, &()).await.expect_err("the job was canceled");
    gate.refused.lock().await.push(refused.kind().clone());
    tx.rollback().await?;
    gate.done.notify_one();
    Ok(())
}

#[derive(Default)]
struct Gate {
    begun: Notify,
    open: Notify,
    done: Notify,
    refused: tokio::sync::Mutex<Vec<ErrorKind>>,
}

async fn pool_at(path: &Path) -> SqlitePool {
    let pool = SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query("CREATE TABLE booking (job TEXT NOT NULL)").execute(&pool).await.unwrap();
    pool
}

async fn bookings(pool: &SqlitePool) -> i64 {
    sqlx::query_scalar("SELECT COUNT(*) FROM booking").fetch_one(pool).await.unwrap()
}

async fn node() -> (tempfile::TempDir, SqlitePool, Ratchet) {
    let (dir, pool, ratchet, _) = node_with_gate().await;
    (dir, pool, ratchet)
}

async fn node_with_gate() -> (tempfile::TempDir, SqlitePool, Ratchet, Arc<Gate>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let pool = pool_at(&path).await;
    let gate = Arc::new(Gate::default());
    // A reconcile would tell the handler of its cancellation before it tries to complete.
    let timing = Timing { reconcile: Duration::from_mins(1), ..Timing::default() };
    let builder = Ratchet::builder().store(store).jobs(jobs![book, too_late]).timing(timing);
    // One slot, so that a slot that is counted twice is noticed.
    let builder = builder.queue("default", 1);
    let ratchet = builder.state(pool.clone()).state(gate.clone()).start().await.unwrap();
    (dir, pool, ratchet, gate)
}

#[tokio::test]
async fn a_committed_submit_runs_and_a_rolled_back_one_never_was() {
    let (_dir, pool, ratchet) = node().await;
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let kept = ratchet.enqueue(book("ok".into())).submit_in(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(kept.result().await.unwrap(), "booked");
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let lost =
        ratchet.enqueue(book("ok".into())).business_key("b").idempotency_key("i").submit_in(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(*lost.status().await.unwrap_err().kind(), ErrorKind::NotFound);
    // Neither key is taken.
    let again = ratchet.enqueue(book("ok".into())).business_key("b").idempotency_key("i").submit().await.unwrap();
    assert!(!again.is_duplicate());
    again.result().await.unwrap();
    assert_eq!(bookings(&pool).await, 2);
}

#[tokio::test]
async fn a_job_submitted_with_the_caller_s_commit_waits_for_its_signal_or_takes_it() {
    let (_dir, pool, ratchet) = node().await;
    assert!(ratchet.signal("early").send().await.unwrap().kept);
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    ratchet.enqueue(book("ok".into())).await_signal("early", None).submit_in(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let early = ratchet.enqueue(book("ok".into())).await_signal("early", None).submit_in(&mut tx).await.unwrap();
    let late = ratchet.enqueue(book("ok".into())).await_signal("late", None).submit_in(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(early.result().await.unwrap(), "booked", "what was rolled back took nothing");
    assert_eq!(late.status().await.unwrap(), JobState::Waiting);
    assert_eq!(ratchet.signal("late").send().await.unwrap().delivered, 1);
    assert_eq!(late.result().await.unwrap(), "booked");
}

#[tokio::test]
async fn a_workflow_exists_exactly_if_the_caller_commits() {
    let (_dir, pool, ratchet) = node().await;
    // The step that runs last is given first.
    let flow = || {
        let steps = ratchet.workflow().step("last", book("ok".into())).step("first", book("ok".into()));
        steps.edge("first", "last").idempotency_key("flow:1")
    };
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let lost = flow().submit_in(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(*lost.status().await.unwrap_err().kind(), ErrorKind::NotFound);
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let kept = flow().submit_in(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(kept.step::<String>("last").unwrap().result().await.unwrap(), "booked");
    assert!(begun.elapsed() < Duration::from_secs(2), "the node looks out for it: {:?}", begun.elapsed());
    assert_eq!((kept.graph().await.unwrap().steps.len(), bookings(&pool).await), (2, 2));
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let again = flow().submit_in(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((again.id(), again.is_duplicate()), (kept.id(), true));
    let circle = ratchet.workflow().step("a", book("ok".into())).step("b", book("ok".into()));
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let refused = circle.edge("a", "b").edge("b", "a").submit_in(&mut tx).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Invalid(_)), "{refused}");
}

#[tokio::test]
async fn a_duplicate_key_does_not_abort_the_caller_s_transaction() {
    let (_dir, pool, ratchet) = node().await;
    let later = Duration::from_mins(10);
    let holder = ratchet.enqueue(book("ok".into())).delay(later).business_key("taken").submit().await.unwrap();
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    sqlx::query("INSERT INTO booking (job) VALUES ('mine')").execute(&mut *tx).await.unwrap();
    let refused = ratchet.enqueue(book("ok".into())).business_key("taken").submit_in(&mut tx).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Duplicate { holder: by, .. } if by == holder.id()), "{refused}");
    let invalid = ratchet.enqueue(book("\0".into())).submit_in(&mut tx).await.unwrap_err();
    assert!(matches!(invalid, SubmitError::Invalid(_)), "{invalid}");
    tx.commit().await.unwrap();
    assert_eq!(bookings(&pool).await, 1, "the caller's own write was committed");
    assert_eq!(ratchet.count_by_state().await.unwrap().values().sum::<u64>(), 1, "and no job beside the holder");
}

#[tokio::test]
async fn a_handler_s_writes_and_its_completion_are_one() {
    for (end, attempts) in
        [("ok", 1), ("fail first", 2), ("roll back once", 2), ("forget the commit once", 2), ("fail after", 1)]
    {
        let (_dir, pool, ratchet) = node().await;
        let mut events = ratchet.events();
        let handle = ratchet.enqueue(book(end.into())).submit().await.unwrap();
        let next = ratchet.enqueue(book("ok".into())).delay(Duration::from_millis(100)).submit().await.unwrap();
        assert_eq!(handle.result().await.unwrap(), "booked", "{end}: the result is the one that was committed");
        while !matches!(events.next().await.unwrap().what, JobEventKind::Completed { .. }) {}
        next.result().await.unwrap();
        while !matches!(events.next().await.unwrap().what, JobEventKind::Completed { .. }) {}
        assert_eq!(bookings(&pool).await, 2, "{end}: each written once");
        assert_eq!(ratchet.attempts(handle.id()).await.unwrap().len(), attempts, "{end}");
        let stats = ratchet.stats();
        assert_eq!(
            (stats.conflicts, stats.settled),
            (0, attempts as u64 + 1),
            "{end}: the engine knows its own commit"
        );
        ratchet.shutdown().await;
    }
}

#[tokio::test]
async fn a_canceled_handler_cannot_complete() {
    let (_dir, pool, ratchet, gate) = node_with_gate().await;
    let handle = ratchet.enqueue(too_late()).submit().await.unwrap();
    gate.begun.notified().await;
    assert!(ratchet.cancel(handle.id()).await.unwrap());
    gate.open.notify_one();
    gate.done.notified().await;
    assert_eq!(*gate.refused.lock().await, [ErrorKind::Conflict]);
    assert_eq!(bookings(&pool).await, 0);
    assert_eq!(handle.status().await.unwrap(), JobState::Canceled);
}
