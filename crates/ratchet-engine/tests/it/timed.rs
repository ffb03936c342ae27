//! Tests that measure time: nothing else runs beside them.

use std::time::{Duration, Instant};

use ratchet_core::JobState;
use ratchet_engine::Slots;

use crate::permits;
use crate::support::{Blocking, Play, Stage, engine, memory, quick};

/// Far less than the shortest wait between polls, so that only a wakeup or a timer can explain it.
const AT_ONCE: Duration = Duration::from_millis(400);

#[tokio::test]
async fn a_submit_starts_at_once_on_an_idle_node() {
    let (ratchet, _) = engine().await;
    for _ in 0..3 {
        let begun = Instant::now();
        ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap().result().await.unwrap();
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn delayed_jobs_and_retries_start_when_due_and_not_at_the_next_poll() {
    let (ratchet, _) = engine().await;
    let begun = Instant::now();
    let delayed = ratchet.enqueue(Play::Return("x".into())).delay(Duration::from_millis(150)).submit().await.unwrap();
    delayed.result().await.unwrap();
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(150) && took < Duration::from_millis(150) + AT_ONCE, "{took:?}");
    let begun = Instant::now();
    let backoff = ratchet_core::Backoff::Fixed(Duration::from_millis(100));
    let retried = ratchet.enqueue(Play::FailTimes(2)).backoff(backoff).submit().await.unwrap();
    retried.result().await.unwrap();
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(200) && took < Duration::from_millis(200) + AT_ONCE, "{took:?}");
}

#[tokio::test]
async fn a_thousand_jobs_do_not_wait_for_polls() {
    let stage = Stage::default();
    let ratchet = quick(&stage).store(memory()).queue("default", 10).start().await.unwrap();
    let begun = Instant::now();
    let jobs: Vec<_> = (0..1_000).map(|_| ratchet.enqueue(Play::Return("x".into()))).collect();
    for handle in ratchet.submit_all(jobs).await.unwrap() {
        handle.wait().await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(stage.total_runs(), 1_000);
}

#[tokio::test]
async fn a_thread_that_outlives_its_timeout_keeps_its_permit() {
    let stage = Stage::default();
    let ratchet = permits::node(&stage, memory()).start().await.unwrap();
    let slow = ratchet.enqueue(Blocking(Play::BlockThread(400))).timeout(Duration::from_millis(20)).max_retries(0);
    let begun = Instant::now();
    let slow = slow.resource("printer").submit().await.unwrap();
    let next = ratchet.enqueue(Blocking(Play::Return("next".into()))).resource("printer").submit().await.unwrap();
    assert_eq!(slow.wait().await.unwrap().state, JobState::Failed);
    assert!(begun.elapsed() < Duration::from_millis(350), "the timeout is told before the thread returns");
    assert_eq!(permits::in_use(&ratchet).await, 1);
    next.result().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(380), "{:?}", begun.elapsed());
    assert_eq!(stage.most_together(), 1);
}

#[tokio::test]
async fn a_blocking_handler_that_timed_out_keeps_its_slot_until_its_thread_returns() {
    let stage = Stage::default();
    let one = Slots { tasks: 1, threads: 1 };
    let ratchet = quick(&stage).store(memory()).queue("default", one).start().await.unwrap();
    let slow = ratchet
        .enqueue(Blocking(Play::BlockThread(400)))
        .timeout(Duration::from_millis(20))
        .max_retries(0)
        .submit()
        .await
        .unwrap();
    let begun = Instant::now();
    let next = ratchet.enqueue(Blocking(Play::Return("next".into()))).submit().await.unwrap();
    assert_eq!(slow.wait().await.unwrap().state, JobState::Failed);
    assert!(begun.elapsed() < Duration::from_millis(350), "the timeout is told before the thread returns");
    next.result().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(380), "the next waited for the thread: {:?}", begun.elapsed());
    assert_eq!(stage.most_together(), 1);
}
