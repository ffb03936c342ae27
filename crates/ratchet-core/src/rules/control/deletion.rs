//! Whether a job may be deleted.

use crate::batch::BatchCounts;
use crate::error::{ErrorKind, StoreError};
use crate::id::JobId;
use crate::retention::brings_back;
use crate::state::JobState;
use crate::transition::Place;

/// What deleting a job was doing, in errors.
pub const DELETING: &str = "deleting a job";

/// What keeps a job from being deleted.
///
/// A store reads these in their order and may stop at the first [`refusal`](Self::refusal).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeleteTies {
    /// The job.
    pub id: JobId,
    /// Its place.
    pub place: Place,
    /// A live job that waits for it or has its input from it.
    pub needed_by: Option<JobId>,
    /// A job that needs it when it is retried, or when the job that had canceled it is.
    pub needed_again_by: Option<JobId>,
    /// The children of the batch whose parent job it is.
    pub children: Option<BatchCounts>,
}

/// A job at the end of an edge from the one that is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TiedChild {
    /// Its id.
    pub id: JobId,
    /// Whether it only waits for the end: the next fire of a schedule takes nothing from the one before.
    pub awaits_end: bool,
    /// The state in which it ended; `None` while it is live.
    pub ended: Option<JobState>,
    /// The job whose end has canceled it, if that is still there, and the state in which that one ended.
    pub canceled_because: Option<(JobId, Option<JobState>)>,
}

impl TiedChild {
    /// Whether it needs the job `parent` when it is retried, or when the job is that had canceled it.
    pub fn needs_again(&self, parent: JobId) -> bool {
        let comes_back = || self.canceled_because.is_some_and(|(cause, ended)| cause != parent && brings_back(ended));
        match self.ended {
            Some(JobState::Failed) => !self.awaits_end,
            Some(JobState::Canceled) => !self.awaits_end && comes_back(),
            _ => false,
        }
    }
}

impl DeleteTies {
    /// Returns a job without ties to others.
    pub const fn none(id: JobId, place: Place) -> Self {
        Self { id, place, needed_by: None, needed_again_by: None, children: None }
    }

    /// Returns why the job may not be deleted; `None` if it may.
    pub fn refusal(&self) -> Option<StoreError> {
        let Self { id, place, needed_by, needed_again_by, children } = self;
        let problem = if !place.state().is_terminal() {
            format!("job {id} is {place}; cancel it first, or let it end")
        } else if let Some(child) = needed_by {
            format!("job {child} is live and waits for it or has its input from it; let that end first")
        } else if let Some(child) = needed_again_by {
            format!("job {child} needs it if it is retried; delete that first")
        } else if children.is_some_and(|children| children.done() < children.total) {
            format!("not all jobs of batch {id} have ended; cancel it, or let them end")
        } else {
            return None;
        };
        Some(StoreError::new(ErrorKind::Conflict, DELETING, problem))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_child_that_can_run_again_needs_its_parent() {
        use JobState::{Canceled, Failed, Succeeded};

        let id = |number| JobId(Uuid::from_u128(number));
        let check = |ended, cause: Option<(u128, Option<JobState>)>, expected: bool| {
            let canceled_because = cause.map(|(cause, ended)| (id(cause), ended));
            let child = TiedChild { id: id(2), awaits_end: false, ended, canceled_because };
            assert_eq!(child.needs_again(id(1)), expected, "{child:?}");
            assert!(!TiedChild { awaits_end: true, ..child }.needs_again(id(1)));
        };
        check(None, None, false);
        check(Some(Succeeded), None, false);
        check(Some(Failed), None, true);
        // A person has canceled it, or what had is gone.
        check(Some(Canceled), None, false);
        check(Some(Canceled), Some((1, Some(Failed))), false);
        check(Some(Canceled), Some((3, Some(Failed))), true);
        check(Some(Canceled), Some((3, None)), true);
        check(Some(Canceled), Some((3, Some(Succeeded))), false);
    }

    #[test]
    fn a_job_is_deleted_when_nothing_needs_it() {
        let id = |number| JobId(Uuid::from_u128(number));
        let check = |ties: DeleteTies, expected: Option<&str>| {
            let refusal = ties.refusal();
            assert!(refusal.as_ref().is_none_or(|refusal| *refusal.kind() == ErrorKind::Conflict));
            let expected = expected.map(|problem| format!("deleting a job: {problem}"));
            assert_eq!(refusal.map(|refusal| refusal.to_string()), expected);
        };
        let one = "00000000-0000-0000-0000-000000000001";
        for place in Place::ALL {
            let live = format!("job {one} is {place}; cancel it first, or let it end");
            let is_terminal = matches!(place, Place::Succeeded | Place::Failed | Place::Canceled);
            check(DeleteTies::none(id(1), place), Some(&*live).filter(|_| !is_terminal));
        }
        let ended = DeleteTies::none(id(1), Place::Succeeded);
        let needed = DeleteTies { needed_by: Some(id(2)), ..ended };
        let two = "00000000-0000-0000-0000-000000000002";
        let text = format!("job {two} is live and waits for it or has its input from it; let that end first");
        check(needed, Some(&text));
        let needed_again = DeleteTies { needed_again_by: Some(id(2)), ..ended };
        check(needed_again, Some(&format!("job {two} needs it if it is retried; delete that first")));
        let children = |total, succeeded, failed, canceled| {
            let counts = BatchCounts { total, succeeded, failed, canceled, ..BatchCounts::default() };
            DeleteTies { children: Some(counts), ..ended }
        };
        let to_come = format!("not all jobs of batch {one} have ended; cancel it, or let them end");
        check(children(0, 0, 0, 0), None);
        check(children(3, 1, 1, 1), None);
        check(children(3, 1, 0, 1), Some(&to_come));
    }
}
