use async_trait::async_trait;

use crate::error::StoreError;
use crate::id::JobId;
use crate::record::JobRecord;
use crate::settlement::Followed;
use crate::spec::NewJob;
use crate::transition::Place;

/// Operations on one job that a person may ask for.
///
/// Each is guarded by the legal source states of its event ([`transition`](crate::transition)). If the job is unknown or in
/// another place, nothing changes and the answer is `None`. Each is atomic together with everything that follows from it.
#[async_trait]
pub trait ControlStore: Send + Sync {
    /// Ends a live job. A running attempt is recorded as canceled, the business key is released, and dependents that wait for
    /// the job's success are canceled. A batch's parent job closes the batch to further children; those that exist are
    /// canceled by [`cancel_children`](super::BatchStore::cancel_children).
    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Suspends a PENDING or FAILED job.
    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Returns a paused job to the state from which it was paused.
    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Returns a FAILED job to work: attempts and crash count 0, error cleared, due now.
    ///
    /// It takes its business key again; [`Duplicate`](crate::ErrorKind::Duplicate) if another job holds it. Dependents that were
    /// canceled because it failed wait for it again, with their keys, under the same rule; so do those that its end released
    /// and that have not begun. A job that never received its signal waits for it again, for its full time. A batch's child
    /// no longer counts as failed; [`Conflict`](crate::ErrorKind::Conflict) if its batch is over, and if a job never ran
    /// because its condition was undecidable: see [`undecidable`](crate::flow::undecidable).
    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Cancels `old` and stores `new`, atomically; `new` may take over the business key of `old`.
    ///
    /// The idempotency key is checked before anything else, so that repeating the call after a lost reply finds what the
    /// first call did.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such job, [`Conflict`](crate::ErrorKind::Conflict) if
    /// it can no longer be canceled, [`Duplicate`](crate::ErrorKind::Duplicate) if a third job holds the new key.
    /// Nothing changes then.
    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError>;
}

/// A transition that was asked for and happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Transitioned {
    /// The place of the job before.
    pub from: Place,
    /// The job as it is now.
    pub job: JobRecord,
    /// The jobs whose place changed with it.
    pub followed: Vec<Followed>,
}

/// The result of a replacement.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a rare call, matched at once and never stored")]
pub enum Replacement {
    /// The old job was canceled and the new one stored.
    Replaced(Transitioned),
    /// Nothing changed: the new job's idempotency key was used before, by this job.
    Existing(JobId),
}
