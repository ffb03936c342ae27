use async_trait::async_trait;

use crate::error::StoreError;
use crate::id::JobId;
use crate::name::SignalKey;
use crate::record::JobRecord;
use crate::settlement::{Followed, FollowedBy};
use crate::signal::{Delivery, SignalRecord};

/// Signals: delivering them, and ending the wait for those that do not come.
///
/// Delivering to a key and beginning to wait for it exclude each other: a signal reaches a job that waits, or is kept
/// for one that comes, and never falls between the two.
#[async_trait]
pub trait SignalStore: Send + Sync {
    /// Gives a signal to the WAITING jobs that it is for and that have not got theirs, in one transaction.
    ///
    /// The first signal of a job counts: what comes later, or for a job that is unknown or does not wait, changes nothing.
    /// A job that has nothing else to wait for is released. If no job waits for the key, the signal is kept for
    /// [`keep_for`](Delivery::keep_for), unless one is kept already, and the first job that begins to wait for the key
    /// takes it.
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError>;

    /// Ends up to `limit` WAITING jobs whose signal did not come in time, in one transaction: each is FAILED with all that
    /// follows from it (business key, alert, callback, dependants).
    ///
    /// `limit` is 1 to [`PAGE_LIMIT_MAX`](crate::page::PAGE_LIMIT_MAX), else [`Invalid`](crate::ErrorKind::Invalid).
    async fn expire(&self, limit: usize) -> Result<Expired, StoreError>;

    /// What these jobs wait or waited for, in the order of the ids; those that never did are left out.
    async fn signals(&self, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError>;

    /// Looks at up to `limit` keys after `after`, in their order, and forgets those for which nothing is kept any more.
    async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError>;
}

/// What a delivery came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivered {
    /// The jobs that got it: [`Released`](FollowedBy::Released), or [`Signaled`](FollowedBy::Signaled) if they wait on.
    pub jobs: Vec<Followed>,
    /// Whether it is kept for a job to come.
    pub kept: bool,
}

impl Delivered {
    /// The jobs that can run now.
    pub fn released(&self) -> impl Iterator<Item = &Followed> {
        self.jobs.iter().filter(|job| job.what == FollowedBy::Released)
    }
}

/// Waits that were ended.
#[derive(Debug, Default)]
pub struct Expired {
    /// The jobs, as they now are.
    pub jobs: Vec<JobRecord>,
    /// Jobs whose place changed because of it.
    pub followed: Vec<Followed>,
    /// Whether there may be more.
    pub more: bool,
}

/// What a sweep did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many keys were forgotten.
    pub removed: u64,
    /// Where to go on; `None` after the last key.
    pub next: Option<SignalKey>,
}
