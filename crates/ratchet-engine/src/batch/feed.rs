use std::pin::pin;
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;
use ratchet_core::batch::tie_child;
use ratchet_core::{ErrorKind, InvalidInput, JobId, NewJob, StoreError};

use super::handle::BatchHandle;
use crate::client::Client;
use crate::enqueue::{SubmitError, Waking};
use crate::step::{IntoStep, Step};

/// A batch that takes children.
#[derive(Debug, Clone)]
pub struct OpenBatch {
    handle: BatchHandle,
    chunk: usize,
}

/// The children of a stream could not all be stored.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub struct FeedError {
    /// The batch that was left open; `None` if it was not stored.
    pub batch: Option<JobId>,
    /// How many children this call has added to it.
    pub added: u64,
    /// What was wrong.
    #[source]
    pub source: SubmitError,
}

impl FeedError {
    pub(crate) fn unopened(source: SubmitError) -> Self {
        Self { batch: None, added: 0, source }
    }

    pub(crate) fn left_open(batch: JobId, added: u64, source: SubmitError) -> Self {
        Self { batch: Some(batch), added, source }
    }

    fn text(&self) -> String {
        match self.batch {
            None => "the batch could not be stored".to_owned(),
            Some(batch) => {
                format!("batch {batch} is left open after {} more children; go on with open_batch", self.added)
            }
        }
    }
}

/// Tries of a chunk that a busy or unreachable database refused.
const TRIES: u32 = 8;

impl OpenBatch {
    pub(crate) const CHUNK_DEFAULT: usize = 500;

    pub(crate) fn new(handle: BatchHandle, chunk: usize) -> Self {
        Self { handle, chunk }
    }

    /// The batch, to follow it.
    pub fn handle(&self) -> BatchHandle {
        self.handle.clone()
    }

    /// Adds children as the stream gives them, some at a time; says how many. The batch stays open.
    ///
    /// The next ones are asked for only when those before are stored.
    ///
    /// # Errors
    /// [`FeedError`] says how many were added before it. A chunk is stored as a whole or not at all.
    pub async fn extend<S>(&self, children: S) -> Result<u64, FeedError>
    where
        S: Stream + Send,
        S::Item: IntoStep,
    {
        let mut children = pin!(children);
        let mut added = 0;
        let mut chunk = Vec::with_capacity(self.chunk);
        loop {
            let next = children.next().await;
            let ended = next.is_none();
            if let Some(step) = next {
                let at = added + chunk.len() as u64;
                let job = child_job(at, step.into_step()).and_then(|mut job| {
                    tie_child(self.handle.id(), &mut job)?;
                    Ok(job)
                });
                match job {
                    Ok(job) => chunk.push(job),
                    Err(refused) => return Err(FeedError::left_open(self.handle.id(), added, refused.into())),
                }
            }
            if chunk.len() == self.chunk || (ended && !chunk.is_empty()) {
                let stored = self.store(&chunk).await;
                stored.map_err(|error| FeedError::left_open(self.handle.id(), added, error.into()))?;
                added += chunk.len() as u64;
                chunk.clear();
            }
            if ended {
                return Ok(added);
            }
        }
    }

    /// Stores a chunk. Its ids were made once, so that storing it again after a lost reply is safe.
    async fn store(&self, chunk: &[NewJob]) -> Result<(), StoreError> {
        let client = self.client();
        let mut tries = 1;
        loop {
            match client.store().extend_batch(self.handle.id(), chunk).await {
                Err(error) if error.is_passing() && tries < TRIES => {
                    tokio::time::sleep(Duration::from_millis(10) * 2_u32.pow(tries)).await;
                    tries += 1;
                }
                stored => {
                    stored?;
                    client.submitted(Waking::of_ready(chunk));
                    return Ok(());
                }
            }
        }
    }

    /// Says that no further children will come: when the last one has ended, or at once if all have, the batch ends.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) if it was cancelled.
    pub async fn seal(&self) -> Result<(), StoreError> {
        self.client().seal_batch(self.handle.id()).await
    }

    /// Cancels the batch with its children; says how many of these had not ended.
    pub async fn cancel(&self) -> Result<u64, StoreError> {
        self.client().cancel_batch(self.handle.id()).await
    }

    fn client(&self) -> &Client {
        self.handle.client()
    }
}

/// The job of a child, checked; errors name which child it is.
pub(crate) fn child_job(at: u64, step: Step) -> Result<NewJob, InvalidInput> {
    let named = |e: InvalidInput| InvalidInput::new(format!("child[{at}].{}", e.field()), e.problem());
    let job = step.into_job().map_err(named)?;
    job.check().map_err(named)?;
    Ok(job)
}

impl Client {
    /// Goes on with a batch that was left open, perhaps by another process.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is no such batch, [`Conflict`](ErrorKind::Conflict) if it takes no
    /// further children.
    pub async fn open_batch(&self, id: JobId) -> Result<OpenBatch, StoreError> {
        let doing = || format!("opening batch {id}");
        let batch = self.batch_record(id).await?;
        let batch = batch.ok_or_else(|| StoreError::new(ErrorKind::NotFound, doing(), "there is no such batch"))?;
        match batch.refusal() {
            Some(problem) => Err(StoreError::new(ErrorKind::Conflict, doing(), problem)),
            None => Ok(OpenBatch::new(self.batch_handle(id), OpenBatch::CHUNK_DEFAULT)),
        }
    }

    /// Says that no further children of a batch will come; sealing a sealed one changes nothing.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is no such batch, [`Conflict`](ErrorKind::Conflict) if it was cancelled.
    pub async fn seal_batch(&self, id: JobId) -> Result<(), StoreError> {
        let followed = self.store().seal_batch(id).await?;
        if self.followed(&followed, None) {
            self.wake().work();
        }
        Ok(())
    }
}
