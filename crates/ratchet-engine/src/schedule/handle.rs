use ratchet_core::schedule::ScheduleRecord;
use ratchet_core::store::Submitted;
use ratchet_core::{ErrorKind, JobId, StoreError, Timestamp};

use crate::client::Client;
use crate::client::handle::JobHandle;

/// A schedule that was created or declared.
#[derive(Debug, Clone)]
pub struct ScheduleHandle {
    client: Client,
    id: JobId,
}

impl ScheduleHandle {
    pub(crate) fn new(client: Client, id: JobId) -> Self {
        Self { client, id }
    }

    /// The schedule's id; the jobs that it fires have it as their parent.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// The schedule as it stands.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if it was canceled.
    pub async fn record(&self) -> Result<ScheduleRecord, StoreError> {
        self.client.find_schedule(self.id).await?.ok_or_else(|| {
            let problem = "there is no such schedule; it was canceled or retired";
            StoreError::new(ErrorKind::NotFound, format!("reading schedule {}", self.id), problem)
        })
    }

    /// When it fires next, `count` times, as it stands; empty while it is paused.
    pub async fn next_fires(&self, count: usize) -> Result<Vec<Timestamp>, StoreError> {
        let record = self.record().await?;
        Ok(if record.paused { Vec::new() } else { record.next_fires(count) })
    }

    /// Suspends it; `false` if it is paused already.
    pub async fn pause(&self) -> Result<bool, StoreError> {
        self.client.pause_schedule(self.id).await
    }

    /// Lets it go on with its next future fire; `false` if it is not paused.
    pub async fn resume(&self) -> Result<bool, StoreError> {
        self.client.resume_schedule(self.id).await
    }

    /// Fires it now, beside its own times and whatever else of it runs: overlaps are for its own fires.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if it was canceled.
    pub async fn run_now<T>(&self) -> Result<JobHandle<T>, StoreError> {
        let id = self.client.run_schedule_now(self.id).await?.ok_or_else(|| {
            let problem = "there is no such schedule; it was canceled or retired";
            StoreError::new(ErrorKind::NotFound, format!("firing schedule {}", self.id), problem)
        })?;
        Ok(JobHandle::new(self.client.clone(), Submitted::Created(id)))
    }

    /// Ends it; the jobs that it has fired stay. `false` if it was ended before.
    pub async fn cancel(&self) -> Result<bool, StoreError> {
        self.client.cancel_schedule(self.id).await
    }
}
