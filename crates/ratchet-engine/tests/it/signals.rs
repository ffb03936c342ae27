//! Jobs that wait for a signal, from the builder to the end.

use std::time::Duration;

use ratchet_core::{JobState, SignalDecision};
use ratchet_engine::{Failure, Job, JobContext, JobEventKind, JobExt, Prev, Ratchet, SignalError, SubmitError};
use serde::{Deserialize, Serialize};

use crate::support::{Play, Stage, event, memory, quick};

/// Says what its signal said.
#[derive(Serialize, Deserialize)]
struct Listen;

impl Job for Listen {
    const KIND: &'static str = "listen";
    type Output = String;

    async fn run(self, ctx: JobContext) -> Result<String, Failure> {
        let signal = ctx.signal().ok_or_else(|| Failure::do_not_retry("no signal", "it ran without"))?;
        let who = signal.by.as_ref().map_or("nobody", |who| who.as_str()).to_owned();
        match &signal.decision {
            Some(SignalDecision::Rejected { reason }) => Ok(format!("{who} rejects: {reason}")),
            Some(SignalDecision::Approved) => Ok(format!("{who} approves")),
            None => signal.payload().map_err(|error| Failure::new(error.to_string())),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Echo;

impl Job for Echo {
    const KIND: &'static str = "echo";
    type Output = String;

    async fn run(self, ctx: JobContext) -> Result<String, Failure> {
        let Prev(before): Prev<String> = ratchet_engine::FromPrev::from_prev(&ctx)?;
        Ok(format!("{before}, {}", ctx.signal().map_or("unsignaled", |signal| signal.key.as_str())))
    }
}

async fn engine() -> Ratchet {
    let node = quick(&Stage::default()).job::<Listen>().job::<Echo>();
    node.store(memory()).start().await.unwrap()
}

#[tokio::test]
async fn a_signal_lets_a_job_go_on_and_its_handler_sees_it() {
    let ratchet = engine().await;
    let mut events = ratchet.events();
    let job = ratchet.enqueue(Listen).await_signal("greet", None).submit().await.unwrap();
    event(&mut events, |e| e.job_id == job.id() && e.what == JobEventKind::SignalWaiting).await;
    assert_eq!(job.status().await.unwrap(), JobState::Waiting);
    let sent = ratchet.signal("greet").payload("hello").send().await.unwrap();
    assert_eq!((sent.delivered, sent.released, sent.kept), (1, 1, false));
    let told = event(&mut events, |e| matches!(e.what, JobEventKind::Signaled { .. })).await;
    let expected = JobEventKind::Signaled { delivery_id: sent.delivery_id, jobs: 1, released: true };
    assert_eq!((told.job_id, &told.what), (job.id(), &expected));
    assert_eq!(job.result().await.unwrap(), "hello");
}

#[tokio::test]
async fn a_decision_names_its_sender_and_its_reason() {
    let ratchet = engine().await;
    let yes = ratchet.enqueue(Listen).await_signal("a", None).submit().await.unwrap();
    let no = ratchet.enqueue(Listen).await_signal("b", None).submit().await.unwrap();
    ratchet.signal_job(yes.id()).approve().by("anna").send().await.unwrap();
    ratchet.signal_job(no.id()).reject("too dear").by("ben").send().await.unwrap();
    assert_eq!(yes.result().await.unwrap(), "anna approves");
    assert_eq!(no.result().await.unwrap(), "ben rejects: too dear");
    assert_eq!(ratchet.signal_job(no.id()).approve().send().await.unwrap().delivered, 0, "the first counts");
}

#[tokio::test]
async fn an_early_signal_is_kept_unless_it_is_not_to_be() {
    let ratchet = engine().await;
    assert!(ratchet.signal("kept").payload("early").send().await.unwrap().kept);
    let job = ratchet.enqueue(Listen).await_signal("kept", Duration::from_mins(1)).submit().await.unwrap();
    assert_eq!(job.result().await.unwrap(), "early");
    let lost = ratchet.signal("lost").payload("early").no_keep().send().await.unwrap();
    assert_eq!((lost.delivered, lost.kept), (0, false));
    let job = ratchet.enqueue(Listen).await_signal("lost", None).submit().await.unwrap();
    assert_eq!(job.status().await.unwrap(), JobState::Waiting);
}

#[tokio::test]
async fn a_wait_that_is_over_fails_the_job_and_runs_what_was_meant_for_that() {
    let ratchet = engine().await;
    let mut events = ratchet.events();
    let late = ratchet
        .enqueue(Listen)
        .await_signal("never", Duration::from_millis(20))
        .on_failure(Play::Return("sorry".to_owned()))
        .submit()
        .await
        .unwrap();
    let told = event(&mut events, |e| e.job_id == late.id() && e.what == JobEventKind::SignalTimedOut).await;
    assert!(told.node.is_some());
    event(&mut events, |e| e.job_id == late.id() && matches!(e.what, JobEventKind::DeadLettered { .. })).await;
    let failed = late.wait().await.unwrap();
    assert_eq!((failed.state, failed.attempts), (JobState::Failed, 0));
    assert_eq!(failed.last_error.as_deref(), Some("no signal \"never\" came within 20ms"));
    event(&mut events, |e| e.kind.as_str() == Play::KIND && matches!(e.what, JobEventKind::Completed { .. })).await;
    assert!(ratchet.signal("never").payload("late").send().await.unwrap().kept);
    assert!(ratchet.retry(late.id()).await.unwrap());
    assert_eq!(late.result().await.unwrap(), "late", "a retry takes what was kept");
}

#[tokio::test]
async fn a_retried_job_waits_again_and_does_not_run() {
    let ratchet = engine().await;
    let mut events = ratchet.events();
    let late = ratchet.enqueue(Listen).await_signal("x", Duration::from_millis(20)).submit().await.unwrap();
    late.wait().await.unwrap();
    assert!(ratchet.retry(late.id()).await.unwrap());
    for _ in 0..2 {
        event(&mut events, |e| e.job_id == late.id() && e.what == JobEventKind::SignalWaiting).await;
    }
    assert_eq!(late.wait().await.unwrap().attempts, 0, "its time was over again");
}

#[tokio::test]
async fn a_step_waits_for_the_one_before_and_for_its_signal() {
    let ratchet = engine().await;
    let mut events = ratchet.events();
    let step = || Echo.with(|step| step.await_signal("go", Duration::from_mins(1)));
    let first = ratchet.enqueue(Play::Return("one".to_owned())).then(step()).submit().await.unwrap();
    let echo = ratchet.dependants(first.id()).await.unwrap()[0].child;
    event(&mut events, |e| e.job_id == echo && e.what == JobEventKind::SignalWaiting).await;
    let wait = ratchet.awaited_signal(echo).await.unwrap().unwrap();
    assert!(wait.expires_at.is_some() && wait.signal.is_none());
    ratchet.signal("go").send().await.unwrap();
    assert_eq!(ratchet.handle::<String>(echo).result().await.unwrap(), "one, go");
    let flow = ratchet.workflow().step("a", Play::Return("two".to_owned())).step("b", step()).edge("a", "b");
    let flow = flow.submit().await.unwrap();
    ratchet.signal("go").send().await.unwrap();
    assert_eq!(flow.step::<String>("b").unwrap().result().await.unwrap(), "two, go");
}

#[tokio::test]
async fn bad_input_is_refused_by_name() {
    let ratchet = engine().await;
    let refused = |error: SubmitError| match error {
        SubmitError::Invalid(refused) => refused.to_string(),
        other => panic!("{other}"),
    };
    let error = ratchet.enqueue(Listen).await_signal("", None).submit().await.unwrap_err();
    assert_eq!(refused(error), "`signal key` is empty; give 1 to 255 characters");
    let error = ratchet.enqueue(Listen).await_signal("a", Duration::ZERO).submit().await.unwrap_err();
    assert_eq!(refused(error), "`signal timeout` is 0ns; the least is 1ms");
    let step = Echo.with(|step| step.await_signal("a", None));
    let error = ratchet.enqueue(Listen).on_success(step).submit().await.unwrap_err();
    assert!(refused(error).starts_with("`on_success.await_signal` is for jobs and for steps"));
    let refused = |error: SignalError| match error {
        SignalError::Invalid(refused) => refused.to_string(),
        other => panic!("{other}"),
    };
    let error = ratchet.signal("a").payload(&"x".repeat(65_535)).send().await.unwrap_err();
    assert!(refused(error).starts_with("`signal payload` is 65537 bytes of JSON; the limit is 65536"));
    let error = ratchet.signal("a").reject("x".repeat(2_001)).send().await.unwrap_err();
    assert_eq!(refused(error), "`reason` is 2001 characters long; the limit is 2000");
    let error = ratchet.signal("a").by("").send().await.unwrap_err();
    assert_eq!(refused(error), "`by` is empty; give 1 to 255 characters");
}

#[tokio::test]
async fn a_body_can_be_tested_with_a_signal() {
    let ctx = JobContext::for_test().signal(&"hello").build().unwrap();
    assert_eq!(Listen.run(ctx).await.unwrap(), "hello");
    let rejected = SignalDecision::rejected("no").unwrap();
    let ctx = JobContext::for_test().decided(&(), rejected).build().unwrap();
    assert_eq!(Listen.run(ctx).await.unwrap(), "nobody rejects: no");
}
