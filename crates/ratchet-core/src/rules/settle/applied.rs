//! The row of a job after a settlement.

use std::time::Duration;

use crate::claim::Fence;
use crate::id::NodeId;
use crate::json::JsonText;
use crate::outcome::ErrorReport;
use crate::record::{AttemptTiming, JobRecord};
use crate::settlement::{Change, Settlement};
use crate::transition::{Place, next};

/// The row of a live job, as far as settling needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRow {
    /// Its place.
    pub place: Place,
    /// Its version.
    pub version: u64,
    /// The node that runs it.
    pub picked_by: Option<NodeId>,
    /// How many times in a row its node died.
    pub crash_count: u32,
}

impl LiveRow {
    /// Returns the row that a fence names, for a store whose statement compares it while it writes.
    ///
    /// The crash count is not known then: only a [`Defer`](Change::Defer) depends on it.
    pub const fn named_by(fence: Fence) -> Self {
        Self { place: Place::Running, version: fence.version, picked_by: Some(fence.node), crash_count: 0 }
    }
}

impl From<&JobRecord> for LiveRow {
    fn from(job: &JobRecord) -> Self {
        Self { place: job.place(), version: job.version, picked_by: job.picked_by, crash_count: job.crash_count }
    }
}

/// What a settlement writes to the row of its job.
///
/// Besides this the version grows by one, and nobody runs the job any more: its node, since when it runs and its progress are
/// cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied<'a> {
    /// Its place.
    pub place: Place,
    /// Its counted attempts; `None` leaves them as they are.
    pub attempts: Option<u32>,
    /// How many times in a row its node died. The job is on probation while this is not zero.
    pub crash_count: u32,
    /// Its last error; `None` leaves it as it is.
    pub error: Option<&'a str>,
    /// What else changes.
    pub change: RowChange<'a>,
}

/// What a settlement writes besides, by whether the job has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowChange<'a> {
    /// The job has ended now.
    End {
        /// What its last attempt returned.
        result: Option<&'a JsonText>,
        /// When its last attempt ran.
        timing: Option<AttemptTiming>,
        /// The error to record an alert about.
        alert: Option<&'a ErrorReport>,
    },
    /// The job is requeued.
    Requeue {
        /// From now until it is due; `None` leaves its time as it is.
        due_in: Option<Duration>,
        /// From now until the end of its deferral; `None` if it is not deferred.
        deferred_for: Option<Duration>,
    },
}

impl Settlement {
    /// Returns what this settlement writes to the row of its job; `None` if it has no right to.
    pub fn apply(&self, row: &LiveRow) -> Option<Applied<'_>> {
        if row.version != self.fence.version || row.picked_by != Some(self.fence.node) {
            return None;
        }
        let place = next(row.place, self.change.event())?;
        let end = |result, alert| {
            let timing = self.attempt.as_ref().map(|attempt| attempt.timing);
            RowChange::End { result, timing, alert }
        };
        let requeue = |due_in, deferred_for| RowChange::Requeue { due_in, deferred_for };
        let (attempts, error, change) = match &self.change {
            Change::Succeed { attempts, result } => (Some(*attempts), None, end(result.as_ref(), None)),
            Change::Fail { attempts, error, reason: _ } => {
                (Some(*attempts), Some(error.text()), end(None, Some(error)))
            }
            Change::Reschedule { delay, attempts, error } => {
                (Some(*attempts), Some(error.text()), requeue(Some(*delay), None))
            }
            // A delay below the precision of a store is none.
            Change::Defer { delay } => (None, None, requeue(None, Some(*delay).filter(|delay| delay.as_micros() > 0))),
            // A rescued job keeps its time, which has come: it did nothing to lose its place for.
            Change::Rescue { crash_count: _ } => (None, None, requeue(None, None)),
        };
        Some(Applied { place, attempts, crash_count: self.change.crash_count(row.crash_count), error, change })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::id::JobId;
    use crate::record::{AttemptRecord, AttemptStatus};
    use crate::settlement::DeadLetterReason;

    const FENCE: Fence = Fence { job_id: JobId(Uuid::from_u128(1)), version: 4, node: NodeId(Uuid::from_u128(2)) };

    const TIMING: AttemptTiming = AttemptTiming {
        started_at: Timestamp::UNIX_EPOCH,
        ended_at: Timestamp::UNIX_EPOCH,
        duration: Duration::ZERO,
        queue_wait: Duration::ZERO,
    };

    fn settlement(change: Change) -> Settlement {
        let attempt = AttemptRecord {
            job_id: FENCE.job_id,
            version: FENCE.version,
            attempt: 1,
            node: FENCE.node,
            status: AttemptStatus::Succeeded,
            timing: TIMING,
            error_class: None,
            error: None,
        };
        Settlement { attempt: Some(attempt), ..Settlement::of(FENCE, change) }
    }

    #[test]
    fn a_row_after_each_change() {
        let minute = Duration::from_mins(1);
        let (error, result) = (ErrorReport::new("Io", "disk full"), JsonText::null());
        let fail = |reason| Change::Fail { attempts: 3, error: error.clone(), reason };
        let check = |change, crashes_before, place, attempts, crash_count, text, row_change| {
            let settlement = settlement(change);
            let row = LiveRow { crash_count: crashes_before, ..LiveRow::named_by(FENCE) };
            let expected = Applied { place, attempts, crash_count, error: text, change: row_change };
            assert_eq!(settlement.apply(&row), Some(expected), "{:?}", settlement.change);
        };
        let ended = |result, alert| RowChange::End { result, timing: Some(TIMING), alert };
        let back = |due_in, deferred_for| RowChange::Requeue { due_in, deferred_for };
        let text = Some("disk full");

        let succeed = Change::Succeed { attempts: 2, result: Some(result.clone()) };
        check(succeed, 1, Place::Succeeded, Some(2), 0, None, ended(Some(&result), None));
        let exhausted = fail(DeadLetterReason::RetriesExhausted);
        check(exhausted, 1, Place::Failed, Some(3), 0, text, ended(None, Some(&error)));
        let crashed = fail(DeadLetterReason::CrashLimit { crash_count: 3 });
        check(crashed, 2, Place::Failed, Some(3), 3, text, ended(None, Some(&error)));
        let again = Change::Reschedule { delay: minute, attempts: 2, error: error.clone() };
        check(again, 1, Place::Pending, Some(2), 0, text, back(Some(minute), None));
        check(Change::Defer { delay: minute }, 1, Place::Pending, None, 1, None, back(None, Some(minute)));
        for none in [Duration::ZERO, Duration::from_nanos(999)] {
            check(Change::Defer { delay: none }, 0, Place::Pending, None, 0, None, back(None, None));
        }
        check(Change::Rescue { crash_count: 2 }, 1, Place::Pending, None, 2, None, back(None, None));
    }

    #[test]
    fn only_the_row_that_the_fence_names_is_written() {
        let check = |row: LiveRow, applies| {
            let settlement = settlement(Change::Succeed { attempts: 1, result: None });
            assert_eq!(settlement.apply(&row).is_some(), applies, "{row:?}");
        };
        let row = LiveRow::named_by(FENCE);
        check(row, true);
        check(LiveRow { crash_count: 2, ..row }, true);
        check(LiveRow { version: 3, ..row }, false);
        check(LiveRow { version: 5, ..row }, false);
        check(LiveRow { picked_by: None, ..row }, false);
        check(LiveRow { picked_by: Some(NodeId(Uuid::from_u128(3))), ..row }, false);
        for place in Place::ALL {
            check(LiveRow { place, ..row }, place == Place::Running);
        }
    }
}
