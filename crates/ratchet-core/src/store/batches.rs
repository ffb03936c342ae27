use async_trait::async_trait;

use super::Submitted;
use crate::batch::Batch;
use crate::error::StoreError;
use crate::id::JobId;
use crate::page::{JobCursor, Page};
use crate::settlement::Followed;
use crate::spec::NewJob;

/// Batches: extending, listing and ending them.
///
/// A batch is stored with its parent job, by [`JobStore::submit`](super::JobStore::submit), and canceled with it, by
/// [`ControlStore::cancel`](super::ControlStore::cancel). Whatever ends a child counts it for its batch, atomically; the last
/// child releases the parent job.
#[async_trait]
pub trait BatchStore: Send + Sync {
    /// Adds children to an open batch, all or none, atomically.
    ///
    /// The same children may be given again, as after a lost reply: those that exist are neither stored nor counted again. A
    /// child whose idempotency key was used before is not counted at all.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such batch, [`Conflict`](crate::ErrorKind::Conflict) if it
    /// accepts no further children, [`Duplicate`](crate::ErrorKind::Duplicate) if a live job holds the business key of one.
    /// Nothing changes then.
    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError>;

    /// Closes a batch to further children; if all have ended, the parent job is released at once. Sealing a sealed batch
    /// changes nothing.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such batch, [`Conflict`](crate::ErrorKind::Conflict) if it was
    /// canceled.
    async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError>;

    /// Returns batches by id, in the order of the ids; unknown ids are left out.
    async fn find_batches(&self, ids: &[JobId]) -> Result<Vec<Batch>, StoreError>;

    /// Returns a page of batches, newest first; `limit` is 1 to [`PAGE_LIMIT_MAX`](crate::page::PAGE_LIMIT_MAX), else
    /// [`Invalid`](crate::ErrorKind::Invalid).
    async fn list_batches(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<Batch>, StoreError>;

    /// Returns batches that were canceled and whose children are still to be canceled, oldest first.
    async fn canceling_batches(&self, limit: usize) -> Result<Vec<JobId>, StoreError>;

    /// Examines up to `limit` children of a canceled batch, those after `after` in the order of their ids, and cancels the
    /// live ones.
    ///
    /// The first call passes `None`; the batch is done when the answer has no `next`. A batch that was not canceled is left
    /// as it is.
    async fn cancel_children(
        &self,
        id: JobId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<CanceledChildren, StoreError>;
}

/// Children that were canceled with their batch.
#[derive(Debug, Default, PartialEq)]
pub struct CanceledChildren {
    /// The children of this call.
    pub children: Vec<Followed>,
    /// The id after which the next call goes on; `None` when no child is left.
    pub next: Option<JobId>,
}
