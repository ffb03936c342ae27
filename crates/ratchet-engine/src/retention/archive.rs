use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::page::{JobCursor, JobFilter};
use ratchet_core::store::{ArchiveRequest, Archived, Removal};
use ratchet_core::{CountBy, Counted, DeadLetter, DeadLetterFilter, JobId, JobState, StoreError, clock, limits};

use super::BulkEventKind;
use super::pacing::Pace;
use crate::client::Client;
use crate::protect::authorizer::{Action, Target};

/// Most jobs that are looked at in one transaction, and most archived jobs that are deleted in one.
///
/// Small: whoever wants one of these rows meanwhile waits for the whole transaction. [`Pace`] makes it fewer where these take long.
pub(super) const TOGETHER: usize = 250;

/// Lines of jobs' logs that are looked at in one transaction: nobody else wants those rows, and each is small.
pub(crate) const LINES_TOGETHER: usize = 2_000;

impl Client {
    /// How many jobs [`archive`](Self::archive) would move, at most: those stay that something live hangs on. More than 100,000 are
    /// not counted to the last: [`Counted::more`] says so.
    ///
    /// # Errors
    /// [`Invalid`](ratchet_core::ErrorKind::Invalid) for a state that is no end.
    pub async fn jobs_to_archive(&self, state: JobState, age: Duration) -> Result<Counted, StoreError> {
        check_ended(state)?;
        self.demand(Action::Archive, &Target::Ended)?;
        let filter = self.ended_before(JobFilter { states: vec![state], ..JobFilter::default() }, age).await?;
        self.store().count(&filter, &CountBy::Kind).await
    }

    /// Moves jobs to the archive that ended in this state longer ago than `age`; says how many.
    ///
    /// Nodes do this all the time, by their `retention`. This is for whoever does not want to wait, or lets no node do it. As they do, it
    /// goes in small transactions with pauses in between, so that those who work meanwhile hardly notice.
    ///
    /// # Errors
    /// [`Invalid`](ratchet_core::ErrorKind::Invalid) for a state that is no end.
    pub async fn archive(&self, state: JobState, age: Duration) -> Result<u64, StoreError> {
        check_ended(state)?;
        self.demand(Action::Archive, &Target::Ended)?;
        let (mut moved, mut after, mut pace) = (0, None, Pace::new());
        loop {
            let request = ArchiveRequest {
                removal: Removal::Archive,
                state,
                age,
                after,
                limit: pace.begin(TOGETHER),
                only: None,
            };
            let Archived { moved: now, last, more, .. } = self.store().archive(&request).await?;
            moved += now;
            after = last;
            if !more {
                self.publish_count(moved, |count| BulkEventKind::JobsArchived { state, count });
                return Ok(moved);
            }
            pace.rest().await;
        }
    }

    /// Takes dead letters out of the dead letter queue that failed longer ago than `age`; says how many. They go to the archive.
    pub async fn archive_dead_letters(&self, age: Duration) -> Result<u64, StoreError> {
        self.archive(JobState::Failed, age).await
    }

    /// The same for the dead letters of a filter.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use ratchet_core::page::JobFilter;
    /// # use ratchet_core::{DeadLetterFilter, Kind, StoreError};
    /// # async fn clean(client: ratchet_engine::Client, kind: Kind) -> Result<(), StoreError> {
    /// let jobs = JobFilter { kind: Some(kind), ..JobFilter::default() };
    /// let filter = DeadLetterFilter { jobs, ..DeadLetterFilter::default() };
    /// let would_go = client.dead_letters_to_archive(&filter, Duration::ZERO).await?;
    /// let gone = client.archive_dead_letters_of(&filter, Duration::ZERO).await?;
    /// assert!(gone <= would_go);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn archive_dead_letters_of(&self, filter: &DeadLetterFilter, age: Duration) -> Result<u64, StoreError> {
        let state = JobState::Failed;
        let mut old = self.old_dead_letters(filter, age).await?;
        let (mut moved, mut pace) = (0, Pace::new());
        while let Some(ids) = old.next(self, pace.begin(TOGETHER)).await? {
            let limit = ids.len();
            let request = ArchiveRequest { removal: Removal::Archive, state, age, after: None, limit, only: Some(ids) };
            moved += self.store().archive(&request).await?.moved;
            pace.rest().await;
        }
        self.publish_count(moved, |count| BulkEventKind::JobsArchived { state, count });
        Ok(moved)
    }

    /// How many dead letters [`archive_dead_letters_of`](Self::archive_dead_letters_of) would take, at most: those stay that
    /// something live hangs on.
    pub async fn dead_letters_to_archive(&self, filter: &DeadLetterFilter, age: Duration) -> Result<u64, StoreError> {
        let mut old = self.old_dead_letters(filter, age).await?;
        let mut count = 0;
        while let Some(ids) = old.next(self, TOGETHER).await? {
            count += ids.len() as u64;
        }
        Ok(count)
    }

    async fn old_dead_letters(&self, filter: &DeadLetterFilter, age: Duration) -> Result<OldDeadLetters, StoreError> {
        self.demand(Action::Archive, &Target::Ended)?;
        let jobs = self.ended_before(filter.jobs.clone(), age).await?;
        Ok(OldDeadLetters { filter: DeadLetterFilter { jobs, ..filter.clone() }, after: None, over: false })
    }

    /// Those of a filter that are old enough to be archived: what ended at the very cutoff is, and what ended before it was
    /// made before it.
    async fn ended_before(&self, jobs: JobFilter, age: Duration) -> Result<JobFilter, StoreError> {
        let cutoff = clock::earlier(self.store().database_time().await?, age);
        let earlier = |until: Option<Timestamp>, than: Timestamp| Some(until.map_or(than, |until| until.min(than)));
        Ok(JobFilter {
            made_until: earlier(jobs.made_until, cutoff),
            ended_until: earlier(jobs.ended_until, clock::later(cutoff, Duration::from_micros(1))),
            ..jobs
        })
    }

    /// Deletes jobs for good that were archived longer ago than `age`; says how many. Idempotency keys stay taken.
    pub async fn purge_archive(&self, age: Duration) -> Result<u64, StoreError> {
        self.demand(Action::Purge, &Target::Ended)?;
        let (mut purged, mut pace) = (0, Pace::new());
        loop {
            let limit = pace.begin(TOGETHER);
            let now = self.store().purge_archive(age, limit).await?;
            purged += now;
            if now < limit as u64 {
                self.publish_count(purged, |count| BulkEventKind::ArchivePurged { count });
                return Ok(purged);
            }
            pace.rest().await;
        }
    }

    /// Publishes an event about `count` jobs or lines, unless there are none.
    pub(super) fn publish_count(&self, count: u64, what: impl FnOnce(u64) -> BulkEventKind) {
        if count > 0 {
            self.publish_bulk(what(count));
        }
    }
}

fn check_ended(state: JobState) -> Result<(), StoreError> {
    limits::check_ended(state).map_err(|error| StoreError::refused("archiving jobs", error))
}

/// The dead letters of a filter that failed long enough ago, a page at a time.
struct OldDeadLetters {
    filter: DeadLetterFilter,
    after: Option<JobCursor>,
    over: bool,
}

impl OldDeadLetters {
    /// Returns the next page, which may be empty; `None` after the last.
    async fn next(&mut self, client: &Client, most: usize) -> Result<Option<Vec<JobId>>, StoreError> {
        if self.over {
            return Ok(None);
        }
        let page = client.dead_letters(&self.filter.jobs, self.after, most).await?;
        (self.after, self.over) = (page.next, page.next.is_none());
        let meant = |letter: &&DeadLetter| self.filter.passes(letter);
        Ok(Some(page.items.iter().filter(meant).map(|letter| letter.id).collect()))
    }
}
