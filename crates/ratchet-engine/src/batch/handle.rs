use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream;
use ratchet_core::page::{JobCursor, JobFilter, ListCursor, Page};
use ratchet_core::store::Submitted;
use ratchet_core::{Batch, BatchProgress, BatchSummary, ErrorKind, JobId, JobRecord, StoreError};

use super::builder::BatchBuilder;
use crate::client::Client;
use crate::client::caller::{Filling, no_page};
use crate::client::handle::{JobHandle, ResultError};
use crate::protect::authorizer::{Action, Scope};

/// A batch that was submitted.
#[derive(Debug, Clone)]
pub struct BatchHandle {
    client: Client,
    submitted: Submitted,
}

/// How far a batch is, as it goes on; see [`BatchHandle::progress`].
pub type ProgressStream = Pin<Box<dyn Stream<Item = Result<BatchProgress, StoreError>> + Send>>;

impl BatchHandle {
    pub(crate) fn new(client: Client, submitted: Submitted) -> Self {
        Self { client, submitted }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The batch's id: that of the job that stands for it.
    pub fn id(&self) -> JobId {
        self.submitted.id()
    }

    /// Whether an earlier batch with the same idempotency key stands for this submit.
    pub fn is_duplicate(&self) -> bool {
        matches!(self.submitted, Submitted::Existing(_))
    }

    /// The job that stands for the batch.
    pub fn job(&self) -> JobHandle<BatchSummary> {
        JobHandle::new(self.client.clone(), self.submitted)
    }

    /// Waits for the last child, and reads what came of all of them.
    ///
    /// # Errors
    /// [`ResultError::Canceled`] if the batch was canceled.
    pub async fn summary(&self) -> Result<BatchSummary, ResultError> {
        self.job().result().await
    }

    /// The batch as it stands.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if it was deleted, or its transaction was rolled back.
    pub async fn record(&self) -> Result<Batch, StoreError> {
        let found = self.client.batch_record(self.id()).await?;
        found.ok_or_else(|| {
            StoreError::new(ErrorKind::NotFound, format!("reading batch {}", self.id()), "there is no such batch")
        })
    }

    /// How far it is: now, and then whenever it has come further, looked for this often, until it has ended.
    ///
    /// Whoever reads slowly misses steps in between, never the last. An error of the database is told and does not end the
    /// stream; that the batch is not there, because it was deleted, does.
    pub fn progress(&self, every: Duration) -> ProgressStream {
        let begin = Some((self.clone(), None::<BatchProgress>, Duration::ZERO));
        Box::pin(stream::unfold(begin, move |reading| async move {
            let (handle, last, mut wait) = reading?;
            if last.is_some_and(|last| last.ended && !last.canceling) {
                return None;
            }
            loop {
                tokio::time::sleep(wait).await;
                wait = every;
                match handle.record().await.map(|batch| batch.progress()) {
                    Ok(now) if last == Some(now) => {}
                    Ok(now) => return Some((Ok(now), Some((handle, Some(now), wait)))),
                    Err(gone) if *gone.kind() == ErrorKind::NotFound => return Some((Err(gone), None)),
                    Err(error) => return Some((Err(error), Some((handle, last, wait)))),
                }
            }
        }))
    }

    /// A page of its children, newest first.
    pub async fn children(
        &self,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError> {
        let filter = JobFilter { parent: Some(self.id()), ..JobFilter::default() };
        self.client.list(&filter, after, limit).await
    }

    /// Cancels the batch with its children; says how many of these had not ended.
    pub async fn cancel(&self) -> Result<u64, StoreError> {
        self.client.cancel_batch(self.id()).await
    }
}

impl Client {
    /// Begins a batch: children follow, [`BatchBuilder::submit`] or [`BatchBuilder::stream`] does it.
    pub fn batch(&self) -> BatchBuilder {
        BatchBuilder::new(self.clone())
    }

    /// A handle to a batch that was submitted earlier, perhaps by another process.
    pub fn batch_handle(&self, id: JobId) -> BatchHandle {
        BatchHandle::new(self.clone(), Submitted::Created(id))
    }

    /// A batch as it stands; `None` if there is none of this id.
    pub async fn batch_record(&self, id: JobId) -> Result<Option<Batch>, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(None);
        }
        Ok(self.store().find_batches(&[id]).await?.pop())
    }

    /// How far a batch is; `None` if there is none of this id.
    pub async fn batch_progress(&self, id: JobId) -> Result<Option<BatchProgress>, StoreError> {
        Ok(self.batch_record(id).await?.map(|batch| batch.progress()))
    }

    /// Batches, newest first, a page at a time. For a caller who may not read them all a page may be short though there is a
    /// next one.
    pub async fn batches(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<Batch>, StoreError> {
        match self.scope() {
            Scope::Everything => return self.store().list_batches(after, limit).await,
            Scope::Nothing => return Ok(no_page()),
            Scope::Of(_) => {}
        }
        let mut filling = Filling::new(after, limit);
        while filling.goes_on() {
            let portion = self.store().list_batches(filling.after(), limit).await?;
            let ids: Vec<_> = portion.items.iter().map(|batch| batch.id).collect();
            let readable = self.readable(&ids).await?;
            filling.add(portion, |batch| batch.id, |batch| readable.contains(&batch.id));
        }
        Ok(filling.page())
    }
}
