//! Whether a settlement was written before.

use crate::claim::Fence;
use crate::record::{AttemptRecord, AttemptStatus};
use crate::settlement::{Change, Settlement};

/// The record of an attempt, as far as it says by whom and how the attempt was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// The attempt.
    pub fence: Fence,
    /// What came of it.
    pub status: AttemptStatus,
}

impl From<&AttemptRecord> for Recorded {
    fn from(attempt: &AttemptRecord) -> Self {
        let fence = Fence { job_id: attempt.job_id, version: attempt.version, node: attempt.node };
        Self { fence, status: attempt.status }
    }
}

impl Settlement {
    /// Whether a record says that an earlier try of this settlement was committed.
    ///
    /// An attempt that another ended (a cancel, a rescue) has a record too, with another status.
    pub fn is_recorded_by(&self, recorded: &Recorded) -> bool {
        let status = self.attempt.as_ref().map(|attempt| attempt.status);
        self.maybe_applied && self.fence == recorded.fence && status == Some(recorded.status)
    }

    /// Whether an earlier try of this settlement was committed if the job is gone.
    ///
    /// A live job is never deleted, so it has ended, and nothing else is left to tell how: a success may be deleted or archived a
    /// moment after it was written.
    pub fn is_told_by_absence(&self) -> bool {
        self.maybe_applied && matches!(self.change, Change::Succeed { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::id::{JobId, NodeId};
    use crate::record::AttemptTiming;

    const FENCE: Fence = Fence { job_id: JobId(Uuid::from_u128(1)), version: 4, node: NodeId(Uuid::from_u128(2)) };

    fn succeeded() -> Settlement {
        let timing = AttemptTiming {
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            duration: Duration::ZERO,
            queue_wait: Duration::ZERO,
        };
        let attempt = AttemptRecord {
            job_id: FENCE.job_id,
            version: FENCE.version,
            attempt: 1,
            node: FENCE.node,
            status: AttemptStatus::Succeeded,
            timing,
            error_class: None,
            error: None,
        };
        let settlement = Settlement::of(FENCE, Change::Succeed { attempts: 1, result: None });
        Settlement { attempt: Some(attempt), maybe_applied: true, ..settlement }
    }

    #[test]
    fn the_same_end_of_the_same_attempt_was_written_before() {
        use AttemptStatus::{Canceled, Crashed, Succeeded};

        let check = |settlement: &Settlement, fence, status, expected| {
            let recorded = Recorded { fence, status };
            assert_eq!(settlement.is_recorded_by(&recorded), expected, "{recorded:?}");
        };
        let settlement = succeeded();
        check(&settlement, FENCE, Succeeded, true);
        check(&settlement, FENCE, Canceled, false);
        check(&settlement, FENCE, Crashed, false);
        check(&settlement, Fence { job_id: JobId(Uuid::nil()), ..FENCE }, Succeeded, false);
        check(&settlement, Fence { version: 3, ..FENCE }, Succeeded, false);
        check(&settlement, Fence { node: NodeId(Uuid::nil()), ..FENCE }, Succeeded, false);
        check(&Settlement { maybe_applied: false, ..succeeded() }, FENCE, Succeeded, false);
        check(&Settlement { attempt: None, ..succeeded() }, FENCE, Succeeded, false);
    }

    #[test]
    fn a_success_is_told_by_the_absence_of_its_job() {
        let check = |settlement: Settlement, expected| assert_eq!(settlement.is_told_by_absence(), expected);
        check(succeeded(), true);
        check(Settlement { maybe_applied: false, ..succeeded() }, false);
        check(Settlement { change: Change::Rescue { crash_count: 1 }, ..succeeded() }, false);
    }
}
