//! What a running handler knows of its job, and can say about it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use ratchet_core::prepare::PrepareCompletion;
use ratchet_core::record::AttemptTiming;
use ratchet_core::{
    Claim, Decision, Fence, Input, InvalidInput, JobFlags, JobId, JobRecord, JobType, JsonText, Kind, LogLevel,
    LogLine, NodeId, Origin, Outcome, Settled, Settlement, Signal, Tag, TraceContext, Verdicts, clock, decide,
};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::job::failure::Failure;
use crate::job::inject::{State, StateMap};
use crate::job_log::{AttemptLog, JobLog, LogQueue, Writing};
use crate::node::ids::new_job_id;
use crate::protect::codec;
use crate::run::decoded::DecodedInputs;
use crate::workflow::handed_over;

/// The running attempt, as its handler sees it. Cheap to clone.
#[derive(Clone)]
pub struct JobContext {
    inner: Arc<Inner>,
}

struct Inner {
    fence: Fence,
    job: Arc<JobRecord>,
    inputs: Vec<Input>,
    signal: Option<Signal>,
    states: Arc<StateMap>,
    client: Client,
    token: CancellationToken,
    /// The values that a codec wrote, once they are decoded.
    decoded: OnceLock<DecodedInputs>,
    begun: Instant,
    progress: Mutex<ProgressCell>,
    completion: Mutex<Option<Settlement>>,
    log: AttemptLog,
    logs: Arc<LogQueue>,
}

#[derive(Default)]
struct ProgressCell {
    latest: Option<f64>,
    written: Option<f64>,
}

tokio::task_local! {
    static CURRENT: JobContext;
}

impl JobContext {
    pub(crate) fn new(
        Claim { fence, job, inputs, signal }: Claim,
        states: Arc<StateMap>,
        client: Client,
        token: CancellationToken,
        logs: Arc<LogQueue>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                fence,
                job: Arc::new(job),
                inputs,
                signal,
                states,
                client,
                token,
                decoded: OnceLock::new(),
                begun: Instant::now(),
                progress: Mutex::default(),
                completion: Mutex::default(),
                log: AttemptLog::default(),
                logs,
            }),
        }
    }

    /// The context of the job that runs on this task; `None` outside a handler.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    pub(crate) fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT.scope(self.clone(), future)
    }

    /// Does something as if the handler did it.
    pub(crate) fn scope_sync<T>(&self, act: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), act)
    }

    /// The trace of the job that runs on this task.
    pub(crate) fn current_trace() -> Option<TraceContext> {
        CURRENT.try_with(|ctx| ctx.trace_context().cloned()).ok().flatten()
    }

    /// The job's id.
    pub fn id(&self) -> JobId {
        self.inner.job.id
    }

    /// The job's kind.
    pub fn kind(&self) -> &Kind {
        &self.inner.job.spec.kind
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.inner.job.attempts.saturating_add(1)
    }

    /// The job as it was claimed, its arguments as they are stored.
    pub fn job(&self) -> &JobRecord {
        &self.inner.job
    }

    /// Returns the same record, to share it with the pump.
    pub(crate) fn shared_job(&self) -> &Arc<JobRecord> {
        &self.inner.job
    }

    /// Decodes what a codec wrote; the handler sees it decoded from then on.
    pub(crate) fn open(&self) -> Result<(), Failure> {
        let Inner { job, inputs, signal, client, decoded, .. } = &*self.inner;
        let results = inputs.iter().map(|input| &input.result).chain(job.origin.as_ref().map(|origin| &origin.result));
        let stored = results.flatten().chain(signal.as_ref().map(|signal| &signal.payload)).chain([&job.spec.payload]);
        // Most jobs have nothing of the sort.
        if stored.map(JsonText::as_str).any(codec::may_hold_sealed) {
            let _ = decoded.set(DecodedInputs::of(client, job, inputs, signal.as_ref())?);
        }
        Ok(())
    }

    fn decoded(&self) -> Option<&DecodedInputs> {
        self.inner.decoded.get()
    }

    /// The payload as JSON.
    pub fn payload(&self) -> &JsonText {
        self.decoded().map_or(&self.inner.job.spec.payload, |decoded| &decoded.payload)
    }

    /// The params given at submit.
    pub fn params(&self) -> &BTreeMap<String, String> {
        &self.inner.job.spec.params
    }

    /// One of the params.
    pub fn param(&self, key: &str) -> Option<&str> {
        self.params().get(key).map(String::as_str)
    }

    /// The tags given at submit.
    pub fn tags(&self) -> &[Tag] {
        &self.inner.job.spec.tags
    }

    /// In a callback: the finished job that it is about, with its result or error.
    pub fn origin(&self) -> Option<&Origin> {
        self.decoded().map_or(self.inner.job.origin.as_ref(), |decoded| decoded.origin.as_ref())
    }

    /// What came of the jobs that this one waited for, in the order in which the edges were defined.
    pub fn inputs(&self) -> &[Input] {
        self.decoded().map_or(&self.inner.inputs, |decoded| &decoded.inputs)
    }

    /// The same, with results as they are stored.
    pub(crate) fn stored_inputs(&self) -> &[Input] {
        &self.inner.inputs
    }

    /// The result of the step before; of a step with several edges to it, the list of their results, or a tuple. As a
    /// parameter: [`Prev`](crate::Prev).
    ///
    /// A join of any has as many as held: a list, also of one. If that one result is no list itself, it can be asked for as
    /// what it is, too.
    ///
    /// # Errors
    /// If there is no step before, or its result is of another type: not to be retried.
    pub fn prev<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let before: Vec<(&Input, JsonText)> =
            self.inputs().iter().filter_map(|input| Some((input, handed_over(input)?))).collect();
        let list = || {
            let results: Vec<&str> = before.iter().map(|(_, result)| result.as_str()).collect();
            format!("[{}]", results.join(","))
        };
        // Where one result is a list, it could not be told from several: a join has a list of results, however many came.
        let joins = self.inner.job.job_type == JobType::WorkflowJoin || self.inner.job.flow.has(JobFlags::JOIN_ANY);
        match &before[..] {
            [] => {
                let text = format!("job {} takes the result of the step before, but there is none", self.id());
                Err(Failure::do_not_retry(text, "submit it as a step after another"))
            }
            [(input, result)] => {
                let (alone, listed) = (result.as_str(), list());
                let (first, second) = match (joins, alone.trim_start().starts_with('[')) {
                    (true, true) => (listed.as_str(), None),
                    (true, false) => (listed.as_str(), Some(alone)),
                    (false, _) => (alone, None),
                };
                serde_json::from_str(first)
                    .or_else(|error| second.map_or(Err(error), serde_json::from_str))
                    .map_err(|error| unreadable_input(&format!("job {} ({})", input.job_id, input.kind), &error))
            }
            several => serde_json::from_str(&list())
                .map_err(|error| unreadable_input(&format!("{} steps", several.len()), &error)),
        }
    }

    /// The signal that this job waited for: `None` if it waited for none. Every attempt sees the same.
    ///
    /// ```
    /// # use ratchet_engine::{Failure, JobContext};
    /// # fn example(ctx: &JobContext) -> Result<(), Failure> {
    /// if let Some(signal) = ctx.signal() {
    ///     match signal.rejection() {
    ///         Some(reason) => ctx.log().info(format_args!("rejected: {reason}")),
    ///         None => ctx.log().info(format_args!("by {:?}", signal.by)),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn signal(&self) -> Option<&Signal> {
        self.decoded().map_or(self.inner.signal.as_ref(), |decoded| decoded.signal.as_ref())
    }

    /// A value that was given to the builder.
    ///
    /// # Panics
    /// If there is none. A job that lists the type in [`Job::requires`](crate::Job::requires), as `#[job]` does by
    /// itself, cannot get here: the engine refuses to start.
    pub fn state<T: Send + Sync + 'static>(&self) -> State<T> {
        self.try_state().unwrap_or_else(|| {
            panic!("no state of type {} was given to the builder; add .state(…)", std::any::type_name::<T>())
        })
    }

    /// A value that was given to the builder, if there is one.
    pub fn try_state<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        self.inner.states.get()
    }

    /// Submits further jobs, or looks at others.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The trace that the job was submitted in the course of, if there is one: where its own calls go on.
    ///
    /// ```
    /// # use ratchet_engine::JobContext;
    /// # fn example(ctx: &JobContext) {
    /// for (name, value) in ctx.trace_context().map(|trace| ("traceparent", trace.traceparent())) {
    ///     println!("a header for the next service: {name}: {value}");
    /// }
    /// # }
    /// # example(&JobContext::for_test().build().unwrap());
    /// ```
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.inner.job.spec.trace.as_ref()
    }

    /// Writes into the job's log: `ctx.log().info("charging")`. Writing waits for nothing, and each line goes to `tracing` too.
    pub fn log(&self) -> JobLog<'_> {
        JobLog::new(self)
    }

    /// Whether lines of this level are kept.
    pub(crate) fn keeps(&self, level: LogLevel) -> bool {
        self.inner.logs.keeps(level)
    }

    /// Puts a line into the job's log.
    pub(crate) fn keep(&self, level: LogLevel, message: String, fields: Option<JsonText>) {
        self.inner.log.write(&self.inner.logs, Writing { like: self.line(), level, message, fields });
    }

    /// The attempt has ended: what it wrote is to be written soon.
    pub(crate) fn end_log(&self) {
        self.inner.log.end(&self.inner.logs, || self.line());
    }

    /// A line of this attempt that says nothing yet.
    fn line(&self) -> LogLine {
        let Fence { job_id, version, node } = self.inner.fence;
        LogLine {
            job_id,
            version,
            seq: 0,
            attempt: self.attempt(),
            node,
            at: clock::later(self.started_at(), self.inner.begun.elapsed()),
            level: LogLevel::default(),
            message: String::new(),
            fields: None,
        }
    }

    /// Says how far the attempt is, from 0 to 1; stored within a second or so. Other numbers are cut to that range.
    pub fn progress(&self, fraction: f64) {
        if !fraction.is_nan() {
            self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner).latest = Some(fraction.clamp(0.0, 1.0));
        }
    }

    /// Progress that has not been written yet.
    pub(crate) fn fresh_progress(&self) -> Option<f64> {
        let cell = self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner);
        cell.latest.filter(|latest| cell.written != Some(*latest))
    }

    pub(crate) fn progress_written(&self, fraction: f64) {
        self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner).written = Some(fraction);
    }

    /// Whether the attempt should end: the job was canceled, timed out, or the node is stopping.
    pub fn is_canceled(&self) -> bool {
        self.inner.token.is_cancelled()
    }

    /// Waits until the attempt should end. A handler that does not look is dropped after a short grace.
    ///
    /// One that breaks off returns an error, whichever: the job of a node that is stopping goes back to its queue, and the
    /// attempt does not count. `Ok` says that the work is done.
    pub async fn canceled(&self) {
        self.inner.token.cancelled().await;
    }

    /// A token for code that takes one; canceling it cancels nothing else.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.inner.token.child_token()
    }

    /// When the attempt ran, by the database's clock for its begin and a steady clock for its length.
    pub(crate) fn timing(&self) -> AttemptTiming {
        let (started_at, duration) = (self.started_at(), self.inner.begun.elapsed());
        AttemptTiming {
            started_at,
            ended_at: clock::later(started_at, duration),
            duration,
            queue_wait: clock::elapsed(self.inner.job.scheduled_time, started_at),
        }
    }

    fn started_at(&self) -> Timestamp {
        let job = &self.inner.job;
        job.picked_at.unwrap_or(job.scheduled_time)
    }

    /// Who runs it.
    pub(crate) fn node(&self) -> NodeId {
        self.inner.fence.node
    }

    /// What the attempt came to, as a settlement.
    pub(crate) fn decide(&self, outcome: Outcome, verdicts: Verdicts) -> Option<Settlement> {
        decide(Decision {
            job: &self.inner.job,
            fence: self.inner.fence,
            outcome,
            verdicts,
            timing: self.timing(),
            callback_id: new_job_id,
        })
    }

    /// The settlement that the handler wrote in its own transaction, whose commit nobody has confirmed.
    pub(crate) fn completion(&self) -> Option<Settlement> {
        self.inner.completion.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads the result of a job that this one waited for.
pub(crate) fn decode_input<T: DeserializeOwned>(input: &Input) -> Result<T, Failure> {
    let text = input.result.as_ref().map_or("null", JsonText::as_str);
    serde_json::from_str(text)
        .map_err(|error| unreadable_input(&format!("job {} ({})", input.job_id, input.kind), &error))
}

fn unreadable_input(whose: &str, error: &serde_json::Error) -> Failure {
    let text = format!("the result of {whose} before this one cannot be read as the type that is asked for: {error}");
    Failure::do_not_retry(text, "the result will not change")
}

impl PrepareCompletion for JobContext {
    fn prepare_completion<R: serde::Serialize + Sync>(&self, result: &R) -> Result<Settlement, InvalidInput> {
        let result = crate::job::registry::encode_result(self, result)
            .map_err(|failure| InvalidInput::new("result", failure.message().trim_start_matches("`result` ")))?;
        Ok(self
            .decide(Outcome::Succeeded { result }, Verdicts::default())
            .expect("only a canceled attempt has nothing to write"))
    }

    fn completion_written(&self, settlement: Settlement, settled: Settled) {
        if settled != Settled::Conflict {
            *self.inner.completion.lock().unwrap_or_else(PoisonError::into_inner) = Some(settlement);
        }
    }
}

impl fmt::Debug for JobContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobContext").field("id", &self.id()).field("kind", self.kind()).finish_non_exhaustive()
    }
}
