//! The rules of settling: what a [`Settlement`] writes to the row that it is about, and when it was written before.
//!
//! A store reads the row, asks [`Settlement::apply`], and writes what it returns. If there is nothing to apply and an earlier try
//! may have been committed, the store reads the records of the attempt and asks [`Settlement::is_recorded_by`].

mod applied;
mod recorded;

pub use applied::{Applied, LiveRow, RowChange};
pub use recorded::Recorded;

use crate::error::{ErrorKind, StoreError};
use crate::settlement::Settlement;

/// What settling was doing, in errors.
pub const DOING: &str = "settling jobs";

/// Refuses settlements that no store can apply.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) if a job that follows has a business key: it may be held, and the end of the job must not
/// depend on that.
pub fn check(settlements: &[Settlement]) -> Result<(), StoreError> {
    match settlements.iter().flat_map(|settlement| &settlement.new_jobs).find(|job| job.business_key.is_some()) {
        None => Ok(()),
        Some(job) => {
            let problem = format!("job {} follows from a settlement and cannot take a business key", job.id);
            Err(StoreError::new(ErrorKind::Invalid, DOING, problem))
        }
    }
}
