//! The row of a new job.

use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{later, to_micros};
use crate::record::JobRecord;
use crate::spec::{Due, NewJob, StartState};
use crate::state::JobState;

/// What the row of a new job holds that the job itself does not say.
///
/// Time is a delay as long as the store has not read its clock: a statement may add it to the clock of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstRow {
    /// The state in which it is stored.
    pub state: JobState,
    /// When it is due, counted from when it is stored.
    pub due: Due,
    /// How long after its release it is due; only of a job that waits.
    pub release_delay: Option<Duration>,
}

impl NewJob {
    /// Returns what the row of this job holds when it is stored.
    #[must_use]
    pub const fn first_row(&self) -> FirstRow {
        match (self.start, self.due) {
            (StartState::Ready, due) => FirstRow { state: JobState::Pending, due, release_delay: None },
            (StartState::Waiting, due @ Due::At(_)) => FirstRow { state: JobState::Waiting, due, release_delay: None },
            // The delay begins with the release.
            (StartState::Waiting, Due::After(delay)) => {
                let release_delay = if delay.is_zero() { None } else { Some(delay) };
                FirstRow { state: JobState::Waiting, due: Due::NOW, release_delay }
            }
        }
    }

    /// Returns the record of this job, stored `now`.
    #[must_use]
    pub fn into_record(self, now: Timestamp) -> JobRecord {
        let FirstRow { state, due, release_delay } = self.first_row();
        JobRecord {
            business_key: self.business_key,
            idempotency_key: self.idempotency_key,
            on_success: self.on_success,
            on_failure: self.on_failure,
            origin: self.origin,
            parent: self.parent,
            workflow: self.workflow,
            step: self.step,
            flow: self.flow,
            waits_for: self.waits_for,
            release_delay,
            ..JobRecord::stored(self.id, self.spec, self.job_type, state, now, to_micros(due.time(now)))
        }
    }
}

impl Due {
    /// Returns the time at which a job that is stored `now` is due.
    #[must_use]
    pub fn time(self, now: Timestamp) -> Timestamp {
        match self {
            Self::After(delay) => later(now, delay),
            Self::At(time) => time,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::id::JobId;
    use crate::json::JsonText;
    use crate::name::Kind;
    use crate::spec::JobSpec;

    #[test]
    fn a_delay_counts_from_the_submit_or_from_the_release() {
        use JobState::{Pending, Waiting};
        use StartState::{Ready, Waiting as Blocked};

        let second = |second| Timestamp::from_second(second).unwrap();
        let (minute, now) = (Duration::from_mins(1), second(1_000));
        let check = |start, due, state, stored_due, time, release_delay| {
            let spec = JobSpec::new(Kind::new("test").unwrap(), JsonText::null());
            let job = NewJob { due, start, ..NewJob::new(JobId(Uuid::from_u128(1)), spec) };
            assert_eq!(job.first_row(), FirstRow { state, due: stored_due, release_delay });
            let record = job.into_record(now);
            assert_eq!((record.state, record.scheduled_time, record.release_delay), (state, time, release_delay));
            assert_eq!((record.created_at, record.version, record.attempts), (now, 0, 0));
        };
        check(Ready, Due::NOW, Pending, Due::NOW, now, None);
        check(Ready, Due::After(minute), Pending, Due::After(minute), second(1_060), None);
        check(Ready, Due::At(second(5)), Pending, Due::At(second(5)), second(5), None);
        check(Blocked, Due::NOW, Waiting, Due::NOW, now, None);
        check(Blocked, Due::After(minute), Waiting, Due::NOW, now, Some(minute));
        check(Blocked, Due::At(second(5_000)), Waiting, Due::At(second(5_000)), second(5_000), None);
    }
}
