//! The rules of what a person may ask for: cancel, retry (one or many), replace, delete.
//!
//! A store reads the job and its ties, asks, and writes what it is told. Which event may happen where is not decided here but in
//! [`transition`](crate::transition).

mod canceled_attempt;
mod retried;
mod bulk_retry;
mod replacement;
mod deletion;

pub use bulk_retry::{BulkRetry, LetterTies, RETRYING_LETTERS};
pub use deletion::{DELETING, DeleteTies, TiedChild};
pub use replacement::{REPLACING, Replace};
pub use retried::Retried;

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use crate::id::JobId;
    use crate::json::JsonText;
    use crate::name::Kind;
    use crate::record::JobRecord;
    use crate::spec::{JobSpec, JobType};
    use crate::state::JobState;

    pub(super) fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A job that was due at second 100.
    pub(super) fn job(state: JobState) -> JobRecord {
        let spec = JobSpec::new(Kind::new("test").unwrap(), JsonText::null());
        JobRecord::stored(JobId(Uuid::from_u128(1)), spec, JobType::Single, state, second(0), second(100))
    }
}
