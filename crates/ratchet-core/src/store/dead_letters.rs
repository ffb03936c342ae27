use async_trait::async_trait;

use crate::dead_letter::{DeadLetter, DeadLetterFilter};
use crate::error::StoreError;
use crate::page::{JobCursor, JobFilter, PAGE_LIMIT_MAX, Page};
use crate::priority::Priority;

/// The dead letter queue: listing it, and retrying many letters at once.
#[async_trait]
pub trait DeadLetterStore: Send + Sync {
    /// Returns a page of dead letters, newest first; `limit` as for [`list`](super::QueryStore::list).
    async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError>;

    /// Retries up to `limit` dead letters, the newest first, each as [`retry`](super::ControlStore::retry) does: all or none.
    ///
    /// Children of batches that are over cannot be retried and are skipped: they do not count against `limit`, which is 1 to
    /// [`RETRY_ALL_MAX`](crate::limits::RETRY_ALL_MAX), else [`Invalid`](crate::ErrorKind::Invalid).
    ///
    /// # Errors
    /// [`Duplicate`](crate::ErrorKind::Duplicate) if a live job, or another letter of this call, holds the business key of one of
    /// them, or of a dependent that would be revived. Nothing changes then, and [`held`](StoreError::held) names the letters to
    /// leave out: all of those without dependents at once, and else at least one.
    async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError>;
}

/// The result of retrying dead letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetriedAll {
    /// The number of letters that were retried.
    pub count: u64,
    /// The number of dependents that wait again and had been canceled because of them.
    pub revived: u64,
    /// The number of letters that were skipped: their batch is over, or they never ran because their condition was undecidable.
    pub passed_over: u64,
    /// The highest priority among those that can run.
    pub priority: Option<Priority>,
}

/// Maximum number of dead letters that are examined to find those of a filter.
pub const DEAD_LETTERS_EXAMINED_MAX: usize = 20_000;

/// The same in pages: pages of a filter that few letters pass may have few letters, or none.
pub const LETTER_PAGES_MAX: usize = DEAD_LETTERS_EXAMINED_MAX / PAGE_LIMIT_MAX;
