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
    /// Stores a schedule. Storing the same id again changes nothing.
    ///
    /// # Errors
    /// [`Duplicate`](crate::ErrorKind::Duplicate) if a job or another schedule holds its business key.
    async fn create_recurring(&self, new: &NewRecurring) -> Result<(), StoreError>;

    /// Declares schedules, atomically and in the order given: stores those that are new, changes the others to what the code now
    /// says. Each counts as declared now. A node calls this repeatedly for the schedules of its code; unless they have changed it costs a
    /// few statements for all of them.
    ///
    /// A schedule that is unchanged, one whose [times](NewRecurring::schedule) are the same, and one that is due retains its next
    /// fire; any other takes the new one. A paused one stays paused. One that was [retired](ArchiveReason::Retired) returns as
    /// paused as it was, and continues its counts.
    async fn declare_recurring(&self, all: &[NewRecurring]) -> Result<Vec<Declared>, StoreError>;

    /// Returns schedules by id, in the order of the ids; unknown ids are left out.
    async fn find_recurring(&self, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError>;

    /// Returns a page of schedules, newest first; `limit` as for jobs.
    async fn list_recurring(
        &self,
        filter: &RecurringFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<RecurringRecord>, StoreError>;

    /// Returns the time, by the database's clock, until the next fire of any schedule that is not paused: zero if one is due
    /// already, `None` if none will ever fire.
    async fn next_fire(&self) -> Result<Option<Duration>, StoreError>;

    /// Returns up to `limit` due schedules, the longest due first, and the database's time.
    async fn due_recurring(&self, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError>;

    /// Fires schedules: each with its jobs and its next fire, all of them atomically.
    ///
    /// A schedule whose next fire is no longer the expected one, or that is paused or gone, changes nothing. The overlap policy is
    /// applied here, while the last job cannot change ([`arrange`](crate::recurring::arrange)).
    async fn fire_recurring(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError>;

    /// Suspends a schedule. Returns `false` if it is paused already or unknown.
    async fn pause_recurring(&self, id: JobId) -> Result<bool, StoreError>;

    /// Resumes a paused schedule, from `next_fire`. Returns `false` if it is not paused or unknown.
    async fn resume_recurring(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError>;

    /// Ends a schedule: it is retained in the archive, its key and its tags are released, and jobs that it has fired stay.
    /// Returns `false` if there is none.
    ///
    /// With `idle_for`, only if it was neither declared nor changed for that long.
    async fn cancel_recurring(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError>;
}

/// The result of declaring a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Declared {
    /// It is new.
    Created,
    /// The code says something else than before.
    Changed,
    /// It was already so.
    Unchanged,
}

/// The result of firing a schedule.
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
