use ratchet_core::page::JobFilter;
use ratchet_core::store::{Replacement, StoreDecorator, SubmitUnit, Transitioned};
use ratchet_core::{Fence, JobId, JobState, NewJob, Store, StoreError};

use super::{Broken, Flaw, Layer};
use crate::signals::to_job;

#[derive(Debug)]
pub(super) enum Control {}

impl StoreDecorator for Layer<Control> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::ControlsNothing) {
            return Ok(None);
        }
        let before = self.inner_job(id).await;
        let done = self.good.cancel(id).await?;
        if let (Flaw::EndsPermitsEarly, Some(job)) = (self.flaw, before)
            && let Some(node) = job.picked_by
        {
            self.good.release_permits(&[Fence { job_id: id, version: job.version, node }]).await?;
        }
        self.answer(id, done).await
    }

    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::ControlsNothing) {
            return Ok(None);
        }
        let done = self.good.pause(id).await?;
        self.answer(id, done).await
    }

    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::ControlsNothing) {
            return Ok(None);
        }
        let mut done = self.good.resume(id).await?;
        if self.has(Flaw::ResumeRevives)
            && let Some(done) = &mut done
            && done.job.state == JobState::Failed
            && let Some(revived) = self.good.retry(id).await?
        {
            done.job = revived.job;
        }
        self.answer(id, done).await
    }

    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let before = self.inner_job(id).await;
        let mut done = match self.good.retry(id).await {
            Err(error) if self.swallows_refusal(&error) => None,
            done => done?,
        };
        if self.has(Flaw::RetriesUnsignaled)
            && let Some(done) = &mut done
        {
            self.good.deliver(&to_job(id)).await?;
            done.job = self.inner_job(id).await.unwrap_or_else(|| done.job.clone());
        }
        if self.has(Flaw::RevivesNothing) {
            for revived in done.iter().flat_map(|done| &done.followed) {
                self.good.cancel(revived.id).await?;
            }
        }
        if let (Some(before), Some(done)) = (before, &done) {
            let mut seen = self.seen();
            seen.errors.insert(id, before.last_error);
            seen.versions.insert(id, done.job.version);
        }
        self.answer(id, done).await
    }

    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
        let mut new = new.clone();
        self.spoil(&mut new).await;
        if !self.has(Flaw::ReplacesInSteps) {
            return self.good.replace(old, &new).await;
        }
        let canceled = self.good.cancel(old).await?;
        let outcome = self.good.submit(&[SubmitUnit::of(vec![new])]).await?.remove(0)?;
        Ok(canceled.map_or(Replacement::Existing(outcome[0].id()), Replacement::Replaced))
    }
}

impl Broken {
    async fn answer(&self, id: JobId, done: Option<Transitioned>) -> Result<Option<Transitioned>, StoreError> {
        if self.has(Flaw::NoGuard) && done.is_none() {
            let job = match self.inner_job(id).await {
                Some(job) => Some(job),
                None => self.good.list(&JobFilter::default(), None, 1).await?.items.pop(),
            };
            return Ok(job.map(|job| Transitioned { from: job.place(), job, followed: Vec::new() }));
        }
        Ok(done.map(|done| Transitioned { job: self.shown(done.job.clone()), ..done }))
    }
}
