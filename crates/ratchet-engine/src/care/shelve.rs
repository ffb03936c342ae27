use std::time::Duration;

use ratchet_core::store::{ArchiveRequest, Archived};
use ratchet_core::{JobState, StoreError};

use super::BulkEventKind;
use crate::authorizer::{Action, Target};
use crate::client::Client;

/// Jobs that are looked at in one transaction, and archived jobs that are deleted in one.
///
/// Small: whoever wants one of these rows meanwhile waits for the whole transaction. These take ten to twenty
/// milliseconds; with twice as many the database is noticeably slower for others.
pub(super) const TOGETHER: usize = 250;

/// Lines of jobs' logs that are looked at in one transaction: nobody else wants those rows, and each is small.
pub(crate) const LINES_TOGETHER: usize = 2_000;

impl Client {
    /// Moves jobs to the archive that ended in this state longer ago than `age`; says how many.
    ///
    /// Nodes do this all the time, by their `retention`. This is for whoever does not want to wait, or lets no node do it.
    pub async fn archive(&self, state: JobState, age: Duration) -> Result<u64, StoreError> {
        self.demand(Action::Archive, &Target::Ended)?;
        let (mut moved, mut after) = (0, None);
        loop {
            let request = ArchiveRequest { state, age, after, limit: TOGETHER };
            let Archived { moved: now, last, more } = self.store().archive(&request).await?;
            moved += now;
            after = last;
            if !more {
                self.tell_count(moved, |count| BulkEventKind::JobsArchived { state, count });
                return Ok(moved);
            }
        }
    }

    /// Takes dead letters out of the dead letter queue that failed longer ago than `age`; says how many. They go to the archive.
    pub async fn purge_dead_letters(&self, age: Duration) -> Result<u64, StoreError> {
        self.archive(JobState::Failed, age).await
    }

    /// Deletes jobs for good that were archived longer ago than `age`; says how many. Idempotency keys stay taken.
    pub async fn purge_archive(&self, age: Duration) -> Result<u64, StoreError> {
        self.demand(Action::Purge, &Target::Ended)?;
        let mut purged = 0;
        loop {
            let now = self.store().purge_archive(age, TOGETHER).await?;
            purged += now;
            if now < TOGETHER as u64 {
                self.tell_count(purged, |count| BulkEventKind::ArchivePurged { count });
                return Ok(purged);
            }
        }
    }

    /// Tells of so many, if there were any.
    pub(super) fn tell_count(&self, count: u64, what: impl FnOnce(u64) -> BulkEventKind) {
        if count > 0 {
            self.tell(what(count));
        }
    }
}
