//! What a settlement records of its attempt, and whether it was written before.

use crate::claim::Fence;
use crate::id::NodeId;
use crate::record::{AttemptRecord, AttemptStatus, JobRecord};
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
    /// Returns the node to store in the row of the ended job, if that row then says all that the record of the attempt would:
    /// the attempt succeeded. Such an attempt has no record of its own.
    ///
    /// A job that has succeeded never changes again, so its row always describes its last attempt.
    /// [`JobRecord::success`] composes the record.
    pub fn success_in_row(&self) -> Option<NodeId> {
        let (Change::Succeed { attempts, .. }, Some(attempt)) = (&self.change, &self.attempt) else { return None };
        let is_described = Recorded::from(attempt).fence == self.fence
            && attempt.status == AttemptStatus::Succeeded
            && attempt.attempt == *attempts
            && attempt.error.is_none()
            && attempt.error_class.is_none();
        is_described.then_some(attempt.node)
    }

    /// Returns the attempt if it needs a record of its own.
    pub fn attempt_to_record(&self) -> Option<&AttemptRecord> {
        self.attempt.as_ref().filter(|_| self.success_in_row().is_none())
    }

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

impl JobRecord {
    /// Returns the attempt that this row describes: the one that succeeded, if its settlement left it to the row.
    pub fn success(&self) -> Option<AttemptRecord> {
        Some(AttemptRecord {
            job_id: self.id,
            // The settlement has added one to that of the claim.
            version: self.version.checked_sub(1)?,
            attempt: self.attempts,
            node: self.ended_by?,
            status: AttemptStatus::Succeeded,
            timing: self.timing?,
            error_class: None,
            error: None,
        })
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
