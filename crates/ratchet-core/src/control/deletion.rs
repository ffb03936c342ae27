//! Whether a job may be deleted.

use crate::batch::BatchCounts;
use crate::error::{ErrorKind, StoreError};
use crate::id::JobId;
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
