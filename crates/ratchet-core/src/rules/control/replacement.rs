//! Whether a job may be replaced by another.

use crate::error::{ErrorKind, StoreError};
use crate::id::JobId;
use crate::spec::NewJob;
use crate::transition::{Event, Place, next};

/// What replacing a job was doing, in errors.
pub const REPLACING: &str = "replacing a job";

/// A replacement: `old` is canceled and `new` stored, both or neither.
#[derive(Debug, Clone, Copy)]
pub struct Replace<'a> {
    /// The job that ends.
    pub old: JobId,
    /// The job that is stored.
    pub new: &'a NewJob,
}

impl Replace<'_> {
    /// Returns the place that `old` goes to from where it stands; `None` stands for a job that is not there.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is no such job, [`Conflict`](ErrorKind::Conflict) if it cannot be canceled.
    pub fn end_old(&self, place: Option<Place>) -> Result<Place, StoreError> {
        let old = self.old;
        let Some(place) = place else {
            return Err(StoreError::new(ErrorKind::NotFound, REPLACING, format!("there is no job {old}")));
        };
        next(place, Event::Cancel).ok_or_else(|| {
            let problem = format!("job {old} is {place} and can no longer be canceled");
            StoreError::new(ErrorKind::Conflict, REPLACING, problem)
        })
    }

    /// Whether `new` may be stored, by who holds its business key once `old` has ended.
    ///
    /// # Errors
    /// [`Duplicate`](ErrorKind::Duplicate) if another job holds the key.
    pub fn take_key(&self, holder: Option<JobId>) -> Result<(), StoreError> {
        match (&self.new.business_key, holder) {
            (Some(key), Some(holder)) => Err(StoreError::duplicate(REPLACING, key.clone(), holder)),
            _ => Ok(()),
        }
    }

    /// Whether `new` may be stored, by whether its id is free.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) if it is not.
    pub fn take_id(&self, is_free: bool) -> Result<(), StoreError> {
        if is_free {
            return Ok(());
        }
        let problem = format!("a job with the id {} is already stored", self.new.id);
        Err(StoreError::new(ErrorKind::Conflict, REPLACING, problem))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::json::JsonText;
    use crate::name::{BusinessKey, Kind};
    use crate::spec::JobSpec;

    const OLD: JobId = JobId(Uuid::from_u128(1));
    const OTHER: JobId = JobId(Uuid::from_u128(3));

    fn new_job(key: Option<&str>) -> NewJob {
        let spec = JobSpec::new(Kind::new("test").unwrap(), JsonText::null());
        let business_key = key.map(|key| BusinessKey::new(key).unwrap());
        NewJob { business_key, ..NewJob::new(JobId(Uuid::from_u128(2)), spec) }
    }

    #[test]
    fn a_job_that_can_be_canceled_can_be_replaced() {
        let new = new_job(None);
        let replace = Replace { old: OLD, new: &new };
        let check = |place: Option<Place>, expected: Result<Place, &str>| {
            let ended = replace.end_old(place).map_err(|error| error.to_string());
            assert_eq!(ended, expected.map_err(|problem| format!("replacing a job: {problem}")));
        };
        for place in [Place::Pending, Place::Running, Place::Waiting, Place::PausedPending] {
            check(Some(place), Ok(Place::Canceled));
        }
        let one = "00000000-0000-0000-0000-000000000001";
        for place in [Place::PausedFailed, Place::Succeeded, Place::Failed, Place::Canceled] {
            check(Some(place), Err(&format!("job {one} is {place} and can no longer be canceled")));
        }
        check(None, Err(&format!("there is no job {one}")));
        assert_eq!(replace.end_old(None).unwrap_err().kind(), &ErrorKind::NotFound);
    }

    #[test]
    fn the_new_job_needs_its_key_and_its_id() {
        let check = |key: Option<&str>, holder, is_free, expected: Option<ErrorKind>| {
            let new = new_job(key);
            let replace = Replace { old: OLD, new: &new };
            let refused = replace.take_key(holder).and_then(|()| replace.take_id(is_free)).err();
            assert_eq!(refused.map(|error| error.kind().clone()), expected);
        };
        let held = ErrorKind::Duplicate { business_key: BusinessKey::new("k").unwrap(), holder: OTHER };
        check(None, None, true, None);
        check(Some("k"), None, true, None);
        check(Some("k"), Some(OTHER), true, Some(held.clone()));
        check(Some("k"), Some(OTHER), false, Some(held));
        check(None, None, false, Some(ErrorKind::Conflict));
    }
}
