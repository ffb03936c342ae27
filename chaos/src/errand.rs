//! What a node does beside running jobs, so that it can die in the middle of it.
//!
//! An errand may be done again after a death, as a program does that starts anew: it finds out how far it came.

use anyhow::{Context, Result};
use futures_util::stream;
use ratchet::{Client, FeedError, IdempotencyKey, JobId, ProgressEvery};
use serde::{Deserialize, Serialize};

use crate::deal::{Deal, Work};

/// Something to do for a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Errand {
    /// Submits a batch of so many children, which tells of every second one.
    Batch {
        /// How many.
        children: u64,
    },
    /// Streams a batch of so many children, or goes on with it.
    Stream {
        /// How many.
        children: u64,
        /// How many at a time.
        chunk: usize,
    },
    /// Cancels a batch.
    Cancel(JobId),
    /// Sends their signals to those of these jobs that have not got theirs. What a signal says is the job's place here.
    Signal(Vec<JobId>),
    /// Sends a signal, and only then submits the job that awaits it.
    SignalFirst,
}

/// The number of the job that follows a batch; those of children are less.
pub const AFTER: u64 = 1_000_000;
/// The number of the jobs that tell of a batch's progress.
pub const PROGRESS: u64 = 1_000_001;

/// The key of the signal to the job with this number.
pub fn key(serial: u64) -> String {
    format!("go:{serial}")
}

/// A job that takes no time.
pub fn quick(serial: u64) -> Deal {
    Deal { serial, work: Work::Sleep(1) }
}

/// A job that wants a signal which says its number.
pub fn signaled(serial: u64) -> Deal {
    Deal { serial, work: Work::Signaled }
}

impl Errand {
    /// As an argument of `chaos-node`.
    pub fn to_arg(&self) -> String {
        serde_json::to_string(self).expect("an errand is plain data")
    }

    /// From an argument of `chaos-node`.
    ///
    /// # Errors
    /// If it is not one.
    pub fn from_arg(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Does it, or what is left of it.
    ///
    /// # Errors
    /// If something is refused that should not be.
    pub async fn run(self, client: &Client) -> Result<()> {
        match self {
            Self::Batch { children } => {
                let batch = client.batch().idempotency_key("errand").children((0..children).map(quick));
                let batch = batch.then_on_batch_success(quick(AFTER));
                batch.on_progress(quick(PROGRESS), ProgressEvery::Items(2)).submit().await?;
            }
            Self::Stream { children, chunk } => stream_rest(client, children, chunk).await?,
            Self::Cancel(batch) => {
                client.cancel_batch(batch).await?;
            }
            Self::Signal(jobs) => {
                for (serial, job) in (0..).zip(jobs) {
                    let awaited = client.awaited_signal(job).await?.context("each awaits one")?;
                    if awaited.signal.is_none() {
                        client.signal(awaited.key).payload(&serial).send().await?;
                    }
                }
            }
            Self::SignalFirst => {
                let once = IdempotencyKey::new("errand")?;
                if client.store().find_by_idempotency_key(&once).await?.is_none() {
                    client.signal(key(0)).payload(&0).send().await?;
                    client.enqueue(signaled(0)).await_signal(key(0), None).idempotency_key(once).submit().await?;
                }
            }
        }
        Ok(())
    }
}

async fn stream_rest(client: &Client, children: u64, chunk: usize) -> Result<()> {
    let from = |first: u64| stream::iter((first..children).map(quick));
    let batch = client.batch().idempotency_key("errand").chunk(chunk).then_on_batch_success(quick(AFTER));
    let open = match batch.stream(from(0)).await {
        Ok(_) => return Ok(()),
        // An earlier life has begun it, and says so.
        Err(FeedError { batch: Some(id), added: 0, .. }) => client.open_batch(id).await?,
        Err(error) => return Err(error.into()),
    };
    // Chunks are stored in their order and as a whole, so that their number says where to go on.
    open.extend(from(open.handle().record().await?.counts.total)).await?;
    open.seal().await?;
    Ok(())
}
