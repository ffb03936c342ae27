//! Steering one job: cancel, pause, resume, retry, delete.

use ratchet_core::store::Transitioned;
use ratchet_core::{JobFlags, JobId, JobState, StoreError};

use crate::client::Client;
use crate::observe::events::JobEventKind;
use crate::protect::authorizer::Action;

impl Client {
    /// Cancels a live job. A running handler is canceled within a second, and its result is discarded.
    ///
    /// Returns `false` if the job does not exist or has already ended. Canceling the parent job of a batch cancels its children.
    pub async fn cancel(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Cancel, id).await? {
            return Ok(false);
        }
        let changed = self.inner.store.cancel(id).await?;
        let is_batch = changed.as_ref().is_some_and(|changed| changed.job.flow.has(JobFlags::BATCH));
        let canceled = self.after(changed, canceled_event);
        if is_batch {
            self.cancel_children(id).await?;
        }
        Ok(canceled)
    }

    /// Cancels the parent job of a batch. The caller cancels the children.
    pub(crate) async fn cancel_parent(&self, id: JobId) -> Result<bool, StoreError> {
        let changed = self.inner.store.cancel(id).await?;
        Ok(self.after(changed, canceled_event))
    }

    /// Suspends a PENDING or FAILED job. Pausing a paused job is `true` too; anything else is `false`.
    pub async fn pause(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Pause, id).await? {
            return Ok(false);
        }
        let changed = self.inner.store.pause(id).await?;
        if self.after(changed, |_| JobEventKind::Paused) {
            return Ok(true);
        }
        // The store answers the same for a job that is paused already, for one that cannot be paused and for none at all.
        Ok(self.find(id).await?.is_some_and(|job| job.state == JobState::Paused))
    }

    /// Lets a paused job go on from where it was; `false` if it is not paused.
    pub async fn resume(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Resume, id).await? {
            return Ok(false);
        }
        let changed = self.inner.store.resume(id).await?;
        Ok(self.after(changed, |_| JobEventKind::Resumed))
    }

    /// Retries a FAILED job: attempts 0, error cleared, due now; `false` if it has not failed. A job whose signal did not come
    /// waits for it again.
    ///
    /// # Errors
    /// [`Duplicate`](ratchet_core::ErrorKind::Duplicate) if another live job holds its business key by now,
    /// [`Conflict`](ratchet_core::ErrorKind::Conflict) if it is a child of a batch that is over, or never ran because whether
    /// to run could not be told from the job before it.
    pub async fn retry(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Retry, id).await? {
            return Ok(false);
        }
        let changed = self.inner.store.retry(id).await?;
        Ok(self.after(changed, |t| match t.job.state {
            JobState::Waiting => JobEventKind::SignalWaiting,
            _ => JobEventKind::Retrying { error: None, attempt: 0, due: t.job.scheduled_time },
        }))
    }

    /// Deletes a job that has ended, archived or not; `false` if there is none.
    ///
    /// # Errors
    /// [`Conflict`](ratchet_core::ErrorKind::Conflict) if it is live: cancel it first; and if another job waits for it or
    /// would need its result in a retry.
    pub async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Delete, id).await? {
            return Ok(false);
        }
        self.inner.store.delete(id).await
    }

    pub(crate) fn after(
        &self,
        changed: Option<Transitioned>,
        what: impl FnOnce(&Transitioned) -> JobEventKind,
    ) -> bool {
        let Some(transitioned) = changed else { return false };
        self.publish(&transitioned.job, what(&transitioned));
        self.followed(&transitioned.followed, None);
        self.wake_for(&transitioned.followed);
        if transitioned.from.state() == JobState::Running {
            self.wake().revoked();
        } else {
            // It may be due.
            self.wake().work();
            if transitioned.job.state == JobState::Pending {
                self.announce(transitioned.job.spec.priority);
            }
        }
        true
    }
}

/// Returns the event of a cancellation.
pub(crate) fn canceled_event(transitioned: &Transitioned) -> JobEventKind {
    let previous = transitioned.from.state();
    let timing = transitioned.job.timing.filter(|_| previous == JobState::Running);
    JobEventKind::Canceled { previous, duration: timing.map(|timing| timing.duration) }
}
