use std::time::Duration;

use ratchet_core::{AttemptStatus, JobState};
use ratchet_engine::ResultError;

use crate::support::{Blocking, Play, Stage, engine, event, eventually, memory, quick, started};

#[tokio::test]
async fn a_job_runs_once_and_its_result_comes_back_typed() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::Return("hello".into())).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "hello");
    assert_eq!(handle.status().await.unwrap(), JobState::Succeeded);
    assert_eq!(stage.runs(handle.id()), 1);
    let attempts = ratchet.attempts(handle.id()).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].status, attempts[0].attempt), (AttemptStatus::Succeeded, 1));
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_failing_job_runs_once_more_than_its_retries_and_is_then_dead() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::FailTimes(99)).max_retries(2).submit().await.unwrap();
    let Err(ResultError::Failed { error, .. }) = handle.result().await else { panic!("it cannot succeed") };
    assert_eq!(error, "Error: attempt 3 broke");
    assert_eq!(stage.runs(handle.id()), 3);
    assert_eq!(handle.record().await.unwrap().attempts, 3);
    assert_eq!(ratchet.alert_count(handle.id()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_retry_can_save_a_job() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::FailTimes(2)).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "at last");
    assert_eq!(stage.runs(handle.id()), 3);
}

#[tokio::test]
async fn an_error_that_says_so_is_not_retried() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::FailForGood).max_retries(9).submit().await.unwrap();
    handle.wait().await.unwrap();
    assert_eq!(stage.runs(handle.id()), 1);
}

#[tokio::test]
async fn a_panic_is_a_failed_attempt_and_harms_nobody_else() {
    let (ratchet, _) = engine().await;
    let poor = ratchet.enqueue(Play::Panic).max_retries(1).submit().await.unwrap();
    let blocking = ratchet.enqueue(Blocking(Play::Panic)).max_retries(0).submit().await.unwrap();
    let neighbor = ratchet.enqueue(Play::Return("fine".into())).submit().await.unwrap();
    assert_eq!(neighbor.result().await.unwrap(), "fine");
    let record = poor.wait().await.unwrap();
    assert_eq!((record.state, record.attempts), (JobState::Failed, 2));
    assert_eq!(record.last_error.as_deref(), Some("Panic: the handler panicked: a handler gone wrong"));
    assert_eq!(blocking.wait().await.unwrap().state, JobState::Failed);
    assert_eq!(ratchet.attempts(poor.id()).await.unwrap()[0].status, AttemptStatus::Panicked);
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_dropped_and_retried() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::Hang).timeout(Duration::from_millis(20)).max_retries(1).submit().await.unwrap();
    let record = handle.wait().await.unwrap();
    assert_eq!((record.state, record.attempts), (JobState::Failed, 2));
    assert_eq!(record.last_error.as_deref(), Some("Timeout: the attempt took longer than its timeout of 20ms"));
    assert_eq!(ratchet.attempts(handle.id()).await.unwrap()[1].status, AttemptStatus::TimedOut);
    assert_eq!((stage.runs(handle.id()), stage.dropped()), (2, 2));
}

#[tokio::test]
async fn a_blocking_handler_may_use_a_runtime_of_its_own() {
    let (ratchet, _) = engine().await;
    let handle = ratchet.enqueue(Blocking(Play::OwnRuntime)).max_retries(0).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "own runtime");
}

#[tokio::test]
async fn a_snoozed_job_comes_back_without_an_attempt_consumed() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::SnoozeOnce).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "attempt 1");
    assert_eq!(stage.runs(handle.id()), 2);
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_the_job_clearly_and_without_retry() {
    let (ratchet, stage) = engine().await;
    let fits = ratchet.enqueue(Play::Big(64 * 1024 - 2)).submit().await.unwrap();
    let too_large = ratchet.enqueue(Play::Big(64 * 1024 - 1)).submit().await.unwrap();
    assert_eq!(fits.result().await.unwrap().len(), 64 * 1024 - 2);
    let record = too_large.wait().await.unwrap();
    let error = record.last_error.unwrap();
    assert!(error.contains("`result` is 65537 bytes of JSON; the limit is 65536"), "{error}");
    assert_eq!(stage.runs(too_large.id()), 1);
}

#[tokio::test]
async fn a_nul_in_a_result_is_replaced() {
    let (ratchet, _) = engine().await;
    let handle = ratchet.enqueue(Play::Nul).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "a\u{fffd}b");
}

#[tokio::test]
async fn a_payload_that_cannot_be_read_fails_that_job_alone_and_at_once() {
    use ratchet_core::store::SubmitUnit;
    use ratchet_core::{JobSpec, JsonText, Kind, NewJob};
    let (ratchet, stage) = engine().await;
    let payload = JsonText::parse("payload", r#"{"NoSuchPlay":1}"#, 100).unwrap();
    let job = NewJob::new(ratchet_engine::new_job_id(), JobSpec::new(Kind::new("play").unwrap(), payload));
    ratchet.store().submit(&[SubmitUnit::of(vec![job.clone()])]).await.unwrap();
    let neighbor = ratchet.enqueue(Play::Return("fine".into())).submit().await.unwrap();
    let record = ratchet.handle::<()>(job.id).wait().await.unwrap();
    assert_eq!((record.state, record.attempts), (JobState::Failed, 1));
    assert!(record.last_error.unwrap().contains("cannot be read by the handler of \"play\""));
    neighbor.result().await.unwrap();
    assert_eq!(stage.runs(job.id), 0);
}

#[tokio::test]
async fn jobs_of_unknown_kinds_wait() {
    use ratchet_core::store::SubmitUnit;
    use ratchet_core::{JobSpec, JsonText, Kind, NewJob};
    let (ratchet, _) = engine().await;
    let unknown =
        NewJob::new(ratchet_engine::new_job_id(), JobSpec::new(Kind::new("of.tomorrow").unwrap(), JsonText::null()));
    ratchet.store().submit(&[SubmitUnit::of(vec![unknown.clone()])]).await.unwrap();
    ratchet.enqueue(Play::Return("fine".into())).submit().await.unwrap().result().await.unwrap();
    assert_eq!(ratchet.find(unknown.id).await.unwrap().unwrap().state, JobState::Pending);
}

#[tokio::test]
async fn progress_is_stored_and_changes_no_version() {
    let (ratchet, stage) = engine().await;
    let mut events = ratchet.events();
    let handle = ratchet.enqueue(Play::Progress(0.25)).submit().await.unwrap();
    started(&mut events, handle.id()).await;
    let version = handle.record().await.unwrap().version;
    eventually("the progress", async || handle.record().await.unwrap().progress == Some(0.25)).await;
    assert_eq!(handle.record().await.unwrap().version, version);
    stage.open_gate();
    handle.result().await.unwrap();
}

#[tokio::test]
async fn slots_bound_what_runs_at_once() {
    let stage = Stage::default();
    let ratchet = quick(&stage).store(memory()).queue("default", 3).start().await.unwrap();
    let jobs = (0..40).map(|n| ratchet.enqueue(Play::Return(n.to_string())));
    let handles = ratchet.submit_all(jobs.collect::<Vec<_>>()).await.unwrap();
    for handle in &handles {
        handle.result().await.unwrap();
    }
    assert!(stage.most_together() <= 3, "{} at once", stage.most_together());
    assert_eq!(stage.total_runs(), 40);
}

#[tokio::test]
async fn a_drain_lets_jobs_finish_and_hands_back_what_does_not() {
    let stage = Stage::default();
    let store = memory();
    let builder = quick(&stage).store(store.clone()).drain_timeout(Duration::from_millis(100));
    let ratchet = builder.start().await.unwrap();
    let mut events = ratchet.events();
    let deaf = ratchet.enqueue(Play::Hang).submit().await.unwrap();
    started(&mut events, deaf.id()).await;
    let hears = ratchet.enqueue(Play::UntilCanceled).submit().await.unwrap();
    started(&mut events, hears.id()).await;
    let finishes = ratchet.enqueue(Play::Gate).submit().await.unwrap();
    started(&mut events, finishes.id()).await;
    stage.open_gate();
    let client = ratchet_engine::Ratchet::client(store);
    ratchet.shutdown().await;
    assert_eq!(client.find(finishes.id()).await.unwrap().unwrap().state, JobState::Succeeded);
    for id in [deaf.id(), hears.id()] {
        let job = client.find(id).await.unwrap().unwrap();
        assert_eq!((job.state, job.attempts, job.crash_count), (JobState::Pending, 0, 0));
    }
    assert_eq!(client.nodes().await.unwrap(), [], "a node that ends well leaves no trace");
}

#[tokio::test]
async fn a_paused_queue_is_passed_by_until_it_is_resumed() {
    let (ratchet, stage) = engine().await;
    let queue = ratchet_core::QueueName::default_queue();
    assert!(ratchet.pause_queue(&queue).await.unwrap());
    assert!(!ratchet.pause_queue(&queue).await.unwrap());
    let handle = ratchet.enqueue(Play::Return("late".into())).submit().await.unwrap();
    let mut events = ratchet.events();
    let early = event(&mut events, |e| e.job_id == handle.id());
    assert!(tokio::time::timeout(Duration::from_millis(100), early).await.is_err());
    assert_eq!(stage.runs(handle.id()), 0);
    assert!(ratchet.resume_queue(&queue).await.unwrap());
    assert_eq!(handle.result().await.unwrap(), "late");
}
