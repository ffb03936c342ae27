//! Retention zero: a success goes with its end, unless somebody wants it.

use std::pin::pin;
use std::time::Duration;

use ratchet_core::store::ClusterStore as _;
use ratchet_core::{ErrorKind, JobState, MemoryStore, Retention};
use ratchet_engine::{Client, JobEventKind, Ratchet};

use crate::support::{Play, Stage, event, eventually, memory, quick};

async fn discarding(stage: &Stage, store: &MemoryStore) -> Ratchet {
    let retention = Retention { succeeded: Some(Duration::ZERO), ..Retention::keep_everything() };
    quick(stage).store(store.clone()).retention(retention).start().await.unwrap()
}

#[tokio::test]
async fn a_success_that_nobody_waits_for_is_deleted_with_its_end() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = discarding(&stage, &store).await;
    let mut events = ratchet.events();
    let id = ratchet.enqueue(Play::FailTimes(1)).submit().await.unwrap().id();
    event(&mut events, |event| event.job_id == id && matches!(event.what, JobEventKind::Completed { .. })).await;
    assert_eq!(ratchet.find(id).await.unwrap(), None);
    assert!(ratchet.attempts(id).await.unwrap().is_empty());
    let gone = ratchet.handle::<String>(id).record().await.unwrap_err();
    assert_eq!(*gone.kind(), ErrorKind::NotFound);
    assert!(gone.to_string().contains("retention.succeeded"), "{gone}");
    let failed = ratchet.enqueue(Play::FailForGood).submit().await.unwrap().id();
    event(&mut events, |event| matches!(event.what, JobEventKind::DeadLettered { .. })).await;
    assert_eq!(ratchet.find(failed).await.unwrap().unwrap().state, JobState::Failed);
}

#[tokio::test]
async fn a_handle_gets_its_result_however_quick_the_job_is() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = discarding(&stage, &store).await;
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
async fn a_handle_of_another_process_keeps_the_job_once_it_waits() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = discarding(&stage, &store).await;
    let info = &store.nodes().await.unwrap()[0].info;
    assert!(info.as_str().contains(r#""discards":true"#), "others have to know of it: {info:?}");
    let elsewhere = Client::new(store.clone());
    let kept = elsewhere.enqueue(Play::Gate).submit().await.unwrap();
    let unwanted = elsewhere.enqueue(Play::Gate).submit().await.unwrap();
    eventually("both to run", async || stage.runs(kept.id()) + stage.runs(unwanted.id()) == 2).await;
    let mut result = pin!(kept.result());
    tokio::select! {
        biased;
        early = &mut result => panic!("the gate is closed: {early:?}"),
        // A store in memory answers at once: the first poll has looked at the job and has asked to keep it.
        () = std::future::ready(()) => {}
    }
    stage.open_gate();
    stage.open_gate();
    assert_eq!(result.await.unwrap(), "opened");
    eventually("the other to go", async || ratchet.find(unwanted.id()).await.unwrap().is_none()).await;
    assert_eq!(kept.status().await.unwrap(), JobState::Succeeded);
}
