//! What a running handler knows of its job, and can say about it.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ratchet_core::prepare::PrepareCompletion;
use ratchet_core::record::Timing;
use ratchet_core::{
    Decision, Fence, Input, InvalidInput, JobId, JobRecord, JsonText, Kind, Origin, Outcome, Settled, Settlement,
    Signal, Tag, Verdicts, clock, decide,
};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::failure::Failure;
use crate::ids::new_job_id;
use crate::inject::{State, StateMap};
use crate::workflow::is_condition;

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
    begun: Instant,
    progress: Mutex<ProgressCell>,
    completion: Mutex<Option<Settlement>>,
}

/// A claimed job, shared with those who watch over it.
pub(crate) struct Claimed {
    pub(crate) fence: Fence,
    pub(crate) job: Arc<JobRecord>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) signal: Option<Signal>,
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
        Claimed { fence, job, inputs, signal }: Claimed,
        states: Arc<StateMap>,
        client: Client,
        token: CancellationToken,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                fence,
                job,
                inputs,
                signal,
                states,
                client,
                token,
                begun: Instant::now(),
                progress: Mutex::default(),
                completion: Mutex::default(),
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

    /// The job as it was claimed.
    pub fn job(&self) -> &JobRecord {
        &self.inner.job
    }

    /// The payload as JSON.
    pub fn payload(&self) -> &JsonText {
        &self.inner.job.spec.payload
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
        self.inner.job.origin.as_ref()
    }

    /// What came of the jobs that this one waited for, in the order in which the edges were defined.
    pub fn inputs(&self) -> &[Input] {
        &self.inner.inputs
    }

    /// The result of the step before; of several, a list or a tuple of their results. As a parameter: [`Prev`](crate::Prev).
    ///
    /// # Errors
    /// If there is no step before, or its result is of another type: not to be retried.
    pub fn prev<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let mut before = self.inputs().iter().filter(|input| !is_condition(&input.kind));
        match (before.next(), before.next()) {
            (None, _) => {
                let text = format!("job {} takes the result of the step before, but there is none", self.id());
                Err(Failure::do_not_retry(text, "submit it as a step after another"))
            }
            (Some(only), None) => decode_input(only),
            (Some(_), Some(_)) => {
                let results = self.inputs().iter().filter(|input| !is_condition(&input.kind));
                let results: Vec<&str> =
                    results.map(|input| input.result.as_ref().map_or("null", JsonText::as_str)).collect();
                let list = format!("[{}]", results.join(","));
                serde_json::from_str(&list)
                    .map_err(|error| unreadable_input(&format!("{} steps", results.len()), &error))
            }
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
        self.inner.signal.as_ref()
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

    /// Logs in the job's name: each line carries its id, kind and attempt.
    pub fn log(&self) -> JobLog<'_> {
        JobLog { ctx: self }
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

    /// Whether the attempt should end: the job was cancelled, timed out, or the node is stopping.
    pub fn is_cancelled(&self) -> bool {
        self.inner.token.is_cancelled()
    }

    /// Waits until the attempt should end. A handler that does not look is dropped after a short grace.
    pub async fn cancelled(&self) {
        self.inner.token.cancelled().await;
    }

    /// A token for code that takes one; cancelling it cancels nothing else.
    pub fn cancellation_token(&self) -> CancellationToken {
        self.inner.token.child_token()
    }

    /// When the attempt ran, by the database's clock for its begin and a steady clock for its length.
    pub(crate) fn timing(&self) -> Timing {
        let job = &self.inner.job;
        let started_at = job.picked_at.unwrap_or(job.scheduled_time);
        let duration = self.inner.begun.elapsed();
        Timing {
            started_at,
            ended_at: clock::later(started_at, duration),
            duration,
            queue_wait: clock::elapsed(job.scheduled_time, started_at),
        }
    }

    /// What the attempt came to, as a settlement.
    pub(crate) fn decide(&self, outcome: Outcome, verdicts: Verdicts) -> Option<Settlement> {
        decide(Decision {
            job: &self.inner.job,
            fence: self.inner.fence,
            outcome,
            verdicts,
            timing: self.timing(),
            callback_id: new_job_id(),
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
        let result = crate::registry::encode_result(result)
            .map_err(|failure| InvalidInput::new("result", failure.message().trim_start_matches("`result` ")))?;
        Ok(self
            .decide(Outcome::Succeeded { result }, Verdicts::default())
            .expect("only a cancelled attempt has nothing to write"))
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

/// Logs in a job's name.
#[derive(Debug, Clone, Copy)]
pub struct JobLog<'a> {
    ctx: &'a JobContext,
}

macro_rules! log_levels {
    ($($(#[$doc:meta])* $level:ident)*) => {
        impl JobLog<'_> {
            $($(#[$doc])*
            pub fn $level(&self, message: impl fmt::Display) {
                let ctx = self.ctx;
                tracing::$level!({ job.id = %ctx.id(), job.kind = %ctx.kind(), attempt = ctx.attempt() }, "{message}");
            })*
        }
    };
}

log_levels! {
    /// For following every step.
    trace
    /// For finding a fault.
    debug
    /// Worth knowing.
    info
    /// Odd, but handled.
    warn
    /// A person should look.
    error
}
