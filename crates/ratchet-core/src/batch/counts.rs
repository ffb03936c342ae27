//! The children of a batch, counted.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::flow::JobFlags;
use crate::id::JobId;
use crate::state::JobState;

/// How many children a batch has, and what has become of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct BatchCounts {
    /// All of them, so far.
    pub total: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those in the dead letter queue.
    pub failed: u64,
    /// Those that were canceled.
    pub canceled: u64,
    /// How long they ran, all together.
    pub child_execution: Duration,
    /// Whether no further ones will come.
    pub sealed: bool,
}

impl BatchCounts {
    /// Children that have ended.
    pub const fn done(&self) -> u64 {
        self.succeeded + self.failed + self.canceled
    }

    /// Whether every child has ended and no further ones will come.
    pub const fn is_complete(&self) -> bool {
        self.sealed && self.done() >= self.total
    }

    /// Whether the batch counts its failed children permanently: none of them can be retried.
    pub const fn is_over(&self, parent_has_ended: bool) -> bool {
        parent_has_ended || self.is_complete()
    }

    /// Whether children of the batch are live, or may still be submitted and canceled.
    pub const fn has_children_to_come(&self, canceling: bool) -> bool {
        canceling || self.done() < self.total
    }

    /// Adds the ends of children.
    pub fn add(&mut self, tally: &Tally) {
        self.succeeded += tally.succeeded;
        self.failed += tally.failed;
        self.canceled += tally.canceled;
        self.child_execution += tally.execution;
    }

    #[expect(clippy::cast_precision_loss, reason = "a share for people and for conditions")]
    pub(super) fn share(part: u64, whole: u64) -> f64 {
        if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
    }
}

/// The ends of some children of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many succeeded.
    pub succeeded: u64,
    /// How many went to the dead letter queue.
    pub failed: u64,
    /// How many were canceled.
    pub canceled: u64,
    /// How long they ran, all together.
    pub execution: Duration,
}

impl Tally {
    /// Adds the end of one child; a state that is no end adds nothing.
    pub fn add(&mut self, state: JobState, execution: Option<Duration>) {
        match state {
            JobState::Succeeded => self.succeeded += 1,
            JobState::Failed => self.failed += 1,
            JobState::Canceled => self.canceled += 1,
            JobState::Pending | JobState::Running | JobState::Waiting | JobState::Paused => return,
        }
        self.execution += execution.unwrap_or_default();
    }
}

/// The ends of children, by their batch.
pub type Tallies = BTreeMap<JobId, Tally>;

/// The batch that a job is a child of, from its ties and its parent, which may also be a schedule.
pub fn batch_of(flow: JobFlags, parent: Option<JobId>) -> Option<JobId> {
    parent.filter(|_| flow.has(JobFlags::BATCH_CHILD))
}

#[cfg(test)]
pub(super) mod tests {
    use uuid::Uuid;

    use super::*;

    pub(crate) fn counts(total: u64, done: u64, sealed: bool) -> BatchCounts {
        BatchCounts { total, succeeded: done, sealed, ..BatchCounts::default() }
    }

    #[test]
    fn a_batch_is_complete_when_it_is_sealed_and_every_child_has_ended() {
        let check = |total, done, sealed, expected| {
            assert_eq!(counts(total, done, sealed).is_complete(), expected, "{done} of {total}, sealed: {sealed}");
        };
        check(3, 3, true, true);
        check(3, 2, true, false);
        check(3, 3, false, false);
        check(0, 0, true, true);
        check(0, 0, false, false);
    }

    #[test]
    fn a_batch_is_over_when_it_is_complete_or_its_parent_job_has_ended() {
        let check = |total, done, sealed, ended, expected| {
            assert_eq!(counts(total, done, sealed).is_over(ended), expected, "{done} of {total}, {sealed}, {ended}");
        };
        check(3, 2, true, false, false);
        check(3, 3, false, false, false);
        check(3, 3, true, false, true);
        check(3, 2, true, true, true);
        check(3, 2, false, true, true);
    }

    #[test]
    fn children_are_to_come_until_all_have_ended_and_none_is_being_canceled() {
        let check = |total, done, canceling, expected| {
            let found = counts(total, done, true).has_children_to_come(canceling);
            assert_eq!(found, expected, "{done} of {total}, canceling: {canceling}");
        };
        check(3, 2, false, true);
        check(3, 3, false, false);
        check(3, 3, true, true);
        check(0, 0, false, false);
    }

    #[test]
    fn only_ends_are_counted() {
        let mut tally = Tally::default();
        for state in JobState::ALL {
            tally.add(state, Some(Duration::from_secs(1)));
        }
        let expected = Tally { succeeded: 1, failed: 1, canceled: 1, execution: Duration::from_secs(3) };
        assert_eq!(tally, expected);
    }

    #[test]
    fn only_a_child_of_a_batch_has_one() {
        let parent = Some(JobId(Uuid::from_u128(7)));
        assert_eq!(batch_of(JobFlags::BATCH_CHILD.with(JobFlags::SIGNAL), parent), parent);
        assert_eq!(batch_of(JobFlags::BATCH, parent), None, "a fire of a schedule may be a batch");
        assert_eq!(batch_of(JobFlags::BATCH_CHILD, None), None);
    }
}
