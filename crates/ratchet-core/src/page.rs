//! Looking through jobs, a page at a time.

use serde::{Deserialize, Serialize};

use crate::id::JobId;
use crate::name::{BusinessKey, Kind, QueueName, Tag};
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
}

/// Where the next page begins: after this job, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCursor(pub JobId);

/// Some of the jobs that a filter lets through, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The jobs.
    pub items: Vec<T>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<JobCursor>,
}

/// Most jobs on one page.
pub const PAGE_LIMIT_MAX: usize = 1_000;
