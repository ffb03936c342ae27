//! The record of an attempt that is canceled.

use jiff::Timestamp;

use crate::clock::elapsed;
use crate::record::{AttemptRecord, AttemptStatus, AttemptTiming, JobRecord};

impl JobRecord {
    /// Returns the record of the running attempt if the job is canceled `now`; `None` if it does not run.
    #[must_use]
    pub fn canceled_attempt(&self, now: Timestamp) -> Option<AttemptRecord> {
        let (node, started_at) = (self.picked_by?, self.picked_at?);
        Some(AttemptRecord {
            job_id: self.id,
            version: self.version,
            attempt: self.attempts.saturating_add(1),
            node,
            status: AttemptStatus::Canceled,
            timing: AttemptTiming {
                started_at,
                ended_at: now,
                duration: elapsed(started_at, now),
                queue_wait: elapsed(self.due(), started_at),
            },
            error_class: None,
            error: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::control::tests::{job, second};
    use crate::id::NodeId;
    use crate::state::JobState;

    #[test]
    fn a_canceled_attempt_is_recorded_with_its_timing() {
        let node = NodeId(Uuid::from_u128(2));
        let running = |attempts, picked_at: i64, deferred_until: Option<i64>| JobRecord {
            attempts,
            version: 9,
            picked_by: Some(node),
            picked_at: Some(second(picked_at)),
            deferred_until: deferred_until.map(second),
            ..job(JobState::Running)
        };
        // Due at 100, canceled at 160.
        let check = |job: &JobRecord, attempt, ran: u64, waited: u64| {
            let record = job.canceled_attempt(second(160)).unwrap();
            assert_eq!((record.job_id, record.version, record.node), (job.id, 9, node));
            assert_eq!((record.attempt, record.status), (attempt, AttemptStatus::Canceled));
            assert_eq!((record.timing.started_at, record.timing.ended_at), (job.picked_at.unwrap(), second(160)));
            let (ran, waited) = (Duration::from_secs(ran), Duration::from_secs(waited));
            assert_eq!((record.timing.duration, record.timing.queue_wait), (ran, waited));
        };
        check(&running(0, 110, None), 1, 50, 10);
        check(&running(2, 130, Some(125)), 3, 30, 5);
        check(&running(u32::MAX, 90, None), u32::MAX, 70, 0);
        assert_eq!(job(JobState::Pending).canceled_attempt(second(160)), None);
    }
}
