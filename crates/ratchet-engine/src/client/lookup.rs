//! Reading one job: its record, attempts and alerts.

use ratchet_core::store::LastAttempts;
use ratchet_core::{AttemptRecord, JobId, JobRecord, StoreError};

use crate::client::Client;
use crate::protect::authorizer::Action;

impl Client {
    /// Returns the job as it is now, or as it was when it was archived.
    pub async fn find(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        Ok(self.inner.store.find(&[id]).await?.pop().filter(|job| self.reads(job)))
    }

    /// Returns the attempts of a job, oldest first.
    pub async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(Vec::new());
        }
        self.inner.store.attempts(id).await
    }

    /// Returns the last attempts of a job before that of a version, newest first, and the number of all that are recorded;
    /// `limit` is 1 to 1,000.
    pub async fn last_attempts(
        &self,
        id: JobId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LastAttempts, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(LastAttempts::default());
        }
        self.inner.store.last_attempts(id, before, limit).await
    }

    /// Returns the number of alerts that were recorded for a job: one for each error that made it a dead letter, at most one an
    /// hour.
    pub async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(0);
        }
        self.inner.store.alert_count(id).await
    }
}
