//! How long jobs are kept after their end.

mod ties;

use std::time::Duration;

use crate::invalid::InvalidInput;
use crate::limits;
use crate::state::JobState;
use crate::store::Removal;

pub use ties::{EndedJob, TieQuestions, Ties, brings_back, may_go};

/// How long jobs are kept where they ended, and how long in the archive; `None` is for ever.
///
/// A job that ended longer ago moves to the archive, unless a live job still depends on it. There it can be looked at, and
/// nothing can be asked of it any more. What has been in the archive for long enough is deleted; idempotency keys outlive it.
///
/// ```
/// use std::time::Duration;
/// use ratchet_core::Retention;
///
/// let day = Duration::from_hours(24);
/// let retention = Retention { succeeded: Some(7 * day), failed: None, ..Retention::default() };
/// assert!(retention.check().is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Jobs that succeeded. Zero deletes them, without archive and history, a few seconds after their end; a job that a live job
    /// needs stays until that ends.
    pub succeeded: Option<Duration>,
    /// Jobs in the dead letter queue: they can be retried for so long.
    pub failed: Option<Duration>,
    /// Jobs that were canceled.
    pub canceled: Option<Duration>,
    /// Jobs in the archive, from the day they came there.
    pub archive: Option<Duration>,
    /// Schedules that were canceled or retired.
    pub schedules: Option<Duration>,
    /// Lines of jobs' logs, from when they were written. Deleting a job deletes what is left of its log.
    pub logs: Option<Duration>,
}

/// Most attempts that are kept of an archived job: the last ones.
pub const ARCHIVED_ATTEMPTS_MAX: usize = 50;

/// How long a success stays whose retention is zero, so that a handle that waits for it finds it: handles look at least twice a
/// second.
pub const UNWANTED_STAY: Duration = Duration::from_secs(2);

const DAY: Duration = Duration::from_hours(24);

impl Default for Retention {
    /// Ninety days where they ended, a year in the archive; logs thirty days.
    fn default() -> Self {
        let days = |count| Some(DAY * count);
        Self {
            succeeded: days(90),
            failed: days(90),
            canceled: days(90),
            archive: days(365),
            schedules: days(365),
            logs: days(30),
        }
    }
}

impl Retention {
    /// Archives nothing and deletes nothing.
    pub const fn keep_everything() -> Self {
        Self { succeeded: None, failed: None, canceled: None, archive: None, schedules: None, logs: None }
    }

    /// How long a job is kept that ended in this state; `None` if it is never archived, and while it is live.
    pub const fn of(&self, state: JobState) -> Option<Duration> {
        match state {
            JobState::Succeeded => self.succeeded,
            JobState::Failed => self.failed,
            JobState::Canceled => self.canceled,
            JobState::Pending | JobState::Running | JobState::Waiting | JobState::Paused => None,
        }
    }

    /// Returns when jobs that ended in this state go, and where to; `None` if they stay.
    pub fn removal(&self, state: JobState) -> Option<(Removal, Duration)> {
        let age = self.of(state)?;
        let is_unwanted = state == JobState::Succeeded && age.is_zero();
        Some(if is_unwanted { (Removal::Delete, UNWANTED_STAY) } else { (Removal::Archive, age) })
    }

    /// Whether successes are deleted instead of archived.
    pub fn deletes_successes(&self) -> bool {
        self.removal(JobState::Succeeded).is_some_and(|(removal, _)| removal == Removal::Delete)
    }

    /// Whether there is nothing to do.
    pub fn keeps_everything(&self) -> bool {
        *self == Self::keep_everything()
    }

    /// Refuses times over ten years: `None` says for ever.
    ///
    /// # Errors
    /// Names the field.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let fields = [
            ("retention.succeeded", self.succeeded),
            ("retention.failed", self.failed),
            ("retention.canceled", self.canceled),
            ("retention.archive", self.archive),
            ("retention.schedules", self.schedules),
            ("retention.logs", self.logs),
        ];
        fields
            .into_iter()
            .filter_map(|(field, age)| Some((field, age?)))
            .try_for_each(|(field, age)| limits::check_delay(field, age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ended_jobs_have_a_retention() {
        for state in JobState::ALL {
            assert_eq!(Retention::default().of(state).is_some(), state.is_terminal(), "{state}");
            assert_eq!(Retention::keep_everything().of(state), None);
        }
    }

    #[test]
    fn only_successes_of_no_retention_are_deleted() {
        let check = |retention: Retention, state, expected| assert_eq!(retention.removal(state), expected, "{state}");
        let none = Some(Duration::ZERO);
        let zero = Retention { succeeded: none, failed: none, canceled: none, ..Retention::keep_everything() };
        check(zero, JobState::Succeeded, Some((Removal::Delete, UNWANTED_STAY)));
        check(zero, JobState::Failed, Some((Removal::Archive, Duration::ZERO)));
        check(zero, JobState::Canceled, Some((Removal::Archive, Duration::ZERO)));
        check(zero, JobState::Running, None);
        let day = Retention { succeeded: Some(DAY), ..zero };
        check(day, JobState::Succeeded, Some((Removal::Archive, DAY)));
        check(Retention::keep_everything(), JobState::Succeeded, None);
        assert!(zero.deletes_successes() && !day.deletes_successes());
    }

    #[test]
    fn a_time_over_ten_years_is_refused_by_name() {
        let retention = Retention { archive: Some(limits::DURATION_MAX + DAY), ..Retention::default() };
        assert!(retention.check().unwrap_err().to_string().contains("retention.archive"));
        assert!(Retention::default().check().is_ok() && Retention::keep_everything().check().is_ok());
        assert!(Retention::keep_everything().keeps_everything() && !Retention::default().keeps_everything());
    }
}
