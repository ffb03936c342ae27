//! Metrics for those who watch: what is counted, timed and measured, under which names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::guard::{self, Panics};

/// What a metric is about: names and values, such as `kind` and `billing.charge`.
pub type Labels<'a> = &'a [(&'static str, &'a str)];

/// Takes the metrics of a node or client.
///
/// The default hands them to the [`metrics`] facade, where they go wherever the application has installed a recorder for;
/// without one they cost next to nothing. It is called often, from the middle of things: it must be quick and must not
/// block. One that panics is not called again.
pub trait MetricsCollector: Send + Sync + 'static {
    /// Something happened so many times.
    fn count(&self, name: &'static str, labels: Labels<'_>, times: u64);

    /// Something took so many seconds.
    fn time(&self, name: &'static str, labels: Labels<'_>, seconds: f64);

    /// Something happened several times, and took so many seconds each time: what a node has gathered of many jobs. Calls
    /// [`time`](Self::time) for each, unless there is a cheaper way.
    fn times(&self, name: &'static str, labels: Labels<'_>, seconds: &[f64]) {
        for one in seconds {
            self.time(name, labels, *one);
        }
    }

    /// Something stands at this value now.
    fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64);
}

/// The names of all metrics, with what they mean.
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
    /// Jobs that were canceled. Label: `kind`.
    pub const CANCELED: &str = "ratchet.jobs.canceled";
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
    /// Hints of new work handed over to be sent, and those of them that left together with another. Label: `outcome`, `sent` or
    /// `coalesced`.
    pub const HINTS_PUBLISHED: &str = "ratchet.hints.published";
    /// Hints of new work that came in. Label: `outcome`: `heard`, `own`, `rejected` or `listener_failed`.
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
    /// Panics of the node's loops and of what was plugged into it. Label: `what`, the loop or the extension.
    pub const PANICS: &str = "ratchet.panics";
}

/// Hands metrics to the [`metrics`] facade.
#[derive(Debug, Clone, Copy, Default)]
pub struct FacadeMetrics;

impl MetricsCollector for FacadeMetrics {
    fn count(&self, name: &'static str, labels: Labels<'_>, times: u64) {
        metrics::counter!(name, owned(labels)).increment(times);
    }

    fn time(&self, name: &'static str, labels: Labels<'_>, seconds: f64) {
        metrics::histogram!(name, owned(labels)).record(seconds);
    }

    fn times(&self, name: &'static str, labels: Labels<'_>, seconds: &[f64]) {
        // Finding the histogram is most of what a metric costs.
        let histogram = metrics::histogram!(name, owned(labels));
        for one in seconds {
            histogram.record(*one);
        }
    }

    fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64) {
        metrics::gauge!(name, owned(labels)).set(value);
    }
}

fn owned(labels: Labels<'_>) -> Vec<metrics::Label> {
    labels.iter().map(|(name, value)| metrics::Label::new(*name, (*value).to_owned())).collect()
}

/// What the rest of the engine calls.
#[derive(Clone)]
pub(crate) struct Meter {
    collector: Arc<dyn MetricsCollector>,
    /// A collector that panicked is not called again.
    broken: Arc<AtomicBool>,
    panics: Arc<Panics>,
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
        Self { collector, broken: Arc::default(), panics: Arc::default() }
    }

    pub(crate) fn count(&self, name: &'static str, labels: Labels<'_>, times: u64) {
        self.record(|collector| collector.count(name, labels, times));
    }

    pub(crate) fn time(&self, name: &'static str, labels: Labels<'_>, took: Duration) {
        self.record(|collector| collector.time(name, labels, took.as_secs_f64()));
    }

    pub(crate) fn times(&self, name: &'static str, labels: Labels<'_>, seconds: &[f64]) {
        self.record(|collector| collector.times(name, labels, seconds));
    }

    pub(crate) fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64) {
        self.record(|collector| collector.gauge(name, labels, value));
    }

    fn record(&self, record: impl FnOnce(&dyn MetricsCollector)) {
        if self.broken.load(Ordering::Relaxed) {
            return;
        }
        if guard::call(self, guard::METRICS_COLLECTOR, || record(&*self.collector)).is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }

    /// The panics that were caught by the guard.
    pub(crate) fn panics(&self) -> &Panics {
        &self.panics
    }
}
