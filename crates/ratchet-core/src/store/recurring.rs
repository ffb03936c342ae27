use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StoreError;
use crate::id::JobId;
use crate::page::{JobCursor, Page};
use crate::recurring::{ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord};

/// Schedules.
#[async_trait]
pub trait RecurringStore: Send + Sync {
    /// Stores a schedule.
    ///
    /// # Errors
    /// [`Duplicate`](crate::ErrorKind::Duplicate) if a job or another schedule holds its business key. Storing the same id again
    /// changes nothing.
    async fn create_recurring(&self, new: &NewRecurring) -> Result<(), StoreError>;

    /// Stores a schedule that code declares, or changes it to what the code now says. In any case it counts as declared just
    /// now.
    ///
    /// One that is already so, one whose [times](NewRecurring::schedule) are the same, and one that is due keeps its next
    /// fire; another takes the new. A paused one stays paused. One that was [retired](ArchiveReason::Retired) comes back as
    /// paused as it was, and counts on.
    async fn declare_recurring(&self, new: &NewRecurring) -> Result<Declared, StoreError>;

    /// Declares schedules like [`declare_recurring`](Self::declare_recurring), in the order given: what a node calls from
    /// time to time, to say that it still declares them. A few statements for all of them, if they have not changed.
    async fn declare_all_recurring(&self, all: &[NewRecurring]) -> Result<Vec<Declared>, StoreError> {
        let mut declared = Vec::with_capacity(all.len());
        for new in all {
            declared.push(self.declare_recurring(new).await?);
        }
        Ok(declared)
    }

    /// Reads schedules by id, in the order of the ids; unknown ids are left out.
    async fn find_recurring(&self, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError>;

    /// A page of schedules, newest first; `limit` as for jobs.
    async fn list_recurring(
        &self,
        filter: &RecurringFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<RecurringRecord>, StoreError>;

    /// How long, by the database's clock, until the next fire of any schedule that is not paused: zero if one is due
    /// already, `None` if none will ever fire.
    async fn next_fire(&self) -> Result<Option<Duration>, StoreError>;

    /// Up to `limit` schedules that are due, the longest due first, and the database's time.
    async fn due_recurring(&self, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError>;

    /// Fires schedules: each with its jobs and its next fire, in one transaction for all.
    ///
    /// A schedule whose next fire is not the expected one any more, or that is paused or gone, changes nothing. The overlap
    /// policy is applied here, with the last job's row locked ([`arrange`](crate::recurring::arrange)).
    async fn fire_recurring(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError>;

    /// Suspends a schedule; `false` if it is paused already or unknown.
    async fn pause_recurring(&self, id: JobId) -> Result<bool, StoreError>;

    /// Lets a paused schedule go on, from `next_fire`; `false` if it is not paused or unknown.
    async fn resume_recurring(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError>;

    /// Ends a schedule: kept in the archive, its key and its tags freed. Jobs that it has fired stay. `false` if there is none.
    ///
    /// With `idle_for`, only if it was neither declared nor changed for that long.
    async fn cancel_recurring(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError>;
}

/// What declaring a schedule came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Declared {
    /// It is new.
    Created,
    /// The code says something else than before.
    Changed,
    /// It was already so.
    Unchanged,
}

/// What firing a schedule came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fired {
    /// So many jobs were stored, and so many fires passed over.
    Done {
        /// Jobs.
        jobs: u64,
        /// Fires that were passed over.
        skipped: u64,
    },
    /// Somebody was quicker, or it is paused or gone.
    Conflict,
}
