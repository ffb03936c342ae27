//! The times of a node, and how they follow from one of them.

use std::time::Duration;

use ratchet_core::InvalidInput;
use ratchet_core::node::GRACE_DEFAULT;

/// The intervals and limits by which a node keeps time.
///
/// Most nodes need at most another grace. The other times follow from it, up to the values that they have by default:
///
/// ```
/// use std::time::Duration;
/// use ratchet_engine::Timing;
///
/// let timing = Timing::with_grace(Duration::from_secs(6));
/// assert_eq!((timing.heartbeat, timing.scan), (Duration::from_secs(1), Duration::from_secs(2)));
/// assert_eq!(Timing::with_grace(Duration::from_mins(10)).heartbeat, Timing::default().heartbeat);
///
/// let timing = Timing { gauges: Duration::from_secs(5), ..Timing::default() };
/// assert_eq!(timing.grace, Duration::from_secs(30));
/// ```
///
/// A time out of bounds is an error at [`start`](crate::RatchetBuilder::start).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// The time without a heartbeat after which other nodes declare this one dead and rescue its jobs. The node itself cancels
    /// what it runs after two thirds of it.
    ///
    /// Defaults to 30 seconds. At least three heartbeats, at most 24 hours.
    pub grace: Duration,
    /// The interval between two heartbeats. While the database is slow it grows, up to a quarter of the grace.
    ///
    /// Defaults to a sixth of the grace, at most 5 seconds. 10 ms to 1 hour.
    pub heartbeat: Duration,
    /// The interval at which the node scans for jobs of dead nodes, for batches whose cancellation is unfinished, and, at least
    /// once a second, for jobs whose signal is overdue.
    ///
    /// Defaults to a third of the grace, at most 10 seconds. 10 ms to 24 hours.
    pub scan: Duration,
    /// The interval at which the node compares what it runs with what the store says: how soon it notices that a job was
    /// canceled by another process. While it runs nothing, the interval is ten times as long.
    ///
    /// Defaults to 750 ms, at most the heartbeat. 10 ms to 1 hour.
    pub reconcile: Duration,
    /// The time that a canceled handler has to notice before it is dropped.
    ///
    /// Defaults to 1 second, at most a sixth of the grace: a node that fences itself has dropped its async handlers before
    /// other nodes take its jobs. At most 1 hour.
    pub cancel_grace: Duration,
    /// The time after which one of the node's own calls of the store, or one call of a [log sink](crate::JobLogSink), counts
    /// as lost. What a client asks for has no deadline: its caller decides how long to wait.
    ///
    /// Defaults to 30 seconds, whatever the grace. 100 ms to 1 hour.
    pub store_deadline: Duration,
    /// The interval at which the cluster checks for jobs whose [retention](crate::RatchetBuilder::retention) has expired. One
    /// node runs the check.
    ///
    /// Defaults to 1 minute, whatever the grace. 10 ms to 24 hours.
    pub retention_interval: Duration,
    /// The interval at which the node reports the depths of the queues to its
    /// [collector](crate::RatchetBuilder::metrics_collector).
    ///
    /// Defaults to 15 seconds, whatever the grace. 10 ms to 1 hour.
    pub gauges: Duration,
}

/// The shortest interval.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
const HEARTBEAT_DEFAULT_MAX: Duration = Duration::from_secs(5);
const SCAN_DEFAULT_MAX: Duration = Duration::from_secs(10);
const RECONCILE_DEFAULT_MAX: Duration = Duration::from_millis(750);
const CANCEL_GRACE_DEFAULT_MAX: Duration = Duration::from_secs(1);

impl Default for Timing {
    /// The times of a grace of 30 seconds.
    fn default() -> Self {
        Self::with_grace(GRACE_DEFAULT)
    }
}

impl Timing {
    /// Derives the other times from the grace, as each field says.
    #[must_use]
    pub fn with_grace(grace: Duration) -> Self {
        let heartbeat = (grace / 6).clamp(INTERVAL_MIN, HEARTBEAT_DEFAULT_MAX);
        Self {
            grace,
            heartbeat,
            scan: (grace / 3).clamp(INTERVAL_MIN, SCAN_DEFAULT_MAX),
            reconcile: RECONCILE_DEFAULT_MAX.min(heartbeat),
            cancel_grace: CANCEL_GRACE_DEFAULT_MAX.min(grace / 6),
            store_deadline: Duration::from_secs(30),
            retention_interval: Duration::from_mins(1),
            gauges: Duration::from_secs(15),
        }
    }

    /// Refuses times out of bounds.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let hour = Duration::from_hours(1);
        let day = 24 * hour;
        check_range("timing.heartbeat", self.heartbeat, INTERVAL_MIN, hour)?;
        check_range("timing.grace", self.grace, self.heartbeat * 3, day)
            .map_err(|e| InvalidInput::new(e.field(), format!("{} (at least three heartbeats)", e.problem())))?;
        check_range("timing.scan", self.scan, INTERVAL_MIN, day)?;
        check_range("timing.reconcile", self.reconcile, INTERVAL_MIN, hour)?;
        check_range("timing.cancel_grace", self.cancel_grace, Duration::ZERO, hour)?;
        check_range("timing.store_deadline", self.store_deadline, Duration::from_millis(100), hour)?;
        check_range("timing.retention_interval", self.retention_interval, INTERVAL_MIN, day)?;
        check_range("timing.gauges", self.gauges, INTERVAL_MIN, hour)
    }
}

/// Refuses a duration out of bounds, naming the field, the value and both limits.
pub(crate) fn check_range(field: &str, value: Duration, least: Duration, most: Duration) -> Result<(), InvalidInput> {
    if value < least || value > most {
        return Err(InvalidInput::new(field, format!("is {value:?}; use {least:?} to {most:?}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_from_the_grace_up_to_their_defaults() {
        let check = |grace_ms: u64, expected_ms: [u64; 4]| {
            let timing = Timing::with_grace(Duration::from_millis(grace_ms));
            let derived = [timing.heartbeat, timing.scan, timing.reconcile, timing.cancel_grace];
            assert_eq!(derived, expected_ms.map(Duration::from_millis), "{grace_ms} ms");
            timing.check().unwrap();
        };
        check(24 * 3_600_000, [5_000, 10_000, 750, 1_000]);
        check(30_000, [5_000, 10_000, 750, 1_000]);
        check(6_000, [1_000, 2_000, 750, 1_000]);
        check(3_000, [500, 1_000, 500, 500]);
        check(30, [10, 10, 10, 5]);
        let default = Timing {
            grace: Duration::from_secs(30),
            heartbeat: Duration::from_secs(5),
            scan: Duration::from_secs(10),
            reconcile: Duration::from_millis(750),
            cancel_grace: Duration::from_secs(1),
            store_deadline: Duration::from_secs(30),
            retention_interval: Duration::from_mins(1),
            gauges: Duration::from_secs(15),
        };
        assert_eq!(Timing::default(), default);
    }

    #[test]
    fn a_time_out_of_bounds_is_refused_with_its_limits() {
        let refused = |timing: Timing| timing.check().unwrap_err().to_string();
        let (good, zero, ever) = (Timing::default(), Duration::ZERO, Duration::MAX);
        let check = |timing: Timing, field: &str, limits: &str| {
            let said = refused(timing);
            assert!(said.starts_with(&format!("`timing.{field}` is ")) && said.ends_with(limits), "{said}");
        };
        for value in [zero, ever] {
            check(Timing { heartbeat: value, ..good }, "heartbeat", "; use 10ms to 3600s");
            check(Timing { grace: value, ..good }, "grace", "; use 15s to 86400s (at least three heartbeats)");
            check(Timing { scan: value, ..good }, "scan", "; use 10ms to 86400s");
            check(Timing { reconcile: value, ..good }, "reconcile", "; use 10ms to 3600s");
            check(Timing { store_deadline: value, ..good }, "store_deadline", "; use 100ms to 3600s");
            check(Timing { retention_interval: value, ..good }, "retention_interval", "; use 10ms to 86400s");
            check(Timing { gauges: value, ..good }, "gauges", "; use 10ms to 3600s");
        }
        check(Timing { cancel_grace: ever, ..good }, "cancel_grace", "; use 0ns to 3600s");
        assert!(Timing { cancel_grace: zero, ..good }.check().is_ok());
        assert_eq!(
            refused(Timing::with_grace(Duration::from_millis(29))),
            "`timing.grace` is 29ms; use 30ms to 86400s (at least three heartbeats)"
        );
    }
}
