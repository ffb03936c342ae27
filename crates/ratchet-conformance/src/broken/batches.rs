use ratchet_core::batch::{Batch, ProgressEvery};
use ratchet_core::error::ErrorKind;
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::store::{CanceledChildren, StoreDecorator, SubmitUnit, Submitted};
use ratchet_core::{Followed, JobId, NewJob, Store, StoreError};

use super::{Broken, Flaw, Layer};

#[derive(Debug)]
pub(super) enum Batches {}

impl StoreDecorator for Layer<Batches> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let mut spoiled = children.to_vec();
        for child in &mut spoiled {
            self.spoil(child).await;
        }
        if self.has(Flaw::SplitsUnits) {
            let mut submitted = Vec::new();
            for child in &spoiled {
                submitted.extend(self.good.extend_batch(id, std::slice::from_ref(child)).await?);
            }
            return Ok(submitted);
        }
        let extended = self.good.extend_batch(id, &spoiled).await;
        match self.flaw {
            Flaw::ExtendsAnything if extended.is_err() => self.good.submit(&[SubmitUnit::of(spoiled)]).await?.remove(0),
            Flaw::CountsChunksTwice if extended.is_ok() => {
                *self.seen().extended.entry(id).or_default() += children.len() as u64;
                extended
            }
            _ => extended,
        }
    }

    async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError> {
        if self.has(Flaw::SealsNothing) {
            return Ok(Vec::new());
        }
        self.good.seal_batch(id).await
    }

    async fn find_batches(&self, ids: &[JobId]) -> Result<Vec<Batch>, StoreError> {
        let mut found = self.good.find_batches(ids).await?;
        if self.has(Flaw::FindsNeighbors) && found.len() < ids.len() {
            found = self.good.list_batches(None, 2).await?.items;
        }
        Ok(found.into_iter().map(|batch| self.shown_batch(batch)).collect())
    }

    async fn list_batches(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<Batch>, StoreError> {
        let after = after.filter(|_| !self.has(Flaw::ForgetsCursor));
        let limit = if self.has(Flaw::AnyLimit) { limit.clamp(1, 1_000) } else { limit };
        let mut page = self.good.list_batches(after, limit).await?;
        if self.has(Flaw::ListsOldestFirst) {
            page.items.reverse();
        }
        Ok(page)
    }

    async fn cancel_children(
        &self,
        id: JobId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<CanceledChildren, StoreError> {
        match self.flaw {
            Flaw::SparesChildren => Ok(CanceledChildren::default()),
            Flaw::CancelsAllAtOnce => self.good.cancel_children(id, after, 100).await,
            _ => self.good.cancel_children(id, after, limit).await,
        }
    }
}

impl Broken {
    /// Spoils the batch of a unit.
    pub(super) fn spoil_batch(&self, unit: &mut SubmitUnit) {
        match (self.flaw, &mut unit.batch) {
            (Flaw::LosesBatches, batch) => *batch = None,
            (Flaw::SealsEarly, Some(batch)) => batch.sealed = true,
            (Flaw::LosesHooks, Some(batch)) => batch.hook = None,
            (Flaw::TellsAlways, Some(batch)) => {
                if let Some(hook) = &mut batch.hook {
                    hook.every = ProgressEvery::Items(1);
                }
            }
            _ => {}
        }
    }

    /// A refused retry of a child, as this store answers it.
    pub(super) fn swallows_refusal(&self, error: &StoreError) -> bool {
        self.has(Flaw::RetriesAnyChild) && *error.kind() == ErrorKind::Conflict
    }

    fn shown_batch(&self, mut batch: Batch) -> Batch {
        let counts = &mut batch.counts;
        match self.flaw {
            Flaw::CountsNoChildren => counts.succeeded = 0,
            Flaw::CountsFailuresAsSuccess => {
                counts.succeeded += counts.failed;
                counts.failed = 0;
            }
            Flaw::CountsAttempts => {
                let settled: u64 = self.seen().settled.values().sum();
                counts.succeeded = counts.succeeded.max(settled);
            }
            Flaw::LosesBatchTimes => {
                counts.child_execution = std::time::Duration::ZERO;
                batch.completed_at = None;
            }
            Flaw::CountsChunksTwice => {
                counts.total = counts.total.max(self.seen().extended.get(&batch.id).copied().unwrap_or(0));
            }
            Flaw::CountsStandIns => counts.total += 1,
            Flaw::NeverThrough => batch.canceling |= batch.completed_at.is_some(),
            _ => {}
        }
        batch
    }
}
