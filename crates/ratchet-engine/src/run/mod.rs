//! One attempt of a job: gates, the handler, and what is made of its end.

pub(crate) mod gate;
pub(crate) mod executor;
pub(crate) mod context;
pub(crate) mod decoded;
pub(crate) mod retry;
pub(crate) mod sanitize;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use ratchet_core::breaker::CallEnd;
use ratchet_core::{DeferReason, ErrorReport, JsonText, Outcome, Settlement, Verdicts};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::guard::{self, Panicked};
use crate::job::failure::Failure;
use crate::job::registry::Registry;
use crate::observe::metrics::Meter;
use crate::protect::resilience::Guarded;
use crate::run::context::JobContext;
use crate::run::executor::{Executor, Held};
use crate::run::gate::{BreakerEntry, Gate, Passage};
use crate::run::retry::{RetryPolicy, RetryVerdict};
use crate::run::sanitize::ErrorSanitizer;

/// The name of the span of a run.
pub(crate) const RUN_SPAN: &str = "job.run";

/// What every attempt of a node needs.
pub(crate) struct Runner {
    pub(crate) registry: Registry,
    pub(crate) gates: Arc<[Box<dyn Gate>]>,
    pub(crate) executor: Executor,
    pub(crate) resilience: Guarded,
    pub(crate) retry_policy: Arc<dyn RetryPolicy>,
    pub(crate) sanitizer: Arc<dyn ErrorSanitizer>,
    pub(crate) cancel_grace: Duration,
}

/// How an attempt is told to end, and why.
#[derive(Debug, Default)]
pub(crate) struct CancelHandle {
    pub(crate) token: CancellationToken,
    /// The node's right to run jobs, whose end is the end of the attempt too.
    right: CancellationToken,
    why: AtomicU8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelReason {
    /// The job is no longer this node's: whatever comes of it is void.
    Revoked = 1,
    /// The node is stopping or has lost its standing: the job goes back.
    HandBack = 2,
}

impl CancelHandle {
    /// A cancel that also ends with the node's right to run jobs.
    pub(crate) fn under(right: &CancellationToken) -> Self {
        Self { token: right.child_token(), right: right.clone(), why: AtomicU8::new(0) }
    }

    pub(crate) fn cancel(&self, why: CancelReason) {
        // The first reason stands.
        let _ = self.why.compare_exchange(0, why as u8, Ordering::AcqRel, Ordering::Acquire);
        self.token.cancel();
    }

    fn why(&self) -> Option<CancelReason> {
        match self.why.load(Ordering::Acquire) {
            1 => Some(CancelReason::Revoked),
            2 => Some(CancelReason::HandBack),
            _ => self.right.is_cancelled().then_some(CancelReason::HandBack),
        }
    }
}

/// What an attempt came to.
#[derive(Debug)]
pub(crate) struct Ended {
    /// What to write; `None` if somebody else has.
    pub(crate) settlement: Option<Settlement>,
    /// Why the job goes back, if it does.
    pub(crate) defer: Option<DeferReason>,
    /// What the handler wrote in its own transaction before it failed: should the settlement come too late, this may
    /// be what came first.
    pub(crate) own_commit: Option<Settlement>,
    /// What a handler that was given up still holds, such as a thread: its slot stays taken until that is free.
    pub(crate) held: Option<Held>,
}

/// How the handler ended, before anything was made of it.
enum HandlerEnd {
    Returned(Result<Option<JsonText>, Failure>),
    /// Its service or its executor is not to be had: the handler did not run.
    NotNow(Duration, DeferReason),
    Panicked(String),
    TimedOut(Duration),
    Canceled,
}

impl Runner {
    /// Runs one attempt through its steps.
    ///
    /// `entry` is the answer of the first gate. The span of the run is returned open: the time that a subscriber needs for its end
    /// should not delay the result.
    pub(crate) async fn run(
        &self,
        ctx: &JobContext,
        cancel: &CancelHandle,
        entry: BreakerEntry,
    ) -> (Ended, tracing::Span) {
        let span = run_span(ctx);
        let run = async {
            let attempt = async {
                match self.pass_gates(ctx, &entry).await {
                    Ok(()) => self.execute(ctx, cancel).await,
                    Err(end) => (end, None),
                }
            };
            // The handler has a guard of its own; this one is for gates, so that no panic can cost a slot.
            let attempt = guard::run(ctx.client().meter(), guard::GATE, attempt).await;
            let (end, held) = attempt.unwrap_or_else(|panic| (HandlerEnd::Panicked(panic.text()), None));
            let (outcome, verdicts) = self.judge(ctx, cancel, end);
            tracing::debug!(outcome = ?outcome_name(&outcome), "attempt ended");
            if let BreakerEntry::Admitted(call) = entry {
                call.end(call_end(&outcome, &verdicts));
            }
            ctx.end_log();
            Self::conclude(ctx, outcome, verdicts, held)
        };
        (run.instrument(span.clone()).await, span)
    }

    /// Asks the gates in their order, which [`gate`] lists.
    async fn pass_gates(&self, ctx: &JobContext, entry: &BreakerEntry) -> Result<(), HandlerEnd> {
        if let BreakerEntry::Refused(wait) = entry {
            return Err(HandlerEnd::NotNow(after_about(*wait), DeferReason::BreakerOpen));
        }
        for gate in self.gates.iter() {
            match gate.check(ctx).await {
                Passage::Open => {}
                Passage::Canceled => return Err(HandlerEnd::Canceled),
                Passage::Refused(failure) => return Err(HandlerEnd::Returned(Err(failure))),
            }
        }
        Ok(())
    }

    async fn execute(&self, ctx: &JobContext, cancel: &CancelHandle) -> (HandlerEnd, Option<Held>) {
        let Some(entry) = self.registry.get(ctx.kind()) else {
            // A claim asks for registered kinds only; a store that hands out others has a fault.
            let failure = Failure::new(format!("no handler of kind {} is registered here", ctx.kind()));
            return (HandlerEnd::Returned(Err(failure)), None);
        };
        let guarded = guard::attempt(ctx.scope(entry.handler.run(ctx.clone())));
        let ended = |result: Result<_, Panicked>| match result {
            Ok(returned) => HandlerEnd::Returned(returned),
            Err(panic) => HandlerEnd::Panicked(panic.text()),
        };
        if !entry.blocking && (entry.internal || !self.executor.is_elsewhere()) {
            let mut handler = std::pin::pin!(guarded.map(ended));
            return (self.supervise(ctx, cancel, &mut handler).await, None);
        }
        // Whoever runs it does not know the span by itself.
        let guarded = guarded.instrument(tracing::Span::current());
        let meter = ctx.client().meter();
        let mut elsewhere = if entry.blocking {
            // Polled by hand and not by the runtime, inside which a handler could not use a runtime of its own, as
            // blocking clients do.
            self.executor.spawn_blocking(meter, ctx.job(), move || pollster::block_on(guarded))
        } else {
            self.executor.spawn(meter, ctx.job(), guarded)
        };
        let end = {
            let mut handler = std::pin::pin!(
                (&mut elsewhere.returned).map(|returned| { returned.map_or_else(|_| dropped(ctx), ended) })
            );
            self.supervise(ctx, cancel, &mut handler).await
        };
        (end, elsewhere.give_up())
    }

    /// Waits for the handler, its timeout, or the cancel; a handler that is told to end gets a short grace.
    async fn supervise(
        &self,
        ctx: &JobContext,
        cancel: &CancelHandle,
        handler: &mut (impl Future<Output = HandlerEnd> + Unpin),
    ) -> HandlerEnd {
        let timeout = ctx.job().spec.timeout;
        let time_is_up = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            end = &mut *handler => return end,
            () = cancel.token.cancelled() => {}
            () = time_is_up => {
                cancel.token.cancel();
                let timeout = timeout.unwrap_or_default();
                ctx.log().warn(format_args!("timed out after {timeout:?}"));
                // What it returns now comes too late, but it may clean up.
                let _ = tokio::time::timeout(self.cancel_grace, handler).await;
                return HandlerEnd::TimedOut(timeout);
            }
        }
        tokio::time::timeout(self.cancel_grace, handler).await.unwrap_or(HandlerEnd::Canceled)
    }

    /// Makes an outcome of the handler's end, asking user code for its verdicts.
    fn judge(&self, ctx: &JobContext, cancel: &CancelHandle, end: HandlerEnd) -> (Outcome, Verdicts) {
        let drained = Outcome::Deferred { delay: Duration::ZERO, reason: DeferReason::Drained };
        match (cancel.why(), end) {
            (Some(CancelReason::Revoked), _) => (Outcome::Canceled, Verdicts::default()),
            (None, HandlerEnd::NotNow(delay, reason)) => (Outcome::Deferred { delay, reason }, Verdicts::default()),
            (_, HandlerEnd::Returned(Ok(result))) => (Outcome::Succeeded { result }, Verdicts::default()),
            // A handler that was told to end will often say so by an error: that is no failed attempt.
            (Some(CancelReason::HandBack), _) | (None, HandlerEnd::Canceled) => (drained, Verdicts::default()),
            (None, HandlerEnd::Returned(Err(failure))) => match failure.snoozed_for() {
                Some(delay) => (Outcome::Deferred { delay, reason: DeferReason::Snoozed }, Verdicts::default()),
                None => self.failed(ctx, &failure, Outcome::Failed),
            },
            (None, HandlerEnd::Panicked(text)) => self.failed(ctx, &Failure::new(Panic(text)), Outcome::Panicked),
            (None, HandlerEnd::TimedOut(timeout)) => {
                self.failed(ctx, &Failure::new(Timeout(timeout)), Outcome::TimedOut)
            }
        }
    }

    fn failed(&self, ctx: &JobContext, failure: &Failure, outcome: fn(ErrorReport) -> Outcome) -> (Outcome, Verdicts) {
        let do_not_retry = failure.do_not_retry_reason().map(str::to_owned);
        let (meter, policy) = (ctx.client().meter(), &self.retry_policy);
        let verdict = match do_not_retry {
            Some(_) => RetryVerdict::AsConfigured,
            None => guard::call(meter, guard::RETRY_POLICY, || policy.verdict(ctx.job(), ctx.attempt(), failure))
                .unwrap_or(RetryVerdict::AsConfigured),
        };
        let verdicts = Verdicts {
            do_not_retry,
            policy_refused: verdict == RetryVerdict::Refuse,
            policy_delay: match verdict {
                RetryVerdict::After(delay) => Some(delay),
                RetryVerdict::AsConfigured | RetryVerdict::Refuse => None,
            },
        };
        (outcome(sanitized(meter, &*self.sanitizer, failure)), verdicts)
    }

    fn conclude(ctx: &JobContext, outcome: Outcome, verdicts: Verdicts, held: Option<Held>) -> Ended {
        let defer = match outcome {
            Outcome::Deferred { reason, .. } => Some(reason),
            _ => None,
        };
        let written = ctx.completion().map(|written| Settlement { maybe_applied: true, ..written });
        let (settlement, own_commit) = match (outcome, written) {
            // The row is gone: committed by the handler, if the store recognizes it, else taken by somebody else.
            (Outcome::Canceled, Some(written)) => (Some(written), None),
            // The handler wrote its own end. If its transaction was committed, what is settled here comes too late, and
            // the store is asked about that end. If it was not, the handler's writes are lost and so is its success.
            (Outcome::Succeeded { .. }, Some(written)) => {
                let failure = Failure::new(NotCommitted);
                let outcome = Outcome::Failed(ErrorReport::new(failure.class(), failure.message()));
                (ctx.decide(outcome, verdicts), Some(written))
            }
            (outcome, written) => (ctx.decide(outcome, verdicts), written),
        };
        Ended { settlement, defer, own_commit, held }
    }
}

/// The span of a run: events of the handler are inside it, and so belong to the job.
fn run_span(ctx: &JobContext) -> tracing::Span {
    // As if the handler did it, so that a layer finds out whose span it is.
    let span = ctx.scope_sync(|| {
        tracing::info_span!(
            RUN_SPAN,
            job.id = %ctx.id(),
            job.kind = %ctx.kind(),
            queue = %ctx.job().spec.queue,
            attempt = ctx.attempt(),
            node = %ctx.node(),
            trace_id = tracing::field::Empty,
            parent_span_id = tracing::field::Empty,
        )
    });
    if let Some(trace) = ctx.trace_context() {
        span.record("trace_id", tracing::field::display(trace.trace_id()));
        span.record("parent_span_id", tracing::field::display(trace.span_id()));
        ctx.client().attach_trace(&span, trace);
    }
    span
}

/// What ran the handler has dropped it.
fn dropped(ctx: &JobContext) -> HandlerEnd {
    tracing::error!(job.id = %ctx.id(), job.kind = %ctx.kind(), "the handler's executor has dropped it; the job goes back");
    HandlerEnd::NotNow(after_about(GONE_DELAY), DeferReason::Drained)
}

/// How long a job is put off whose executor is gone: others may be quicker to take it than that is to come back.
const GONE_DELAY: Duration = Duration::from_secs(5);

/// Those that are put off together do not come back together.
fn after_about(wait: Duration) -> Duration {
    wait.mul_f64(1.0 + fastrand::f64() / 4.0)
}

/// What an attempt says about the service that it called. An error that is not to be retried, whoever says so, lies in the
/// job, not there.
fn call_end(outcome: &Outcome, verdicts: &Verdicts) -> CallEnd {
    match outcome {
        Outcome::Succeeded { .. } => CallEnd::Succeeded,
        Outcome::Failed(_) if verdicts.do_not_retry.is_some() || verdicts.policy_refused => CallEnd::Neutral,
        Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Panicked(_) => CallEnd::Failed,
        Outcome::Crashed | Outcome::Canceled | Outcome::Deferred { .. } => CallEnd::Neutral,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the handler panicked: {0}")]
struct Panic(String);

#[derive(Debug, thiserror::Error)]
#[error("the attempt took longer than its timeout of {0:?}")]
struct Timeout(Duration);

#[derive(Debug, thiserror::Error)]
#[error("NotCommitted: the handler completed its job in a transaction of its own, but did not commit it")]
struct NotCommitted;

/// Sanitized once; every reader gets this text.
fn sanitized(meter: &Meter, sanitizer: &dyn ErrorSanitizer, failure: &Failure) -> ErrorReport {
    let clean = || sanitizer.sanitize(failure.class(), failure.message());
    let text = guard::call(meter, guard::ERROR_SANITIZER, clean)
        .unwrap_or_else(|_| format!("{}: text withheld, the error sanitizer panicked", failure.class()));
    ErrorReport::new(failure.class(), &text)
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded { .. } => "succeeded",
        Outcome::Failed(_) => "failed",
        Outcome::TimedOut(_) => "timed out",
        Outcome::Panicked(_) => "panicked",
        Outcome::Crashed => "crashed",
        Outcome::Canceled => "canceled",
        Outcome::Deferred { .. } => "deferred",
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use ratchet_core::{AttemptStatus, Change};

    use super::*;
    use crate::job::inject::StateMap;
    use crate::job::registry::Registration;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Never;

    impl crate::Job for Never {
        const KIND: &'static str = "never";
        type Output = ();
        async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
            unreachable!("no gate lets it pass")
        }
    }

    enum Answer {
        Panics,
        Refuses,
    }

    #[async_trait]
    impl Gate for Answer {
        async fn check(&self, _ctx: &JobContext) -> Passage {
            match self {
                Self::Panics => panic!("a gate gone wrong"),
                Self::Refuses => Passage::Refused(Failure::do_not_retry("not allowed", "policy")),
            }
        }
    }

    async fn stopped_by(gate: Answer, entry: BreakerEntry) -> Settlement {
        let runner = Runner {
            registry: Registry::build(vec![Registration::of::<Never>()], &StateMap::default()).unwrap(),
            gates: Arc::new([Box::new(gate) as Box<dyn Gate>]),
            executor: Executor::default(),
            resilience: Guarded::new(Arc::new(crate::AlwaysAdmit), Meter::default()),
            retry_policy: Arc::new(crate::DefaultRetryPolicy),
            sanitizer: Arc::new(crate::DefaultErrorSanitizer),
            cancel_grace: Duration::ZERO,
        };
        let ctx = JobContext::for_test().kind("never").build().unwrap();
        runner.run(&ctx, &CancelHandle::default(), entry).await.0.settlement.unwrap()
    }

    #[tokio::test]
    async fn a_gate_decides_before_the_handler_runs() {
        let refused = stopped_by(Answer::Refuses, BreakerEntry::NoService).await;
        assert!(matches!(refused.change, Change::Fail { .. }), "{refused:?}");
        let panicked = stopped_by(Answer::Panics, BreakerEntry::NoService).await;
        assert_eq!(panicked.attempt.unwrap().status, AttemptStatus::Panicked, "a panic costs an attempt, not a slot");
    }

    #[tokio::test]
    async fn a_service_that_lets_nobody_in_is_asked_before_any_gate() {
        let put_off = stopped_by(Answer::Panics, BreakerEntry::Refused(Duration::from_secs(8))).await;
        let Change::Defer { delay } = put_off.change else { panic!("{put_off:?}") };
        assert!((Duration::from_secs(8)..=Duration::from_secs(10)).contains(&delay), "{delay:?}");
        assert_eq!(put_off.attempt, None, "no handler ran, so there is no attempt to record");
    }
}
