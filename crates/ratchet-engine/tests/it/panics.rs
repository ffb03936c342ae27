//! What users plug in may panic: the node goes on, counts it, and says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::breaker::{Admission, CallEnd, Ticket};
use ratchet_core::coordinator::{CoordinatorStats, ListenGuard, Listener};
use ratchet_core::{ClusterCoordinator, Hint, JobRecord, JobSpec, JobState, LogLine, NodeId, Principal, TraceContext};
use ratchet_engine::metrics::names;
use ratchet_engine::{
    Action, Attempt, Authorizer, BoxError, ErrorSanitizer, ExecutorProvider, Failure, JobLogSink, JobLogs, JobPolicy,
    LifecycleHook, LogSinkError, Part, PayloadCodec, PolicyRefusal, Poll, PollingStrategy, ResilienceStrategy,
    RetryPolicy, RetryVerdict, Scope, Target, TraceCapture,
};

use crate::job_logs::Scribe;
use crate::metrics::Kept;
use crate::support::{Play, Stage, eventually, memory, quick};

/// An extension of every sort that panics whatever it is asked.
#[derive(Debug)]
struct Wrong;

impl RetryPolicy for Wrong {
    fn verdict(&self, _: &JobRecord, _: u32, _: &Failure) -> RetryVerdict {
        panic!("a policy gone wrong")
    }
}

impl ErrorSanitizer for Wrong {
    fn sanitize(&self, _: &str, _: &str) -> String {
        panic!("a sanitizer gone wrong")
    }
}

impl PollingStrategy for Wrong {
    fn after_poll(&mut self, _: Poll) -> Duration {
        panic!("a strategy gone wrong")
    }
    fn woken(&mut self) {
        panic!("a strategy gone wrong")
    }
}

impl ResilienceStrategy for Wrong {
    fn admits(&self, _: &str) -> Admission {
        panic!("a strategy gone wrong")
    }
    fn enter(&self, _: &str) -> Result<Ticket, Duration> {
        panic!("a strategy gone wrong")
    }
    fn leave(&self, _: &str, _: Ticket, _: CallEnd) {
        panic!("a strategy gone wrong")
    }
}

impl TraceCapture for Wrong {
    fn current(&self) -> Option<TraceContext> {
        panic!("a capture gone wrong")
    }
}

impl JobPolicy for Wrong {
    fn check(&self, _: &JobSpec) -> Result<(), PolicyRefusal> {
        panic!("a policy gone wrong")
    }
}

impl PayloadCodec for Wrong {
    fn name(&self) -> &'static str {
        panic!("a codec gone wrong")
    }
    fn covers(&self, _: Part<'_>) -> bool {
        panic!("a codec gone wrong")
    }
    fn encode(&self, _: &str) -> Result<String, BoxError> {
        panic!("a codec gone wrong")
    }
    fn decode(&self, _: &str, _: &str) -> Result<String, BoxError> {
        panic!("a codec gone wrong")
    }
}

impl Authorizer for Wrong {
    fn allows(&self, _: &Principal, _: Action, _: &Target<'_>) -> bool {
        panic!("an authorizer gone wrong")
    }
    fn scope(&self, _: &Principal) -> Scope {
        panic!("an authorizer gone wrong")
    }
}

#[async_trait]
impl JobLogSink for Wrong {
    async fn write(&self, _: Arc<[LogLine]>) -> Result<(), LogSinkError> {
        panic!("a sink gone wrong")
    }
}

#[async_trait]
impl LifecycleHook for Wrong {
    async fn after_start(&self) -> Result<(), BoxError> {
        panic!("a hook gone wrong")
    }
    async fn before_stop(&self) -> Result<(), BoxError> {
        panic!("a hook gone wrong")
    }
}

#[async_trait]
impl ClusterCoordinator for Wrong {
    fn notify(&self, _: &Hint) {}
    fn listen(&self, _: NodeId, _: Listener) -> ListenGuard {
        panic!("a coordinator gone wrong")
    }
    async fn close(&self) {}
    fn stats(&self) -> CoordinatorStats {
        panic!("a coordinator gone wrong")
    }
}

/// Panics over its first attempt.
#[derive(Default)]
struct WrongOnce(AtomicBool);

impl ExecutorProvider for WrongOnce {
    fn spawn(&self, _: &JobRecord, attempt: Attempt) {
        assert!(self.0.swap(true, Ordering::SeqCst), "a provider gone wrong");
        tokio::spawn(attempt);
    }
}

#[tokio::test]
async fn a_node_goes_on_whatever_panics_and_counts_it() {
    let (stage, kept) = (Stage::default(), Kept::default());
    let node = quick(&stage).job::<Scribe>().store(memory()).metrics_collector(kept.clone());
    let node = node.retry_policy(Wrong).error_sanitizer(Wrong).polling_strategy(Wrong).resilience_strategy(Wrong);
    let node =
        node.trace_capture(Wrong).job_logs(JobLogs::to(Wrong)).lifecycle_hook(Wrong).coordinator(Arc::new(Wrong));
    let node = node.executor_provider(WrongOnce::default()).on_event(|_| panic!("a listener gone wrong"));
    let node = node.start().await.unwrap();
    let deferred = node.enqueue(Play::Return("later".into())).submit().await.unwrap();
    eventually("the executor's panic", async || node.stats().panics.contains_key("executor_provider")).await;
    let again = node.enqueue(Play::FailTimes(1)).submit().await.unwrap();
    assert_eq!(again.result().await.unwrap(), "at last");
    let panics = node.enqueue(Play::Panic).max_retries(0).submit().await.unwrap();
    assert_eq!(panics.wait().await.unwrap().state, JobState::Failed);
    node.enqueue(Scribe::of(1)).submit().await.unwrap().result().await.unwrap();
    let expected = [
        "coordinator",
        "error_sanitizer",
        "event_listener",
        "executor_provider",
        "job_log_sink",
        "lifecycle_hook",
        "polling_strategy",
        "resilience_strategy",
        "retry_policy",
        "trace_capture",
    ];
    let counted = async || node.stats().panics.keys().copied().eq(expected);
    eventually("every panic but the handler's", counted).await;
    assert_eq!(deferred.record().await.unwrap().attempts, 0);
    let probe = node.probe();
    assert_eq!(node.stats().panics["lifecycle_hook"], 1, "after_start");
    node.shutdown().await;
    let metric = |what: &str| kept.get(&format!("{}{{what={what}}}", names::PANICS));
    assert!(!probe.health().live && metric("lifecycle_hook") == 2, "before_stop");
    assert_eq!((metric("executor_provider"), metric("error_sanitizer"), metric("handler")), (1, 2, 0));
}

#[tokio::test]
async fn what_guards_submits_counts_as_a_refusal_when_it_panics() {
    let stage = Stage::default();
    let submit = || Play::Return("x".into());
    let node = quick(&stage).store(memory()).job_policy(Wrong).start().await.unwrap();
    node.enqueue(submit()).submit().await.unwrap_err();
    assert_eq!(node.stats().panics, BTreeMap::from([("job_policy", 1)]));
    let node = quick(&stage).store(memory()).payload_codec(Wrong).start().await.unwrap();
    node.enqueue(submit()).submit().await.unwrap_err();
    assert_eq!(node.stats().panics, BTreeMap::from([("payload_codec", 2)]), "whether it covers it, and what it writes");
    let node = quick(&stage).store(memory()).authorizer(Wrong).start().await.unwrap();
    let alice = node.as_principal("alice").unwrap();
    alice.enqueue(submit()).submit().await.unwrap_err();
    assert_eq!(alice.list(&ratchet_core::page::JobFilter::default(), None, 1).await.unwrap().items, []);
    assert_eq!(node.stats().panics, BTreeMap::from([("authorizer", 2)]));
}
