//! Figures for those who watch: what is counted, timed and measured, under which names.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::{AttemptRecord, AttemptStatus, JobRecord, Kind, QueueName};

use crate::events::JobEventKind;

/// What a figure is about: names and values, such as `kind` and `billing.charge`.
pub type Labels<'a> = &'a [(&'static str, &'a str)];

/// Takes the figures of a node or client.
///
/// The default hands them to the [`metrics`] facade, where they go wherever the application has installed a recorder for;
/// without one they cost next to nothing. It is called often, from the middle of things: it must be quick and must not
/// block. One that panics is told once and called no more.
pub trait MetricsCollector: Send + Sync + 'static {
    /// Something happened so many times.
    fn count(&self, name: &'static str, labels: Labels<'_>, times: u64);

    /// Something took so many seconds.
    fn time(&self, name: &'static str, labels: Labels<'_>, seconds: f64);

    /// Something stands at this value now.
    fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64);
}

/// The names of all figures, with what they mean.
pub mod names {
    /// Attempts that began. Labels: `kind`, `queue`.
    pub const STARTED: &str = "ratchet.jobs.started";
    /// Jobs that succeeded. Label: `kind`.
    pub const COMPLETED: &str = "ratchet.jobs.completed";
    /// Attempts that failed. Labels: `kind`; `class`, how: `failed`, `timed_out`, `panicked` or `crashed`.
    pub const FAILED: &str = "ratchet.jobs.failed";
    /// Attempts that took longer than their timeout; they are among the failed. Label: `kind`.
    pub const TIMED_OUT: &str = "ratchet.jobs.timed_out";
    /// Jobs that will be tried again. Label: `kind`.
    pub const RETRYING: &str = "ratchet.jobs.retrying";
    /// Jobs that failed for good. Labels: `kind`, `reason`.
    pub const DEAD_LETTERED: &str = "ratchet.jobs.dead_lettered";
    /// Jobs that went back without an attempt consumed. Labels: `kind`, `reason`.
    pub const DEFERRED: &str = "ratchet.jobs.deferred";
    /// Jobs that were cancelled. Label: `kind`.
    pub const CANCELLED: &str = "ratchet.jobs.cancelled";
    /// Jobs of dead nodes that went to others. Label: `kind`.
    pub const RESCUED: &str = "ratchet.jobs.rescued";
    /// Seconds that an attempt ran. Labels: `kind`, `outcome`.
    pub const DURATION: &str = "ratchet.jobs.duration";
    /// Seconds that a job waited, from when it was due until it began. Labels: `kind`, `queue`.
    pub const WAIT: &str = "ratchet.jobs.wait";
    /// Jobs that wait for their signal. Label: `kind`.
    pub const SIGNAL_WAITING: &str = "ratchet.signals.waiting";
    /// Jobs whose signal came. Label: `kind`.
    pub const SIGNAL_DELIVERED: &str = "ratchet.signals.delivered";
    /// Jobs whose signal did not come in time. Label: `kind`.
    pub const SIGNAL_TIMED_OUT: &str = "ratchet.signals.timed_out";
    /// Batches that are through.
    pub const BATCH_COMPLETED: &str = "ratchet.batches.completed";
    /// Seconds that a turn took: the transaction that settles and claims. Label: `outcome`, `ok` or `error`.
    pub const TURN: &str = "ratchet.store.turn";
    /// Seconds that a call of the store took, of whatever sort. Labels: `operation`; `outcome`, `ok`, `error` or `given_up`.
    pub const STORE_OPERATION: &str = "ratchet.store.operation";
    /// Submits that were refused before anything was written. Label: `reason`, `policy`.
    pub const SUBMITS_REFUSED: &str = "ratchet.submits.refused";
    /// Jobs whose arguments could not be read. Labels: `kind`; `by`, who could not: `codec` or `handler`.
    pub const UNREADABLE: &str = "ratchet.jobs.unreadable";
    /// Hints of new work that went out. Label: `outcome`, `sent` or `dropped`.
    pub const HINTS_PUBLISHED: &str = "ratchet.hints.published";
    /// Hints of new work that came in. Label: `outcome`: `heard`, `own`, `rejected`, `unheard` or `listener_failed`.
    pub const HINTS_RECEIVED: &str = "ratchet.hints.received";
    /// What became of the way that hints go. Label: `outcome`, `failed` or `reconnected`.
    pub const HINTS_TRANSPORT: &str = "ratchet.hints.transport";
    /// Slots that hold a job.
    pub const SLOTS_TAKEN: &str = "ratchet.slots.taken";
    /// Seconds since a loop of the node last did what it is for. Label: `loop`.
    pub const LOOP_AGE: &str = "ratchet.loop.age";
    /// Jobs that wait in a queue, due or not; of each kind and priority no more than ten thousand are counted. Label: `queue`.
    pub const QUEUE_DEPTH: &str = "ratchet.queue.depth";
    /// Seconds that the oldest job of a queue that is due has waited. Label: `queue`.
    pub const QUEUE_OLDEST: &str = "ratchet.queue.oldest";
    /// Jobs in the dead letter queue; no more than ten thousand are counted.
    pub const DEAD_LETTERS: &str = "ratchet.dead_letters";
    /// Where a service's circuit breaker stands: 0 closed, 1 half open, 2 open. Label: `service`.
    pub const BREAKER: &str = "ratchet.breaker.state";
}

/// Hands figures to the [`metrics`] facade.
#[derive(Debug, Clone, Copy, Default)]
pub struct FacadeMetrics;

impl MetricsCollector for FacadeMetrics {
    fn count(&self, name: &'static str, labels: Labels<'_>, times: u64) {
        metrics::counter!(name, owned(labels)).increment(times);
    }

    fn time(&self, name: &'static str, labels: Labels<'_>, seconds: f64) {
        metrics::histogram!(name, owned(labels)).record(seconds);
    }

    fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64) {
        metrics::gauge!(name, owned(labels)).set(value);
    }
}

fn owned(labels: Labels<'_>) -> Vec<metrics::Label> {
    labels.iter().map(|(name, value)| metrics::Label::new(*name, (*value).to_owned())).collect()
}

/// What the rest of the engine calls: knows which figures belong to what happened.
#[derive(Clone)]
pub(crate) struct Meter {
    collector: Arc<dyn MetricsCollector>,
    /// A collector that panicked is not called again.
    broken: Arc<AtomicBool>,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(Arc::new(FacadeMetrics))
    }
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").finish_non_exhaustive()
    }
}

impl Meter {
    pub(crate) fn new(collector: Arc<dyn MetricsCollector>) -> Self {
        Self { collector, broken: Arc::default() }
    }

    pub(crate) fn count(&self, name: &'static str, labels: Labels<'_>, times: u64) {
        self.tell(|collector| collector.count(name, labels, times));
    }

    pub(crate) fn time(&self, name: &'static str, labels: Labels<'_>, took: Duration) {
        self.tell(|collector| collector.time(name, labels, took.as_secs_f64()));
    }

    pub(crate) fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64) {
        self.tell(|collector| collector.gauge(name, labels, value));
    }

    fn tell(&self, tell: impl FnOnce(&dyn MetricsCollector)) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| tell(&*self.collector))).is_err() {
            self.broken.store(true, Ordering::Relaxed);
            tracing::error!("the metrics collector panicked and is called no more");
        }
    }

    /// An event of a job.
    pub(crate) fn event(&self, kind: &Kind, queue: &QueueName, what: &JobEventKind) {
        let kind = ("kind", kind.as_str());
        let once = |name, labels: Labels<'_>| self.count(name, labels, 1);
        match what {
            JobEventKind::Started { .. } => once(names::STARTED, &[kind, ("queue", queue.as_str())]),
            JobEventKind::Completed { .. } => once(names::COMPLETED, &[kind]),
            JobEventKind::TimedOut { .. } => once(names::TIMED_OUT, &[kind]),
            JobEventKind::Retrying { .. } => once(names::RETRYING, &[kind]),
            JobEventKind::DeadLettered { reason, .. } => {
                once(names::DEAD_LETTERED, &[kind, ("reason", dead_letter_label(reason))]);
            }
            JobEventKind::Deferred { reason, .. } => once(names::DEFERRED, &[kind, ("reason", reason.label())]),
            JobEventKind::Cancelled { .. } | JobEventKind::CancelledBy { .. } => once(names::CANCELLED, &[kind]),
            JobEventKind::Rescued { .. } => once(names::RESCUED, &[kind]),
            JobEventKind::SignalWaiting => once(names::SIGNAL_WAITING, &[kind]),
            JobEventKind::Signaled { .. } => once(names::SIGNAL_DELIVERED, &[kind]),
            JobEventKind::SignalTimedOut => once(names::SIGNAL_TIMED_OUT, &[kind]),
            JobEventKind::BatchCompleted { .. } => once(names::BATCH_COMPLETED, &[]),
            _ => {}
        }
    }

    /// An attempt failed.
    pub(crate) fn failed(&self, kind: &Kind, status: Option<AttemptStatus>) {
        let class = match status {
            Some(AttemptStatus::TimedOut) => "timed_out",
            Some(AttemptStatus::Panicked) => "panicked",
            Some(AttemptStatus::Crashed) => "crashed",
            _ => "failed",
        };
        self.count(names::FAILED, &[("kind", kind.as_str()), ("class", class)], 1);
    }

    /// The times of an attempt that has ended.
    pub(crate) fn attempt(&self, job: &JobRecord, attempt: &AttemptRecord) {
        let kind = ("kind", job.spec.kind.as_str());
        self.time(names::DURATION, &[kind, ("outcome", attempt.status.as_str())], attempt.timing.duration);
        self.time(names::WAIT, &[kind, ("queue", job.spec.queue.as_str())], attempt.timing.queue_wait);
    }
}

fn dead_letter_label(reason: &DeadLetterReason) -> &'static str {
    match reason {
        DeadLetterReason::RetriesExhausted => "retries_exhausted",
        DeadLetterReason::DoNotRetry(_) => "do_not_retry",
        DeadLetterReason::PolicyRefused => "policy_refused",
        DeadLetterReason::NeverRan => "never_ran",
        DeadLetterReason::CrashLimit { .. } => "crash_limit",
    }
}
