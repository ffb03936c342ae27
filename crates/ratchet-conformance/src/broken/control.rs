use async_trait::async_trait;
use ratchet_core::page::JobFilter;
use ratchet_core::store::{ControlStore, Replacement, SubmitUnit, Transitioned};
use ratchet_core::{Fence, JobId, JobState, NewJob, StoreError};

use super::{BrokenStore, Flaw};

#[async_trait]
impl ControlStore for BrokenStore {
    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::ControlsNothing) {
            return Ok(None);
        }
        let before = self.inner_job(id).await;
        let done = self.inner.cancel(id).await?;
        if let (Flaw::EndsPermitsEarly, Some(job)) = (self.flaw, before)
            && let Some(node) = job.picked_by
        {
            self.inner.release_permits(&[Fence { job_id: id, version: job.version, node }]).await?;
        }
        self.answer(id, done).await
    }

    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::ControlsNothing) {
            return Ok(None);
        }
        let done = self.inner.pause(id).await?;
        self.answer(id, done).await
    }

    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::ControlsNothing) {
            return Ok(None);
        }
        let mut done = self.inner.resume(id).await?;
        if self.has(Flaw::ResumeRevives)
            && let Some(done) = &mut done
            && done.job.state == JobState::Failed
            && let Some(revived) = self.inner.retry(id).await?
        {
            done.job = revived.job;
        }
        self.answer(id, done).await
    }

    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let before = self.inner_job(id).await;
        let mut done = match self.inner.retry(id).await {
            Err(error) if self.swallows_refusal(&error) => None,
            done => done?,
        };
        if self.has(Flaw::RetriesUnsignaled)
            && let Some(done) = &mut done
            && let Some(released) = self.inner.release(id).await?
        {
            done.job = released.job;
        }
        if self.has(Flaw::RevivesNothing) {
            for revived in done.iter().flat_map(|done| &done.followed) {
                self.inner.cancel(revived.id).await?;
            }
        }
        if let (Some(before), Some(done)) = (before, &done) {
            let mut seen = self.seen();
            seen.errors.insert(id, before.last_error);
            seen.versions.insert(id, done.job.version);
        }
        self.answer(id, done).await
    }

    async fn release(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::ControlsNothing) {
            return Ok(None);
        }
        let done = self.inner.release(id).await?;
        self.seen().released.insert(id);
        self.answer(id, done).await
    }

    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
        let mut new = new.clone();
        self.spoil(&mut new).await;
        if !self.has(Flaw::ReplacesInSteps) {
            return self.inner.replace(old, &new).await;
        }
        let canceled = self.inner.cancel(old).await?;
        let outcome = self.inner.submit(&[SubmitUnit::of(vec![new])]).await?.remove(0)?;
        Ok(canceled.map_or(Replacement::Existing(outcome[0].id()), Replacement::Replaced))
    }
}

impl BrokenStore {
    async fn answer(&self, id: JobId, done: Option<Transitioned>) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::NoGuard) && done.is_none() {
            let job = match self.inner_job(id).await {
                Some(job) => Some(job),
                None => self.inner.list(&JobFilter::default(), None, 1).await?.items.pop(),
            };
            return Ok(job.map(|job| Transitioned { from: job.place(), job, followed: Vec::new() }));
        }
        Ok(done.map(|done| Transitioned { job: self.shown(done.job.clone()), ..done }))
    }
}
