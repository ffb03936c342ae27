//! Calling a job's body in a unit test, without a node.

use std::sync::Arc;

use ratchet_core::{
    Claim, Clock, Fence, Input, InvalidInput, JobRecord, JobSpec, JobState, JobType, JsonText, Kind, MemoryStore,
    Signal, SignalDecision, SignalKey, Tag, TraceContext, limits,
};
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::job::inject::StateMap;
use crate::job_log::{JobLogs, LogQueue};
use crate::node::ids::{SystemClock, new_delivery_id, new_job_id, new_node_id};
use crate::observe::metrics::Meter;
use crate::observe::stats::Counters;
use crate::run::context::JobContext;

/// Makes a context for calling a job's body in a unit test; see [`JobContext::for_test`].
#[derive(Debug)]
#[must_use = "call .build()"]
pub struct TestContext {
    kind: String,
    attempt: u32,
    params: Vec<(String, String)>,
    tags: Vec<String>,
    inputs: Vec<Result<JsonText, InvalidInput>>,
    signal: Option<Result<Signal, InvalidInput>>,
    trace: Option<TraceContext>,
    states: StateMap,
    token: CancellationToken,
}

impl JobContext {
    /// Begins to make a context for a unit test.
    ///
    /// Its client submits to a store in memory that nobody works on.
    ///
    /// ```
    /// use ratchet_engine::JobContext;
    ///
    /// let ctx = JobContext::for_test().attempt(2).param("customer", "7").build().unwrap();
    /// assert_eq!((ctx.attempt(), ctx.param("customer")), (2, Some("7")));
    /// ```
    pub fn for_test() -> TestContext {
        TestContext {
            kind: "test".to_owned(),
            attempt: 1,
            params: Vec::new(),
            tags: Vec::new(),
            inputs: Vec::new(),
            signal: None,
            trace: None,
            states: StateMap::default(),
            token: CancellationToken::new(),
        }
    }
}

impl TestContext {
    /// Of a job of this kind; `test` unless said otherwise.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = kind.into();
        self
    }

    /// In this attempt, from 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt.max(1);
        self
    }

    /// With this param.
    pub fn param(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.params.push((key.into(), value.into()));
        self
    }

    /// With this tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// After a step with this result; may be given several times.
    pub fn after(mut self, result: &impl serde::Serialize) -> Self {
        self.inputs.push(JsonText::encode("result", result, limits::RESULT_BYTES_MAX));
        self
    }

    /// With a signal of this payload, without sender and decision.
    pub fn signal(self, payload: &impl serde::Serialize) -> Self {
        self.signaled(payload, None)
    }

    /// With a signal of this payload that approves or rejects.
    pub fn decided(self, payload: &impl serde::Serialize, decision: SignalDecision) -> Self {
        self.signaled(payload, Some(decision))
    }

    fn signaled(mut self, payload: &impl serde::Serialize, decision: Option<SignalDecision>) -> Self {
        let payload = JsonText::encode("signal payload", payload, limits::SIGNAL_BYTES_MAX);
        let signal = |payload| -> Result<Signal, InvalidInput> {
            let (key, at, delivery_id) = (SignalKey::new("test")?, SystemClock.now(), new_delivery_id());
            Ok(Signal { key, payload, decision, by: None, at, delivery_id })
        };
        self.signal = Some(payload.and_then(signal));
        self
    }

    /// In the course of this trace.
    pub fn trace_context(mut self, context: TraceContext) -> Self {
        self.trace = Some(context);
        self
    }

    /// With this state.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// With this token, which the test can cancel.
    pub fn cancellation_token(mut self, token: CancellationToken) -> Self {
        self.token = token;
        self
    }

    /// Makes the context; the same limits hold as for a submit.
    pub fn build(self) -> Result<JobContext, InvalidInput> {
        let mut spec = JobSpec::new(Kind::new(self.kind)?, JsonText::null());
        spec.params = self.params.into_iter().collect();
        spec.tags = self.tags.into_iter().map(Tag::new).collect::<Result<_, _>>()?;
        spec.trace = self.trace;
        spec.check()?;
        let now = SystemClock.now();
        let mut job = JobRecord::stored(new_job_id(), spec, JobType::Single, JobState::Running, now, now);
        let fence = Fence { job_id: job.id, version: 1, node: new_node_id() };
        job.version = fence.version;
        job.attempts = self.attempt - 1;
        job.picked_by = Some(fence.node);
        job.picked_at = Some(now);
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for result in self.inputs {
            let (job_id, kind, step) = (new_job_id(), Kind::new("before")?, None);
            let (state, result) = (JobState::Succeeded, Some(result?));
            inputs.push(Input { job_id, kind, step, state, result, error: None });
        }
        let client = Client::new(MemoryStore::new(Arc::new(SystemClock)));
        let signal = self.signal.transpose()?;
        let claim = Claim { fence, job, inputs, signal };
        let logs = LogQueue::new(JobLogs::off(), Arc::new(Counters::new(Meter::default())));
        Ok(JobContext::new(claim, Arc::new(self.states), client, self.token, logs))
    }
}
