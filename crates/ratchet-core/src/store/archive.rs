use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::clock::earlier;
use crate::error::StoreError;
use crate::flow::JobFlags;
use crate::id::JobId;
use crate::state::JobState;

/// The archive: moving jobs that ended long ago out of the way, and deleting what was archived long ago.
///
/// An archived job is found by its id and by lists that ask for the archive, with its attempts and its signal. No operation
/// changes it any more. Its alerts are gone, and so is its row as a batch; the parent job's result has the batch's counts.
/// Idempotency keys outlive archived jobs.
#[async_trait]
pub trait ArchiveStore: Send + Sync {
    /// Examines up to `limit` ended jobs in the order of their ids and archives or deletes those that may go, atomically.
    ///
    /// [`retention`](crate::retention) has the rule: a job may go if it ended longer ago than `age` and no live job needs it.
    ///
    /// A store may leave a job out of a call, for example because another transaction is changing it, if a later round finds
    /// it again. It may also use the time in a job's id, and then leave out jobs whose id is younger than `age`: a job ends
    /// after it was created.
    async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError>;

    /// Deletes up to `limit` jobs permanently that were archived longer ago than `age`, with what is left of their logs.
    /// Returns how many.
    async fn purge_archive(&self, age: Duration, limit: usize) -> Result<u64, StoreError>;

    /// Deletes up to `limit` schedules permanently that were canceled or retired longer ago than `age`. Returns how many.
    async fn purge_schedules(&self, age: Duration, limit: usize) -> Result<u64, StoreError>;
}

/// The jobs to archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveRequest {
    /// Where they go.
    pub removal: Removal,
    /// The state in which they ended.
    pub state: JobState,
    /// The least time since they ended, by the database's clock.
    pub age: Duration,
    /// The id after which the scan goes on.
    pub after: Option<JobId>,
    /// The number of jobs to examine.
    pub limit: usize,
    /// The only jobs to consider, if any are given; the scan then has no continuation.
    pub only: Option<Vec<JobId>>,
}

impl ArchiveRequest {
    /// Returns the time by which a job has to have ended to be old enough to go.
    pub fn cutoff(&self, now: Timestamp) -> Timestamp {
        earlier(now, self.age)
    }

    /// Returns the answer to this request, where the next call goes on: `read` are the jobs that were read, in their order.
    pub fn answer(&self, read: &[JobId], moved: u64, deleted: u64) -> Archived {
        if self.only.is_some() {
            return Archived { moved, deleted, last: self.after, more: false };
        }
        let more = read.len() == self.limit && self.limit > 0;
        Archived { moved, deleted, last: read.last().copied().or(self.after), more }
    }
}

/// What happens to an ended job that may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Removal {
    /// It moves to the archive.
    Archive,
    /// It is deleted, with its log. One with ties to other jobs moves to the archive, where a retry finds its result.
    Delete,
}

impl Removal {
    /// Returns what happens to a job: `flow` and `workflow` are its ties.
    #[must_use]
    pub const fn of_job(self, flow: JobFlags, workflow: Option<JobId>) -> Self {
        match self {
            Self::Delete if flow.is_none() && workflow.is_none() => Self::Delete,
            Self::Delete | Self::Archive => Self::Archive,
        }
    }
}

/// The result of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Archived {
    /// The number of jobs that were archived.
    pub moved: u64,
    /// The number of jobs that were deleted.
    pub deleted: u64,
    /// The last job that was examined, where the next call goes on; the request's `after` if there was none.
    pub last: Option<JobId>,
    /// Whether more jobs can be examined now.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_next_call_goes_on_after_what_was_read() {
        const fn id(number: u128) -> JobId {
            JobId(Uuid::from_u128(number))
        }
        let check = |limit, only: Option<u128>, read: &[u128], last: u128, more: bool| {
            let only = only.map(|one| vec![id(one)]);
            let (state, removal) = (JobState::Failed, Removal::Archive);
            let request = ArchiveRequest { removal, state, age: Duration::ZERO, after: Some(id(1)), limit, only };
            let read: Vec<JobId> = read.iter().copied().map(id).collect();
            let expected = Archived { moved: 1, deleted: 2, last: Some(id(last)), more };
            assert_eq!(request.answer(&read, 1, 2), expected, "{limit} {read:?}");
        };
        check(3, None, &[5, 6], 6, false);
        check(2, None, &[5, 6], 6, true);
        check(2, None, &[], 1, false);
        check(0, None, &[], 1, false);
        check(1, Some(5), &[5], 1, false);
    }
}
