use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt as _;
use ratchet_core::batch::tie_child;
use ratchet_core::{ErrorKind, InvalidInput, JobId, NewJob, StoreError};

use super::handle::BatchHandle;
use crate::client::Client;
use crate::job::failure::BoxError;
use crate::protect::authorizer::Action;
use crate::submit::admission::Admitted;
use crate::submit::error::SubmitError;
use crate::submit::step::{IntoStep, Step};
use crate::submit::unit::Waking;

/// A batch that takes children.
#[derive(Debug, Clone)]
pub struct OpenBatch {
    handle: BatchHandle,
    chunk: usize,
}

/// The children of a stream could not all be stored.
#[derive(Debug)]
#[non_exhaustive]
pub struct FeedError {
    /// The batch; `None` if it was not stored.
    pub batch: Option<JobId>,
    /// Whether the batch was left open for further children; not if somebody has sealed or canceled it.
    pub open: bool,
    /// How many children this call has added to it.
    pub added: u64,
    /// What was wrong.
    pub cause: FeedCause,
}

/// Why children could not be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedCause {
    /// The batch or a child was refused, or the database could not be reached.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// Where the children come from has failed.
    #[error("the source of the children failed")]
    Source(#[source] BoxError),
}

impl From<InvalidInput> for FeedCause {
    fn from(refused: InvalidInput) -> Self {
        Self::Submit(refused.into())
    }
}

impl From<StoreError> for FeedCause {
    fn from(error: StoreError) -> Self {
        Self::Submit(error.into())
    }
}

impl FeedError {
    pub(crate) fn unopened(cause: impl Into<FeedCause>) -> Self {
        Self { batch: None, open: false, added: 0, cause: cause.into() }
    }

    pub(crate) fn left_open(batch: JobId, added: u64, cause: impl Into<FeedCause>) -> Self {
        Self { batch: Some(batch), open: true, added, cause: cause.into() }
    }
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch, open, added, cause } = self;
        let more = if *added == 1 { "1 more child was" } else { &format!("{added} more children were") };
        match batch {
            None => write!(f, "the batch could not be stored: {cause}"),
            Some(batch) if *open => {
                write!(f, "{more} added to batch {batch}, which is left open: {cause}; go on with open_batch")
            }
            Some(batch) => write!(f, "{more} added to batch {batch}: {cause}"),
        }
    }
}

impl Error for FeedError {
    /// What the text does not tell yet.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
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
    /// The next ones are asked for only when those before are stored. A stream that can fail goes to
    /// [`try_extend`](Self::try_extend).
    ///
    /// # Errors
    /// [`FeedError`] says how many were added before it. A chunk is stored as a whole or not at all.
    pub async fn extend<S>(&self, children: S) -> Result<u64, FeedError>
    where
        S: Stream + Send,
        S::Item: IntoStep,
    {
        self.try_extend(children.map(Ok::<_, Infallible>)).await
    }

    /// Adds children as a stream that can fail gives them, until it ends or fails.
    ///
    /// # Errors
    /// [`FeedError`] says how many were added before it, those that the stream gave first: what came after them in the chunk
    /// that was not full yet is not stored. The batch stays open.
    pub async fn try_extend<S, C, E>(&self, children: S) -> Result<u64, FeedError>
    where
        S: Stream<Item = Result<C, E>> + Send,
        C: IntoStep,
        E: Into<BoxError>,
    {
        // A key may have led to somebody else's batch.
        if let Err(error) = self.client().may_extend(self.handle.id(), "extending").await {
            return Err(FeedError { open: false, ..FeedError::left_open(self.handle.id(), 0, error) });
        }
        let mut children = pin!(children);
        let mut added = 0;
        let mut chunk = Admitted::none(self.chunk);
        loop {
            let next = children.next().await.map(|next| self.tied(added + chunk.len() as u64, next)).transpose();
            let next = next.map_err(|cause| FeedError::left_open(self.handle.id(), added, cause))?;
            let ended = next.is_none();
            if let Some(child) = next {
                chunk.push(child);
            }
            if chunk.len() == self.chunk || (ended && !chunk.is_empty()) {
                if let Err(error) = self.store(&chunk).await {
                    return Err(self.broken_off(added, error).await);
                }
                added += chunk.len() as u64;
                chunk.clear();
            }
            if ended {
                return Ok(added);
            }
        }
    }

    /// Why children could not be stored, or no more of them be told to come, and whether there is a way to go on.
    pub(super) async fn broken_off(&self, added: u64, error: StoreError) -> FeedError {
        // If it cannot be told, whoever goes on will be told.
        let closed = *error.kind() == ErrorKind::Conflict
            && self.handle.record().await.is_ok_and(|batch| batch.refusal().is_some());
        FeedError { open: !closed, ..FeedError::left_open(self.handle.id(), added, error) }
    }

    /// The job of a child that a stream gave.
    fn tied<C: IntoStep, E: Into<BoxError>>(
        &self,
        at: u64,
        child: Result<C, E>,
    ) -> Result<Admitted<NewJob>, FeedCause> {
        let child = child.map_err(|failed| FeedCause::Source(failed.into()))?;
        let mut job = child_job(at, child.into_step())?;
        tie_child(self.handle.id(), &mut job)?;
        Ok(self.client().admit_child(at, job)?)
    }

    /// Stores a chunk. Its ids were made once, so that storing it again after a lost reply is safe.
    async fn store(&self, chunk: &Admitted<Vec<NewJob>>) -> Result<(), StoreError> {
        let client = self.client();
        let mut tries = 1;
        loop {
            match client.store().extend_batch(self.handle.id(), chunk).await {
                Err(error) if error.is_retryable() && tries < TRIES => {
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
    /// [`Conflict`](ErrorKind::Conflict) if it was canceled.
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
        self.may_extend(id, "opening").await?;
        let batch = self.batch_record(id).await?.ok_or_else(|| no_batch(id, "opening"))?;
        match batch.refusal() {
            Some(problem) => Err(StoreError::new(ErrorKind::Conflict, format!("opening batch {id}"), problem)),
            None => Ok(OpenBatch::new(self.batch_handle(id), OpenBatch::CHUNK_DEFAULT)),
        }
    }

    /// Says that no further children of a batch will come; sealing a sealed one changes nothing.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is no such batch, [`Conflict`](ErrorKind::Conflict) if it was canceled.
    pub async fn seal_batch(&self, id: JobId) -> Result<(), StoreError> {
        self.may_extend(id, "sealing").await?;
        let followed = self.store().seal_batch(id).await?;
        self.followed(&followed, None);
        self.wake_for(&followed);
        Ok(())
    }

    /// Whether the caller may go on with a batch; one that he may not read is none for him.
    async fn may_extend(&self, id: JobId, doing: &str) -> Result<(), StoreError> {
        if self.may(Action::Extend, id).await? { Ok(()) } else { Err(no_batch(id, doing)) }
    }
}

fn no_batch(id: JobId, doing: &str) -> StoreError {
    StoreError::new(ErrorKind::NotFound, format!("{doing} batch {id}"), "there is no such batch")
}
