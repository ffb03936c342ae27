use async_trait::async_trait;

use crate::error::StoreError;
use crate::id::JobId;
use crate::record::JobRecord;
use crate::settlement::Followed;
use crate::spec::NewJob;
use crate::transition::Place;

/// What a person may ask for. Each is guarded by [`sources`](crate::transition::sources) of its event; where the job
/// is unknown or stands elsewhere, nothing changes and the answer is `None`.
#[async_trait]
pub trait ControlStore: Send + Sync {
    /// Ends a live job; a running attempt is recorded as cancelled, the business key is freed, and what waits for its
    /// success is cancelled with it. A batch whose job it is takes no further children, and those it has are to be cancelled
    /// by [`cancel_children`](super::BatchStore::cancel_children).
    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Suspends a PENDING or FAILED job.
    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Lets a paused job go on from where it was.
    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Gives a FAILED job a new life: attempts and crash count 0, error cleared, due now.
    ///
    /// It takes its business key again; [`Duplicate`](crate::ErrorKind::Duplicate) if another job holds it. Jobs that were
    /// cancelled because it had failed wait for it again, with their keys, under the same rule; so do those that its end had
    /// let go and that have not begun. A job that never got its signal waits for that again, for its full time. A child of a
    /// batch counts as failed no more; [`Conflict`](crate::ErrorKind::Conflict) if its batch is over, and if a job never ran
    /// because whether to run could not be told: see [`untold`](crate::flow::untold).
    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Lets a WAITING job become PENDING; it counts as waiting for a slot since now, or since its time if that is later.
    async fn release(&self, id: JobId) -> Result<Option<Transitioned>, StoreError>;

    /// Cancels `old` and stores `new` in one transaction; `new` may take over the business key of `old`.
    ///
    /// An idempotency key is looked at before anything else, so that asking again after a lost reply finds what the
    /// first asking did.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such job, [`Conflict`](crate::ErrorKind::Conflict) if
    /// it cannot be cancelled any more, [`Duplicate`](crate::ErrorKind::Duplicate) if a third job holds the new key.
    /// Nothing changes then.
    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError>;
}

/// A transition that a person asked for and that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Transitioned {
    /// Where the job stood before.
    pub from: Place,
    /// The job as it now is.
    pub job: JobRecord,
    /// Jobs whose place changed with it.
    pub followed: Vec<Followed>,
}

/// What a replacement came to.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a rare call, matched at once and never stored")]
pub enum Replacement {
    /// The old job was cancelled and the new one stored.
    Replaced(Transitioned),
    /// The new job's idempotency key was used before: nothing changed, this job stands for it.
    Existing(JobId),
}
