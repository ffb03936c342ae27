//! Retention zero: a success goes a moment after its end, and a handle that waits finds it.

use std::time::Duration;

use ratchet_core::retention::UNWANTED_STAY;
use ratchet_core::store::MovableClock as _;
use ratchet_core::{ErrorKind, JobState, MemoryStore, Retention};
use ratchet_engine::{BulkEventKind, Client, JobEventKind, Ratchet};

use crate::support::{Play, Stage, busy_archiver, event, eventually, memory, quick};

async fn deleting(stage: &Stage, store: &MemoryStore) -> Ratchet {
    let retention = Retention { succeeded: Some(Duration::ZERO), ..Retention::keep_everything() };
    quick(stage).store(store.clone()).retention(retention).timing(busy_archiver()).start().await.unwrap()
}

#[tokio::test]
async fn a_success_is_deleted_a_moment_after_its_end() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = deleting(&stage, &store).await;
    let (mut events, mut bulk) = (ratchet.events(), ratchet.bulk_events());
    let id = ratchet.enqueue(Play::FailTimes(1)).submit().await.unwrap().id();
    event(&mut events, |event| event.job_id == id && matches!(event.what, JobEventKind::Completed { .. })).await;
    let failed = ratchet.enqueue(Play::FailForGood).submit().await.unwrap().id();
    event(&mut events, |event| matches!(event.what, JobEventKind::DeadLettered { .. })).await;
    assert_eq!(ratchet.find(id).await.unwrap().unwrap().state, JobState::Succeeded, "it stays for a moment");
    store.advance_clock(UNWANTED_STAY);
    eventually("the success to go", async || ratchet.find(id).await.unwrap().is_none()).await;
    assert!(ratchet.attempts(id).await.unwrap().is_empty());
    assert_eq!(bulk.next().await.unwrap().what, BulkEventKind::JobsDeleted { count: 1 });
    let gone = ratchet.handle::<String>(id).record().await.unwrap_err();
    assert_eq!(*gone.kind(), ErrorKind::NotFound);
    assert!(gone.to_string().contains("retention.succeeded"), "{gone}");
    assert_eq!(ratchet.find(failed).await.unwrap().unwrap().state, JobState::Failed);
}

#[tokio::test]
async fn a_handle_gets_its_result_however_quick_the_job_is() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = deleting(&stage, &store).await;
    for number in 0..200 {
        let handle = ratchet.enqueue(Play::Return(number.to_string())).submit().await.unwrap();
        assert_eq!(handle.result().await.unwrap(), number.to_string());
    }
    let all: Vec<_> = (0..50).map(|number| ratchet.enqueue(Play::Return(number.to_string()))).collect();
    for (number, handle) in ratchet.submit_all(all).await.unwrap().into_iter().enumerate() {
        assert_eq!(handle.result().await.unwrap(), number.to_string());
    }
}

#[tokio::test]
async fn a_handle_of_another_process_gets_the_result_of_a_quick_job() {
    let (stage, store) = (Stage::default(), memory());
    let _ratchet = deleting(&stage, &store).await;
    let elsewhere = Client::new(store.clone());
    for number in 0..20 {
        let handle = elsewhere.enqueue(Play::Return(number.to_string())).submit().await.unwrap();
        eventually("the job to end", async || handle.status().await.unwrap() == JobState::Succeeded).await;
        assert_eq!(handle.result().await.unwrap(), number.to_string());
    }
}
