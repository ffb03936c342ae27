//! Following a job that was submitted.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use ratchet_core::store::Submitted;
use ratchet_core::{ErrorKind, JobId, JobRecord, JobState, JsonText, StoreError};
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::observe::events::JobEventKind;
use crate::protect::codec::CodecError;

/// A job that was submitted, and the type of its result.
pub struct JobHandle<T> {
    client: Client,
    id: JobId,
    duplicate: bool,
    _result: PhantomData<fn() -> T>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The job failed for good.
    #[error("job {id} failed: {error}")]
    Failed {
        /// The job.
        id: JobId,
        /// Its sanitized error.
        error: String,
    },
    /// The job was canceled.
    #[error("job {id} was canceled")]
    Canceled {
        /// The job.
        id: JobId,
        /// The job that replaced it, if one did.
        superseded_by: Option<JobId>,
    },
    /// The result is there but is not what the handle's type expects.
    #[error("the result of job {id} cannot be read: {reason}")]
    Unreadable {
        /// The job.
        id: JobId,
        /// What the reader said.
        reason: serde_json::Error,
    },
    /// The result is there but cannot be decoded.
    #[error("the result of job {id} cannot be decoded: {reason}")]
    Undecodable {
        /// The job.
        id: JobId,
        /// Why.
        reason: CodecError,
    },
    /// The store could not say; of kind [`NotFound`](ErrorKind::NotFound) if there is no such job.
    #[error(transparent)]
    Store(#[from] StoreError),
}

const LOOK_AGAIN_MIN: Duration = Duration::from_millis(10);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(500);

impl<T> JobHandle<T> {
    pub(crate) fn new(client: Client, submitted: Submitted) -> Self {
        let duplicate = matches!(submitted, Submitted::Existing(_));
        Self { client, id: submitted.id(), duplicate, _result: PhantomData }
    }

    /// The job's id.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Whether an earlier job with the same idempotency key stands for this submit.
    pub fn is_duplicate(&self) -> bool {
        self.duplicate
    }

    /// The job as it stands now.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if it was deleted, or its transaction was rolled back.
    pub async fn record(&self) -> Result<JobRecord, StoreError> {
        let found = self.client.find(self.id).await?;
        found.ok_or_else(|| {
            let problem = "there is no such job; it was deleted (a success is after a few seconds if `retention.succeeded` is zero), or the transaction that submitted it was rolled back or is not committed yet";
            StoreError::new(ErrorKind::NotFound, format!("reading job {}", self.id), problem)
        })
    }

    /// Where the job stands now.
    pub async fn status(&self) -> Result<JobState, StoreError> {
        Ok(self.record().await?.state)
    }

    /// Waits until the job is terminal, wherever it runs.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) as [`record`](Self::record). With a retention of zero a success stays for a few seconds, so
    /// that a handle that is waiting sees it; one that begins to wait later finds nothing.
    pub async fn wait(&self) -> Result<JobRecord, StoreError> {
        // Subscribed before the first look, so that no end falls in between.
        let mut events = self.client.events();
        let mut look_again = LOOK_AGAIN_MIN;
        loop {
            let record = self.record().await?;
            if record.state.is_terminal() {
                return Ok(record);
            }
            let ended_here = async {
                while let Some(event) = events.next().await {
                    let terminal = matches!(
                        event.what,
                        JobEventKind::Completed { .. }
                            | JobEventKind::DeadLettered { .. }
                            | JobEventKind::Canceled { .. }
                            | JobEventKind::CanceledBy { .. }
                    );
                    if event.job_id == self.id && terminal {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            };
            // The job may run elsewhere, where no event tells us.
            if tokio::time::timeout(look_again, ended_here).await.is_err() {
                look_again = (look_again * 2).min(LOOK_AGAIN_MAX);
            }
        }
    }
}

impl<T: DeserializeOwned> JobHandle<T> {
    /// Waits for the job and reads its result.
    pub async fn result(&self) -> Result<T, ResultError> {
        let record = self.wait().await?;
        let id = self.id;
        match record.state {
            JobState::Failed => Err(ResultError::Failed {
                id,
                error: record.last_error.unwrap_or_else(|| "no error was recorded".into()),
            }),
            JobState::Canceled => Err(ResultError::Canceled { id, superseded_by: record.superseded_by }),
            JobState::Pending | JobState::Running | JobState::Waiting | JobState::Paused | JobState::Succeeded => {
                debug_assert_eq!(record.state, JobState::Succeeded, "wait returns terminal jobs");
                let stored = record.result.unwrap_or_else(JsonText::null);
                let result = self.client.decoded(&stored).map_err(|reason| ResultError::Undecodable { id, reason })?;
                result.decode().map_err(|reason| ResultError::Unreadable { id, reason })
            }
        }
    }
}

impl<T> Clone for JobHandle<T> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), id: self.id, duplicate: self.duplicate, _result: PhantomData }
    }
}

impl<T> fmt::Debug for JobHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle").field("id", &self.id).field("duplicate", &self.duplicate).finish_non_exhaustive()
    }
}
