use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratchet_core::settlement::DeadLetterReason;
use ratchet_engine::JobEventKind;

use crate::support::{Play, Stage, engine, event, memory, quick};

/// The events of one job until it is terminal, without their details.
async fn story(
    play: Play,
    set: impl FnOnce(ratchet_engine::Enqueue<Play>) -> ratchet_engine::Enqueue<Play>,
) -> Vec<String> {
    let (ratchet, _) = engine().await;
    let mut events = ratchet.events();
    let handle = set(ratchet.enqueue(play)).submit().await.unwrap();
    let mut story = Vec::new();
    loop {
        let event = event(&mut events, |e| e.job_id == handle.id()).await;
        assert_eq!(event.node, Some(ratchet.node_id()));
        let name = format!("{:?}", event.what);
        story.push(name.split([' ', '{']).next().unwrap().to_owned());
        if matches!(event.what, JobEventKind::Completed { .. } | JobEventKind::DeadLettered { .. }) {
            return story;
        }
    }
}

#[tokio::test]
async fn events_tell_a_job_s_story_in_order() {
    assert_eq!(story(Play::Return("x".into()), |e| e).await, ["Started", "Completed"]);
    assert_eq!(story(Play::FailTimes(1), |e| e).await, ["Started", "Failed", "Retrying", "Started", "Completed"]);
    assert_eq!(
        story(Play::FailTimes(9), |e| e.max_retries(1)).await,
        ["Started", "Failed", "Retrying", "Started", "Failed", "DeadLettered"]
    );
    assert_eq!(
        story(Play::Hang, |e| e.max_retries(0).timeout(Duration::from_millis(10))).await,
        ["Started", "TimedOut", "Failed", "DeadLettered"]
    );
    assert_eq!(story(Play::SnoozeOnce, |e| e).await, ["Started", "Deferred", "Started", "Completed"]);
}

#[tokio::test]
async fn the_dead_letter_says_why_and_the_text_is_sanitized_everywhere() {
    let (ratchet, _) = engine().await;
    let mut events = ratchet.events();
    let leak = "Connection failed: jdbc:mysql://admin:s3cret@db.internal:3306/prod";
    let clean = "Error: Connection failed: jdbc:mysql://[REDACTED]@db.internal:3306/prod";
    let handle = ratchet.enqueue(Play::Leak(leak.into())).max_retries(0).submit().await.unwrap();
    let dead = event(&mut events, |e| matches!(e.what, JobEventKind::DeadLettered { .. })).await;
    let JobEventKind::DeadLettered { error, attempt, reason } = &dead.what else { unreachable!() };
    assert_eq!((error.as_str(), *attempt, reason), (clean, 1, &DeadLetterReason::RetriesExhausted));
    assert_eq!(handle.record().await.unwrap().last_error.as_deref(), Some(clean));
    assert_eq!(ratchet.attempts(handle.id()).await.unwrap()[0].error.as_deref(), Some(clean));
}

#[tokio::test]
async fn a_listener_that_panics_or_blocks_harms_nobody() {
    let seen = Arc::new(Mutex::new(0));
    let counter = seen.clone();
    let builder = quick(&Stage::default()).store(memory());
    let ratchet = builder
        .on_event(|_| panic!("a listener gone wrong"))
        .on_event(move |_| *counter.lock().unwrap() += 1)
        .start()
        .await
        .unwrap();
    let handle = ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap();
    handle.result().await.unwrap();
    ratchet.shutdown().await;
    assert_eq!(*seen.lock().unwrap(), 2, "a shutdown lets listeners hear of everything");
}
