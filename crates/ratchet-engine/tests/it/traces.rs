//! A trace goes from whoever submits a job to whoever runs it, and on to what follows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratchet_core::batch::ProgressEvery;
use ratchet_core::{JobId, TraceContext};
use ratchet_engine::{
    Client, Failure, Job, JobContext, JobEventKind, JobExt, Ratchet, Requirement, SubmitError, TraceCapture,
};
use serde::{Deserialize, Serialize};

use crate::support::{eventually, memory};

/// What traces jobs saw.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<String, Option<TraceContext>>>>);

impl Seen {
    async fn of(&self, name: &str) -> Option<TraceContext> {
        let find = || self.0.lock().unwrap().get(name).cloned();
        eventually(name, async || find().is_some()).await;
        find().unwrap()
    }
}

/// A job that says which trace it sees.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Look(String);

fn look(name: &str) -> Look {
    Look(name.to_owned())
}

impl Job for Look {
    const KIND: &'static str = "look";
    type Output = ();

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<Seen>()]
    }

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        ctx.state::<Seen>().0.lock().unwrap().insert(self.0.clone(), ctx.trace_context().cloned());
        if self.0 == "parent" {
            ctx.client().enqueue(look("child")).submit().await.map_err(Failure::new)?;
        }
        if self.0 == "fails" {
            return Err(Failure::do_not_retry("it fails", "always"));
        }
        Ok(())
    }
}

fn trace(number: u128) -> TraceContext {
    TraceContext::new(number, 7, true).unwrap()
}

async fn node(capture: Option<Capture>) -> (Ratchet, Seen) {
    let seen = Seen::default();
    let mut builder = Ratchet::builder().store(memory()).job::<Look>().state(seen.clone());
    if let Some(capture) = capture {
        builder = builder.trace_capture(capture);
    }
    (builder.start().await.unwrap(), seen)
}

#[tokio::test]
async fn a_given_trace_goes_on_with_everything_that_follows() {
    let (ratchet, seen) = node(None).await;
    let chain = ratchet.enqueue(look("parent")).trace_context(trace(1)).on_success(look("callback"));
    chain.then(look("step")).then(look("own").with(|step| step.trace_context(trace(2)))).submit().await.unwrap();
    for name in ["parent", "step", "callback", "child"] {
        assert_eq!(seen.of(name).await, Some(trace(1)), "{name}");
    }
    assert_eq!(seen.of("own").await, Some(trace(2)));
    let failing = ratchet.enqueue(look("fails")).trace_context(trace(3)).on_failure(look("mourn"));
    failing.submit().await.unwrap();
    assert_eq!(seen.of("mourn").await, Some(trace(3)));
    ratchet.enqueue(look("without")).submit().await.unwrap();
    assert_eq!(seen.of("without").await, None);
    ratchet.shutdown().await;
}

tokio::task_local! {
    static CURRENT: u128;
}

/// The trace of the task, and what runs were tied to.
#[derive(Debug, Clone, Default)]
struct Capture {
    attached: Arc<Mutex<Vec<TraceContext>>>,
    panics: bool,
}

impl TraceCapture for Capture {
    fn current(&self) -> Option<TraceContext> {
        assert!(!self.panics, "the capture panics");
        CURRENT.try_with(|number| trace(*number)).ok()
    }

    fn attach(&self, _span: &tracing::Span, parent: &TraceContext) {
        assert!(!self.panics, "the capture panics");
        self.attached.lock().unwrap().push(parent.clone());
    }
}

/// Submits in every way that there is.
async fn submit_all_ways(client: &Client) -> Result<(), SubmitError> {
    client.enqueue(look("single")).submit().await?;
    client.enqueue(look("explicit")).trace_context(trace(99)).submit().await?;
    client.submit_all([client.enqueue(look("bulk"))]).await?;
    let waiting = client.enqueue(look("replaced")).delay(Duration::from_mins(1)).submit().await?;
    client.enqueue(look("replacement")).replace(waiting.id()).await?;
    client.workflow().step("a", look("first")).step("b", look("second")).edge("a", "b").submit().await?;
    let batch = client.batch().child(look("in a batch")).then_on_batch_success(look("after the batch"));
    batch.on_progress(look("progress"), ProgressEvery::Percent(100)).submit().await?;
    let open = client.batch().open().await?;
    open.extend(futures_util::stream::iter([look("streamed")])).await.unwrap();
    open.seal().await?;
    Ok(())
}

#[tokio::test]
async fn the_current_trace_is_captured_wherever_jobs_are_submitted() {
    let capture = Capture::default();
    let (ratchet, seen) = node(Some(capture.clone())).await;
    CURRENT.scope(5, submit_all_ways(&ratchet)).await.unwrap();
    let names =
        ["single", "bulk", "replacement", "first", "second", "in a batch", "after the batch", "progress", "streamed"];
    for name in names {
        assert_eq!(seen.of(name).await, Some(trace(5)), "{name}");
    }
    assert_eq!(seen.of("explicit").await, Some(trace(99)), "what was given counts");
    ratchet.shutdown().await;
    let attached = capture.attached.lock().unwrap();
    assert!(attached.contains(&trace(5)) && attached.contains(&trace(99)), "runs are tied to the trace: {attached:?}");
}

#[tokio::test]
async fn a_client_can_capture_too() {
    let client = Client::new(memory()).with_trace_capture(Capture::default());
    let submitted = async |client: &Client| client.enqueue(look("single")).submit().await.unwrap().id();
    let of = async |id: JobId| client.find(id).await.unwrap().unwrap().spec.trace;
    let id = CURRENT.scope(6, submitted(&client)).await;
    assert_eq!(of(id).await, Some(trace(6)));
    assert_eq!(of(submitted(&client.clone()).await).await, None);
}

#[tokio::test]
async fn a_capture_that_panics_costs_the_trace_alone() {
    let (ratchet, seen) = node(Some(Capture { panics: true, ..Capture::default() })).await;
    let mut events = ratchet.events();
    ratchet.enqueue(look("single")).submit().await.unwrap();
    assert_eq!(seen.of("single").await, None);
    ratchet.enqueue(look("explicit")).trace_context(trace(1)).submit().await.unwrap();
    assert_eq!(seen.of("explicit").await, Some(trace(1)));
    let done = |e: &ratchet_engine::JobEvent| matches!(e.what, JobEventKind::Completed { .. });
    crate::support::event(&mut events, done).await;
    crate::support::event(&mut events, done).await;
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_schedule_takes_no_trace_along() {
    let client = Client::new(memory()).with_trace_capture(Capture::default());
    let schedule = client.schedule(look("tick").with(|step| step.trace_context(trace(1))));
    let refused = schedule.every(Duration::from_mins(1)).create().await.unwrap_err();
    assert!(refused.to_string().contains("trace_context"), "{refused}");
    let created = client.schedule(look("tick")).every(Duration::from_mins(1)).create();
    let id = CURRENT.scope(1, created).await.unwrap().id();
    assert_eq!(client.store().find_schedules(&[id]).await.unwrap()[0].spec.trace, None);
}
