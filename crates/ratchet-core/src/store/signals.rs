use async_trait::async_trait;

use crate::error::StoreError;
use crate::id::JobId;
use crate::name::SignalKey;
use crate::record::JobRecord;
use crate::settlement::{Followed, FollowedBy};
use crate::signal::{Delivery, SignalRecord};

/// Signals: delivering them, and ending waits whose signal does not come.
///
/// Delivering to a key and beginning to wait for it exclude each other: a signal reaches a waiting job, or is retained for a
/// job to come, and is never lost between the two.
#[async_trait]
pub trait SignalStore: Send + Sync {
    /// Delivers a signal to the WAITING jobs that it addresses and that have none yet, atomically.
    ///
    /// The first signal of a job counts: a later one, and one for a job that is unknown or does not wait, changes nothing.
    /// A job that waits for nothing else is released. If no job waits for the key, the signal is retained for
    /// [`keep_for`](Delivery::keep_for), unless one is retained already, and the first job that begins to wait for the key
    /// receives it.
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError>;

    /// Ends up to `limit` WAITING jobs whose signal did not come in time, atomically: each becomes FAILED with all that
    /// follows from it (business key, alert, callback, dependents).
    ///
    /// `limit` is 1 to [`PAGE_LIMIT_MAX`](crate::page::PAGE_LIMIT_MAX), else [`Invalid`](crate::ErrorKind::Invalid).
    async fn expire(&self, limit: usize) -> Result<Expired, StoreError>;

    /// Returns what these jobs wait or waited for, in the order of the ids; jobs that never did are left out.
    async fn signals(&self, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError>;

    /// Examines up to `limit` keys after `after`, in their order, and removes what the store has retained for keys that no
    /// longer need it. A store whose database expires such entries by itself removes none here.
    async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError>;
}

/// The result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delivered {
    /// The jobs that received it: [`Released`](FollowedBy::Released), or [`Signaled`](FollowedBy::Signaled) if they wait on.
    pub jobs: Vec<Followed>,
    /// Whether it is retained for a job to come.
    pub kept: bool,
}

impl Delivered {
    /// Returns the jobs that can run now.
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

/// The result of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Swept {
    /// The number of keys that were removed.
    pub removed: u64,
    /// The key after which the sweep goes on; `None` after the last key.
    pub next: Option<SignalKey>,
}
