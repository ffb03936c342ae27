//! Looking through jobs, a page at a time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::JobId;
use crate::name::{BusinessKey, Kind, Principal, QueueName, Tag};
use crate::state::JobState;

/// Which jobs to list; every field that is set narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In any of these states; empty means all.
    pub states: Vec<JobState>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// In this queue.
    pub queue: Option<QueueName>,
    /// With this tag.
    pub tag: Option<Tag>,
    /// Children of this batch or schedule.
    pub parent: Option<JobId>,
    /// With this business key, held or once held.
    pub business_key: Option<BusinessKey>,
    /// Submitted on behalf of this principal.
    pub principal: Option<Principal>,
    /// Made at this time or later, as the id says. A job that follows from another counts with that one.
    pub made_from: Option<Timestamp>,
    /// Made before this time, as the id says.
    pub made_until: Option<Timestamp>,
    /// Whether jobs in the archive are looked at.
    pub archive: ArchiveScope,
}

/// Where to look for jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ArchiveScope {
    /// Among jobs that have not been archived.
    #[default]
    Live,
    /// In the archive.
    Archived,
    /// In both: one order and one cursor, and every job once, even if it is archived meanwhile.
    Both,
}

impl ArchiveScope {
    /// Whether jobs that have not been archived are looked at.
    pub const fn has_live(self) -> bool {
        matches!(self, Self::Live | Self::Both)
    }

    /// Whether the archive is looked at.
    pub const fn has_archived(self) -> bool {
        matches!(self, Self::Archived | Self::Both)
    }
}

impl JobFilter {
    /// The ids that can pass, as the first that can and the first that cannot any more: by the cursor and the times.
    pub fn id_range(&self, after: Option<JobCursor>) -> (JobId, JobId) {
        let from = self.made_from.map_or(JobId(Uuid::nil()), JobId::floor);
        let until = self.made_until.map_or(JobId(Uuid::max()), JobId::floor);
        (from, after.map_or(until, |cursor| until.min(cursor.0)))
    }
}

/// Where the next page begins: after this job, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCursor(pub JobId);

/// Some of the jobs that a filter lets through, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The jobs. There may be fewer than asked for, even none, and more on the next page: where jobs are found by nothing but their kind
    /// or queue, a page ends after so many jobs were looked at.
    pub items: Vec<T>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<JobCursor>,
}

/// Most jobs on one page.
pub const PAGE_LIMIT_MAX: usize = 1_000;
