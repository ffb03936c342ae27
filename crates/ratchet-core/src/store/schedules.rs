use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::StoreError;
use crate::id::JobId;
use crate::page::{JobCursor, Page};
use crate::schedule::{ArchiveReason, Firing, NewSchedule, ScheduleFilter, ScheduleRecord};

/// Schedules.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Stores a schedule. Storing the same id again changes nothing.
    ///
    /// # Errors
    /// [`Duplicate`](crate::ErrorKind::Duplicate) if a job or another schedule holds its business key.
    async fn create_schedule(&self, new: &NewSchedule) -> Result<(), StoreError>;

    /// Declares schedules, atomically and in the order given: stores those that are new, changes the others to what the code now
    /// says. Each counts as declared now. A node calls this repeatedly for the schedules of its code; unless they have changed it costs a
    /// few statements for all of them.
    ///
    /// A schedule that is unchanged, one whose [times](NewSchedule::schedule) are the same, and one that is due retains its next
    /// fire; any other takes the new one. A paused one stays paused. One that was [retired](ArchiveReason::Retired) returns as
    /// paused as it was, and continues its counts.
    async fn declare_schedules(&self, all: &[NewSchedule]) -> Result<Vec<Declared>, StoreError>;

    /// Returns schedules by id, in the order of the ids; unknown ids are left out.
    async fn find_schedules(&self, ids: &[JobId]) -> Result<Vec<ScheduleRecord>, StoreError>;

    /// Returns a page of schedules, newest first; `limit` as for jobs.
    async fn list_schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<ScheduleRecord>, StoreError>;

    /// Returns the time, by the database's clock, until the next fire of any schedule that is not paused: zero if one is due
    /// already, `None` if none will ever fire.
    async fn next_fire(&self) -> Result<Option<Duration>, StoreError>;

    /// Returns up to `limit` due schedules, the longest due first, and the database's time.
    async fn due_schedules(&self, limit: usize) -> Result<(Timestamp, Vec<ScheduleRecord>), StoreError>;

    /// Fires schedules: each with its jobs and its next fire, all of them atomically.
    ///
    /// A schedule whose next fire is no longer the expected one, or that is paused or gone, changes nothing. The overlap policy is
    /// applied here, while the last job cannot change ([`arrange`](crate::schedule::arrange)).
    async fn fire_schedules(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError>;

    /// Suspends a schedule. Returns `false` if it is paused already or unknown.
    async fn pause_schedule(&self, id: JobId) -> Result<bool, StoreError>;

    /// Resumes a paused schedule, from `next_fire`. Returns `false` if it is not paused or unknown.
    async fn resume_schedule(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError>;

    /// Ends a schedule: it is retained in the archive, its key and its tags are released, and jobs that it has fired stay.
    /// Returns `false` if there is none.
    ///
    /// With `idle_for`, only if it was neither declared nor changed for that long.
    async fn cancel_schedule(
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
