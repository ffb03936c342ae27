use ratchet_core::{ErrorKind, JobState};
use ratchet_engine::{JobEventKind, ResultError, SubmitError};
use std::time::Duration;

use crate::support::{Play, engine, event, eventually, started};

#[tokio::test]
async fn a_canceled_pending_job_never_starts() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::Return("x".into())).delay(Duration::from_mins(1)).submit().await.unwrap();
    assert!(ratchet.cancel(handle.id()).await.unwrap());
    assert!(!ratchet.cancel(handle.id()).await.unwrap(), "what has ended cannot be canceled");
    assert!(matches!(handle.result().await, Err(ResultError::Canceled { .. })));
    assert_eq!(stage.runs(handle.id()), 0);
}

#[tokio::test]
async fn a_running_handler_is_told_and_its_result_is_discarded() {
    let (ratchet, stage) = engine().await;
    let mut events = ratchet.events();
    let hears = ratchet.enqueue(Play::UntilCanceled).submit().await.unwrap();
    started(&mut events, hears.id()).await;
    let deaf = ratchet.enqueue(Play::Hang).submit().await.unwrap();
    started(&mut events, deaf.id()).await;
    for id in [hears.id(), deaf.id()] {
        assert!(ratchet.cancel(id).await.unwrap());
        let canceled = event(&mut events, |e| e.job_id == id).await;
        let JobEventKind::Canceled { previous, duration } = canceled.what else { panic!("{canceled:?}") };
        assert_eq!(previous, JobState::Running);
        assert!(duration.is_some());
    }
    eventually("the deaf handler's drop", async || stage.dropped() == 1).await;
    for handle in [hears, deaf] {
        assert_eq!(handle.status().await.unwrap(), JobState::Canceled);
    }
    // The slots are free again.
    ratchet.enqueue(Play::Return("next".into())).submit().await.unwrap().result().await.unwrap();
}

#[tokio::test]
async fn pause_and_resume_answer_as_promised() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::Return("x".into())).delay(Duration::from_millis(50)).submit().await.unwrap();
    assert!(ratchet.pause(handle.id()).await.unwrap());
    assert!(ratchet.pause(handle.id()).await.unwrap(), "pausing a paused job is true");
    assert_eq!(handle.status().await.unwrap(), JobState::Paused);
    assert!(ratchet.resume(handle.id()).await.unwrap());
    assert!(!ratchet.resume(handle.id()).await.unwrap());
    handle.result().await.unwrap();
    assert_eq!(stage.runs(handle.id()), 1);
    assert!(!ratchet.pause(handle.id()).await.unwrap(), "what has succeeded cannot be paused");
    let unknown = ratchet_engine::new_job_id();
    assert!(!ratchet.pause(unknown).await.unwrap());
    assert!(!ratchet.resume(unknown).await.unwrap());
    assert!(!ratchet.retry(unknown).await.unwrap());
    assert!(!ratchet.cancel(unknown).await.unwrap());
}

#[tokio::test]
async fn a_manual_retry_runs_the_job_again_from_nothing() {
    let (ratchet, stage) = engine().await;
    let handle = ratchet.enqueue(Play::FailTimes(99)).max_retries(0).submit().await.unwrap();
    handle.wait().await.unwrap();
    let mut events = ratchet.events();
    assert!(ratchet.retry(handle.id()).await.unwrap());
    let retrying = event(&mut events, |e| e.job_id == handle.id()).await;
    assert!(matches!(retrying.what, JobEventKind::Retrying { error: None, attempt: 0, .. }), "{retrying:?}");
    eventually("the second death", async || handle.wait().await.unwrap().version > 4).await;
    assert_eq!(stage.runs(handle.id()), 2);
    assert_eq!(handle.record().await.unwrap().attempts, 1, "counting began anew");
}

#[tokio::test]
async fn only_what_has_ended_can_be_deleted() {
    let (ratchet, _) = engine().await;
    let live = ratchet.enqueue(Play::Return("x".into())).delay(Duration::from_mins(1)).submit().await.unwrap();
    let refused = ratchet.delete(live.id()).await.unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::Conflict);
    let done = ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap();
    done.wait().await.unwrap();
    assert!(ratchet.delete(done.id()).await.unwrap());
    assert!(!ratchet.delete(done.id()).await.unwrap());
    assert_eq!(*done.status().await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_business_key_is_refused_while_held_and_free_afterwards() {
    let (ratchet, stage) = engine().await;
    let first = ratchet.enqueue(Play::Gate).business_key("invoice-7").submit().await.unwrap();
    let refused = ratchet.enqueue(Play::Gate).business_key("invoice-7").submit().await.unwrap_err();
    let SubmitError::Duplicate { business_key, holder, .. } = &refused else { panic!("{refused}") };
    assert_eq!((business_key.as_str(), *holder), ("invoice-7", first.id()));
    assert!(refused.to_string().contains("invoice-7") && refused.to_string().contains(&first.id().to_string()));
    stage.open_gate();
    first.wait().await.unwrap();
    let second = ratchet.enqueue(Play::Return("x".into())).business_key("invoice-7").submit().await.unwrap();
    second.result().await.unwrap();
}

#[tokio::test]
async fn an_idempotency_key_leads_to_the_first_job_for_ever() {
    let (ratchet, stage) = engine().await;
    let first = ratchet.enqueue(Play::Return("first".into())).idempotency_key("request-1").submit().await.unwrap();
    assert!(!first.is_duplicate());
    assert_eq!(first.result().await.unwrap(), "first");
    let again = ratchet.enqueue(Play::Return("second".into())).idempotency_key("request-1").submit().await.unwrap();
    assert!(again.is_duplicate());
    assert_eq!((again.id(), again.result().await.unwrap()), (first.id(), "first".to_owned()));
    assert_eq!(stage.total_runs(), 1);
}

#[tokio::test]
async fn a_replacement_takes_the_place_and_the_key_of_the_old_job() {
    let (ratchet, stage) = engine().await;
    let old = ratchet.enqueue(Play::Hang).business_key("slot").delay(Duration::from_mins(1)).submit().await.unwrap();
    let new = ratchet.enqueue(Play::Return("new".into())).business_key("slot").replace(old.id()).await.unwrap();
    assert_eq!(new.result().await.unwrap(), "new");
    let Err(ResultError::Canceled { superseded_by, .. }) = old.result().await else { panic!("it was canceled") };
    assert_eq!(superseded_by, Some(new.id()));
    assert_eq!(stage.runs(old.id()), 0);
    let refused = ratchet.enqueue(Play::Hang).replace(new.id()).await.unwrap_err();
    assert!(matches!(&refused, SubmitError::Store(e) if *e.kind() == ErrorKind::Conflict), "{refused}");
}

#[tokio::test]
async fn racing_submits_with_one_key_have_one_winner() {
    let (ratchet, stage) = engine().await;
    let submits = (0..32).map(|_| {
        let submit = ratchet.enqueue(Play::Return("x".into())).business_key("only").delay(Duration::from_millis(20));
        tokio::spawn(submit.submit())
    });
    let mut winners = Vec::new();
    for submit in submits.collect::<Vec<_>>() {
        winners.extend(submit.await.unwrap());
    }
    assert_eq!(winners.len(), 1);
    winners[0].result().await.unwrap();
    assert_eq!(stage.total_runs(), 1);
}

#[tokio::test]
async fn a_job_that_is_replaced_takes_what_followed_it_along_and_it_is_told() {
    let (ratchet, _) = engine().await;
    let mut events = ratchet.events();
    let later = std::time::Duration::from_mins(1);
    let old = ratchet.enqueue(Play::Gate).delay(later).then(Play::Gate).submit().await.unwrap();
    let next = ratchet.dependants(old.id()).await.unwrap()[0].child;
    ratchet.enqueue(Play::Return("instead".into())).replace(old.id()).await.unwrap();
    let told = event(&mut events, |e| e.job_id == next).await;
    assert_eq!(told.what, JobEventKind::CanceledBy { because: old.id() });
}
