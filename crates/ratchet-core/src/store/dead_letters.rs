use async_trait::async_trait;

use crate::dead_letter::{DeadLetter, DeadLetterFilter};
use crate::error::StoreError;
use crate::page::{JobCursor, JobFilter, PAGE_LIMIT_MAX, Page};
use crate::priority::Priority;

/// Looking through the dead letter queue, and giving much of it a new life at once.
#[async_trait]
pub trait DeadLetterStore: Send + Sync {
    /// A page of dead letters, newest first; `limit` as for [`list`](super::QueryStore::list).
    async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError>;

    /// Retries up to `limit` dead letters, the newest first, each as [`retry`](super::ControlStore::retry) does: all or none.
    ///
    /// Children of batches that are over cannot be retried, and are passed over: they do not count against `limit`, which is 1 to
    /// [`RETRY_ALL_MAX`](crate::limits::RETRY_ALL_MAX), else [`Invalid`](crate::ErrorKind::Invalid).
    ///
    /// # Errors
    /// [`Duplicate`](crate::ErrorKind::Duplicate) if a live job, or another one of these, holds the business key of one of
    /// them, or of one that would be revived. Nothing changes then, and [`held`](StoreError::held) says which letters to
    /// leave out: of those that nothing hangs on all at once, and else at least one.
    async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError>;
}

/// What came of retrying dead letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetriedAll {
    /// How many were given a new life.
    pub count: u64,
    /// How many jobs wait again that had been cancelled because of them.
    pub revived: u64,
    /// How many were passed over: their batch is over, or they never ran because whether to could not be told.
    pub passed_over: u64,
    /// The most urgent of those that can run.
    pub priority: Option<Priority>,
}

/// How many dead letters are looked at, at most, to find those that are meant.
pub const LETTERS_LOOKED_AT_MAX: usize = 20_000;

/// In how many pages: those of a filter that hardly a letter passes hold few, or none, and each is a long look.
pub const LETTER_PAGES_MAX: usize = LETTERS_LOOKED_AT_MAX / PAGE_LIMIT_MAX;
