use async_trait::async_trait;

use super::Submitted;
use crate::batch::Batch;
use crate::error::StoreError;
use crate::id::JobId;
use crate::page::{JobCursor, Page};
use crate::settlement::Followed;
use crate::spec::NewJob;

/// Batches: letting them grow, looking at them, ending them.
///
/// A batch is stored with the job that stands for it, by [`JobStore::submit`](super::JobStore::submit), and begins to be
/// cancelled with it, by [`ControlStore::cancel`](super::ControlStore::cancel). Children are counted by whatever ends them,
/// in the same transaction; the last one releases the job that stands for the batch.
#[async_trait]
pub trait BatchStore: Send + Sync {
    /// Adds children to an open batch, all or none, in one transaction.
    ///
    /// The same children may be given again, as after a lost reply: those that are there are neither stored nor counted
    /// again. One whose idempotency key was used before is not counted at all.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such batch, [`Conflict`](crate::ErrorKind::Conflict) if it
    /// takes no further children, [`Duplicate`](crate::ErrorKind::Duplicate) if a live job holds the business key of one.
    /// Nothing changes then.
    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError>;

    /// Says that no further children will come; if all have ended, the job that stands for the batch is released at once.
    /// Sealing a sealed batch changes nothing.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if there is no such batch, [`Conflict`](crate::ErrorKind::Conflict) if it was
    /// cancelled.
    async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError>;

    /// Reads batches by id, in the order of the ids; unknown ids are left out.
    async fn find_batches(&self, ids: &[JobId]) -> Result<Vec<Batch>, StoreError>;

    /// A page of batches, newest first; `limit` is 1 to [`PAGE_LIMIT_MAX`](crate::page::PAGE_LIMIT_MAX), else
    /// [`Invalid`](crate::ErrorKind::Invalid).
    async fn list_batches(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<Batch>, StoreError>;

    /// Batches that were cancelled and whose children are still to be, the oldest first.
    async fn canceling_batches(&self, limit: usize) -> Result<Vec<JobId>, StoreError>;

    /// Looks at up to `limit` children of a batch that was cancelled, those after `after` in the order of their ids, and
    /// cancels those that are live.
    ///
    /// Begin with `None`; when nothing comes next the batch is through. A batch that was not cancelled is left as it is.
    async fn cancel_children(
        &self,
        id: JobId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<CanceledChildren, StoreError>;
}

/// Children that were cancelled with their batch.
#[derive(Debug, Default, PartialEq)]
pub struct CanceledChildren {
    /// Those of this call.
    pub children: Vec<Followed>,
    /// Where the next call goes on; `None` when none is left.
    pub next: Option<JobId>,
}
