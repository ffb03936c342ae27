//! Handlers that run where a provider says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ratchet_core::{DeferReason, JobRecord, JobState};
use ratchet_engine::{
    Attempt, ExecutorProvider, Failure, Job, JobContext, JobDefaults, JobEventKind, Ratchet, ResultError, Slots,
};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::support::{Play, Stage, event, eventually, memory, quick, started};

/// A runtime of its own, whose end does not wait: tests drop it on a thread that may not block.
struct Own(Option<Runtime>);

impl Own {
    fn named(name: &str) -> Self {
        Self(Some(Builder::new_multi_thread().worker_threads(2).thread_name(name).enable_all().build().unwrap()))
    }

    fn handle(&self) -> Handle {
        self.0.as_ref().unwrap().handle().clone()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Says on which thread it runs, and whether it knows its own context there.
#[derive(Serialize, Deserialize)]
struct Where<const BLOCKING: bool>;

impl<const BLOCKING: bool> Job for Where<BLOCKING> {
    const KIND: &'static str = if BLOCKING { "where.blocking" } else { "where" };
    type Output = (String, bool);

    fn defaults() -> JobDefaults {
        let defaults = JobDefaults::default();
        if BLOCKING { defaults.blocking() } else { defaults }
    }

    async fn run(self, ctx: JobContext) -> Result<(String, bool), Failure> {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        Ok((thread, JobContext::current().is_some_and(|current| current.id() == ctx.id())))
    }
}

async fn on(provider: impl ExecutorProvider) -> (Ratchet, Stage) {
    let stage = Stage::default();
    let builder = quick(&stage).store(memory()).job::<Where<false>>().job::<Where<true>>();
    (builder.executor_provider(provider).start().await.unwrap(), stage)
}

#[tokio::test]
async fn handlers_run_on_the_runtime_that_is_given_and_know_their_context_there() {
    let own = Own::named("apart");
    let (ratchet, _) = on(own.handle()).await;
    let here = ("apart".to_owned(), true);
    assert_eq!(ratchet.enqueue(Where::<false>).submit().await.unwrap().result().await.unwrap(), here);
    assert_eq!(ratchet.enqueue(Where::<true>).submit().await.unwrap().result().await.unwrap(), here);
    ratchet.shutdown().await;
}

/// One runtime for a queue, and tokio's own for the others.
struct ByQueue(Handle);

impl ExecutorProvider for ByQueue {
    fn spawn(&self, job: &JobRecord, attempt: Attempt) {
        match job.spec.queue.as_str() {
            "apart" => self.0.spawn(attempt),
            _ => tokio::spawn(attempt),
        };
    }
}

#[tokio::test]
async fn a_provider_chooses_by_job_and_leaves_threads_to_tokio() {
    let own = Own::named("apart");
    let stage = Stage::default();
    let builder = quick(&stage).store(memory()).job::<Where<false>>().job::<Where<true>>().queue("apart", 4);
    let ratchet = builder.executor_provider(ByQueue(own.handle())).start().await.unwrap();
    let apart = ratchet.enqueue(Where::<false>).queue("apart").submit().await.unwrap();
    assert_eq!(apart.result().await.unwrap(), ("apart".to_owned(), true));
    let others = ratchet.enqueue(Where::<false>).submit().await.unwrap().result().await.unwrap();
    assert!(others.0 != "apart" && others.1, "{others:?}");
    let blocking = ratchet.enqueue(Where::<true>).queue("apart").submit().await.unwrap().result().await.unwrap();
    assert!(blocking.0 != "apart" && blocking.1, "{blocking:?}");
}

#[tokio::test]
async fn timeouts_cancellation_and_panics_reach_handlers_elsewhere() {
    let own = Own::named("apart");
    let (ratchet, stage) = on(own.handle()).await;
    let mut events = ratchet.events();
    let hangs = ratchet.enqueue(Play::Hang).timeout(Duration::from_millis(30)).max_retries(0).submit().await.unwrap();
    let Err(ResultError::Failed { error, .. }) = hangs.result().await else { panic!("it hangs") };
    assert!(error.contains("longer than its timeout"), "{error}");
    eventually("the drop of what hangs", async || stage.dropped() == 1).await;
    let hears = ratchet.enqueue(Play::UntilCanceled).submit().await.unwrap();
    started(&mut events, hears.id()).await;
    assert!(ratchet.cancel(hears.id()).await.unwrap());
    let deaf = ratchet.enqueue(Play::Hang).submit().await.unwrap();
    eventually("its begin", async || stage.runs(deaf.id()) == 1).await;
    assert!(ratchet.cancel(deaf.id()).await.unwrap());
    eventually("the drop of what is deaf", async || stage.dropped() == 2).await;
    let panics = ratchet.enqueue(Play::Panic).max_retries(0).submit().await.unwrap();
    let Err(ResultError::Failed { error, .. }) = panics.result().await else { panic!("it panics") };
    assert!(error.contains("a handler gone wrong"), "{error}");
}

#[tokio::test]
async fn a_stopping_node_waits_for_handlers_elsewhere_and_hands_back_the_rest() {
    let own = Own::named("apart");
    let (store, stage) = (memory(), Stage::default());
    let builder = quick(&stage).store(store.clone()).drain_timeout(Duration::from_millis(200));
    let ratchet = builder.executor_provider(own.handle()).start().await.unwrap();
    let client = (*ratchet).clone();
    let (ends, hangs) =
        (client.enqueue(Play::Gate).submit().await.unwrap(), client.enqueue(Play::Hang).submit().await.unwrap());
    eventually("both to run", async || stage.runs(ends.id()) + stage.runs(hangs.id()) == 2).await;
    let gate = stage.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.open_gate();
    });
    ratchet.shutdown().await;
    assert_eq!(ends.result().await.unwrap(), "opened");
    let back = hangs.record().await.unwrap();
    assert_eq!((back.state, back.attempts, stage.dropped()), (JobState::Pending, 0, 1));
}

#[tokio::test]
async fn a_node_that_is_dropped_takes_its_handlers_elsewhere_along() {
    let own = Own::named("apart");
    let (ratchet, stage) = on(own.handle()).await;
    let job = ratchet.enqueue(Play::Hang).submit().await.unwrap();
    eventually("its begin", async || stage.runs(job.id()) == 1).await;
    drop(ratchet);
    eventually("the drop", async || stage.dropped() == 1).await;
}

#[tokio::test]
async fn a_slot_stays_taken_while_a_handler_that_was_given_up_blocks_its_thread() {
    let own = Own::named("apart");
    let stage = Stage::default();
    let builder = quick(&stage).store(memory()).queue("default", Slots { tasks: 1, threads: 1 });
    let ratchet = builder.executor_provider(own.handle()).start().await.unwrap();
    let blocks = ratchet.enqueue(Play::BlockThread(400)).timeout(Duration::from_millis(20)).max_retries(0);
    let blocks = blocks.submit().await.unwrap();
    let next = ratchet.enqueue(Play::Return("next".into())).submit().await.unwrap();
    assert!(matches!(blocks.result().await, Err(ResultError::Failed { .. })));
    assert_eq!(next.result().await.unwrap(), "next");
    assert_eq!(stage.most_together(), 1);
}

/// Has lost its executor for the first so many attempts, or panics over them.
struct Gone {
    left: Arc<AtomicUsize>,
    panics: bool,
}

impl ExecutorProvider for Gone {
    fn spawn(&self, _job: &JobRecord, attempt: Attempt) {
        let gone = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        assert!(!(gone && self.panics), "a provider gone wrong");
        if !gone {
            tokio::spawn(attempt);
        }
    }
}

#[tokio::test]
async fn a_job_whose_executor_is_gone_goes_back_and_loses_no_attempt() {
    for panics in [false, true] {
        let (ratchet, stage) = on(Gone { left: Arc::new(AtomicUsize::new(1)), panics }).await;
        let mut events = ratchet.events();
        let job = ratchet.enqueue(Play::Return("x".into())).max_retries(0).submit().await.unwrap();
        let told = event(&mut events, |e| matches!(e.what, JobEventKind::Deferred { .. })).await;
        let JobEventKind::Deferred { reason, delay } = told.what else { unreachable!() };
        assert_eq!((told.job_id, reason), (job.id(), DeferReason::Drained));
        assert!(delay >= Duration::from_secs(5), "not at once, or it would go round and round: {delay:?}");
        let back = job.record().await.unwrap();
        assert_eq!((back.state, back.attempts, stage.runs(job.id())), (JobState::Pending, 0, 0));
        let other = ratchet.enqueue(Play::Return("y".into())).submit().await.unwrap();
        assert_eq!(other.result().await.unwrap(), "y", "and the node goes on");
    }
}
