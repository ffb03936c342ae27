//! The metrics of events and settlements: recorded at once, or batched for many jobs.

use std::time::Duration;

use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::{AttemptStatus, Change, JobRecord, Kind, QueueName, Settlement};

use crate::observe::events::JobEventKind;
use crate::observe::metrics::{Labels, Meter, names};

/// A receiver of metrics.
pub(crate) trait Recorder {
    /// Counts `times` occurrences.
    fn count(&mut self, name: &'static str, labels: Labels<'_>, times: u64);

    /// Records a duration.
    fn time(&mut self, name: &'static str, labels: Labels<'_>, took: Duration);

    /// Records an event of a job.
    fn event(&mut self, kind: &Kind, queue: &QueueName, what: &JobEventKind) {
        let kind = ("kind", kind.as_str());
        let mut once = |name, labels: Labels<'_>| self.count(name, labels, 1);
        match what {
            JobEventKind::Started { .. } => once(names::STARTED, &[kind, ("queue", queue.as_str())]),
            JobEventKind::Completed { .. } => once(names::COMPLETED, &[kind]),
            JobEventKind::TimedOut { .. } => once(names::TIMED_OUT, &[kind]),
            JobEventKind::Retrying { .. } => once(names::RETRYING, &[kind]),
            JobEventKind::DeadLettered { reason, .. } => {
                once(names::DEAD_LETTERED, &[kind, ("reason", dead_letter_label(reason))]);
            }
            JobEventKind::Deferred { reason, .. } => once(names::DEFERRED, &[kind, ("reason", reason.label())]),
            JobEventKind::Canceled { .. } | JobEventKind::CanceledBy { .. } => once(names::CANCELED, &[kind]),
            JobEventKind::Rescued { .. } => once(names::RESCUED, &[kind]),
            JobEventKind::SignalWaiting => once(names::SIGNAL_WAITING, &[kind]),
            JobEventKind::Signaled { .. } => once(names::SIGNAL_DELIVERED, &[kind]),
            JobEventKind::SignalTimedOut => once(names::SIGNAL_TIMED_OUT, &[kind]),
            JobEventKind::BatchCompleted { .. } => once(names::BATCH_COMPLETED, &[]),
            _ => {}
        }
    }

    /// Records a committed settlement: the times of its attempt, a failure by how the attempt ended, and its events.
    fn settled(&mut self, job: &JobRecord, settlement: &Settlement, events: &[JobEventKind]) {
        let (kind, attempt) = (("kind", job.spec.kind.as_str()), settlement.attempt.as_ref());
        if let Some(attempt) = attempt {
            self.time(names::DURATION, &[kind, ("outcome", attempt.status.as_str())], attempt.timing.duration);
            self.time(names::WAIT, &[kind, ("queue", job.spec.queue.as_str())], attempt.timing.queue_wait);
        }
        if let Change::Reschedule { .. } | Change::Fail { .. } = settlement.change {
            let class = match attempt.map(|attempt| attempt.status) {
                Some(AttemptStatus::TimedOut) => "timed_out",
                Some(AttemptStatus::Panicked) => "panicked",
                Some(AttemptStatus::Crashed) => "crashed",
                _ => "failed",
            };
            self.count(names::FAILED, &[kind, ("class", class)], 1);
        }
        for what in events {
            self.event(&job.spec.kind, &job.spec.queue, what);
        }
    }
}

impl Recorder for &Meter {
    fn count(&mut self, name: &'static str, labels: Labels<'_>, times: u64) {
        Meter::count(self, name, labels, times);
    }

    fn time(&mut self, name: &'static str, labels: Labels<'_>, took: Duration) {
        Meter::time(self, name, labels, took);
    }
}

/// Metrics of many jobs, which are recorded together: for a job that does little, recording each metric alone is a good part
/// of its cost.
#[derive(Debug, Default)]
pub(crate) struct BatchedMetrics {
    metrics: Vec<BatchedMetric>,
}

/// The values of one name with the same labels. It stays, empty, after it was recorded: the next jobs are mostly of the same
/// kinds.
#[derive(Debug)]
struct BatchedMetric {
    name: &'static str,
    labels: Vec<(&'static str, String)>,
    count: u64,
    seconds: Vec<f64>,
}

/// The maximum number of metrics that stay for the next jobs: where kinds come and go, those that are gone are not searched
/// forever.
const KEPT_MAX: usize = 128;

impl BatchedMetrics {
    /// Records the batch.
    pub(crate) fn record(&mut self, meter: &Meter) {
        for metric in &mut self.metrics {
            if metric.count == 0 && metric.seconds.is_empty() {
                continue;
            }
            let labels: Vec<(&str, &str)> = metric.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
            if metric.count > 0 {
                meter.count(metric.name, &labels, metric.count);
            }
            if !metric.seconds.is_empty() {
                meter.times(metric.name, &labels, &metric.seconds);
            }
            metric.count = 0;
            metric.seconds.clear();
        }
        if self.metrics.len() > KEPT_MAX {
            self.metrics.clear();
        }
    }

    fn metric(&mut self, name: &'static str, labels: Labels<'_>) -> &mut BatchedMetric {
        let known = self.metrics.iter().position(|metric| metric.is(name, labels));
        let at = known.unwrap_or_else(|| {
            let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            self.metrics.push(BatchedMetric { name, labels, count: 0, seconds: Vec::new() });
            self.metrics.len() - 1
        });
        &mut self.metrics[at]
    }
}

impl BatchedMetric {
    fn is(&self, name: &str, labels: Labels<'_>) -> bool {
        let same = |(one, other): (&(&str, String), &(&str, &str))| one.0 == other.0 && one.1 == other.1;
        self.name == name && self.labels.len() == labels.len() && self.labels.iter().zip(labels).all(same)
    }
}

impl Recorder for BatchedMetrics {
    fn count(&mut self, name: &'static str, labels: Labels<'_>, times: u64) {
        self.metric(name, labels).count += times;
    }

    fn time(&mut self, name: &'static str, labels: Labels<'_>, took: Duration) {
        self.metric(name, labels).seconds.push(took.as_secs_f64());
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::observe::metrics::MetricsCollector;

    /// Writes down each call.
    #[derive(Clone, Default)]
    struct Calls(Arc<Mutex<Vec<String>>>);

    impl Calls {
        fn note(&self, what: &str, name: &str, labels: Labels<'_>, value: f64) {
            let labels: Vec<&str> = labels.iter().map(|(_, value)| *value).collect();
            self.0.lock().unwrap().push(format!("{what} {name} {} {value}", labels.join("/")));
        }

        fn taken(&self) -> Vec<String> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    impl MetricsCollector for Calls {
        fn count(&self, name: &'static str, labels: Labels<'_>, times: u64) {
            self.note("count", name, labels, f64::from(u32::try_from(times).unwrap()));
        }
        fn time(&self, name: &'static str, labels: Labels<'_>, seconds: f64) {
            self.note("time", name, labels, seconds);
        }
        fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64) {
            self.note("gauge", name, labels, value);
        }
    }

    #[test]
    fn metrics_with_the_same_labels_are_recorded_together_and_once() {
        let calls = Calls::default();
        let meter = Meter::new(Arc::new(calls.clone()));
        let mut batched = BatchedMetrics::default();
        for kind in ["a", "b", "a"] {
            batched.count("ended", &[("kind", kind)], 1);
            batched.time("took", &[("kind", kind)], Duration::from_secs(2));
        }
        assert_eq!(calls.taken(), Vec::<String>::new(), "nothing before it is asked for");
        batched.record(&meter);
        let recorded = calls.taken();
        assert_eq!(recorded, ["count ended a 2", "time took a 2", "time took a 2", "count ended b 1", "time took b 2"]);
        batched.record(&meter);
        assert_eq!(calls.taken(), Vec::<String>::new(), "nothing twice");
        batched.count("ended", &[("kind", "b")], 3);
        batched.record(&meter);
        assert_eq!(calls.taken(), ["count ended b 3"]);
    }

    #[test]
    fn kinds_that_come_and_go_are_forgotten() {
        let mut batched = BatchedMetrics::default();
        for kind in 0..=KEPT_MAX {
            batched.count("ended", &[("kind", &kind.to_string())], 1);
        }
        batched.record(&Meter::default());
        assert_eq!(batched.metrics.len(), 0);
    }
}
