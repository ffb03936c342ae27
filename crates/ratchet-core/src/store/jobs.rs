use async_trait::async_trait;

use crate::error::StoreError;
use crate::flow::{Edge, link};
use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::name::{BusinessKey, IdempotencyKey};
use crate::record::JobRecord;
use crate::spec::NewJob;

/// Putting jobs in and reading them back.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Stores the jobs of all units in one transaction and says, for each unit, what became of it.
    ///
    /// A unit stands or falls as a whole; a refused unit changes nothing and does not harm its neighbours. When a call
    /// returns `Err`, nothing of it was stored, except after [`Unavailable`](crate::ErrorKind::Unavailable), when the
    /// reply to the commit may have been lost. Submitting the same units again is then safe: a unit whose jobs are
    /// already there is reported as created.
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError>;

    /// Reads jobs by id, in the order of the ids; unknown ids are left out.
    async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError>;

    /// The live job that holds a business key.
    async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError>;

    /// The job that was first submitted with an idempotency key, even if it was deleted since.
    async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError>;

    /// Deletes a terminal job with its tags, attempts and alerts; `false` if there is none.
    ///
    /// Its idempotency key stays taken. A live job, and one that a live job waits for or has its input from, is a
    /// [`Conflict`](crate::ErrorKind::Conflict).
    async fn delete(&self, id: JobId) -> Result<bool, StoreError>;
}

/// Jobs that are stored together or not at all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SubmitUnit {
    /// The jobs, already checked.
    pub jobs: Vec<NewJob>,
    /// What ties them together. A unit with edges is one thing: if the idempotency key of one of its jobs was used
    /// before, nothing of it is stored, and that job stands for every one of them.
    pub edges: Vec<Edge>,
}

impl SubmitUnit {
    /// Jobs that have nothing to do with each other but that all or none of them are stored.
    pub const fn of(jobs: Vec<NewJob>) -> Self {
        Self { jobs, edges: Vec::new() }
    }

    /// Jobs that hang on each other.
    ///
    /// # Errors
    /// See [`link`](crate::flow::link).
    pub fn workflow(mut jobs: Vec<NewJob>, edges: Vec<Edge>) -> Result<Self, InvalidInput> {
        link(&mut jobs, &edges)?;
        Ok(Self { jobs, edges })
    }

    /// Whether its jobs belong together, so that one stands for all.
    pub fn is_one_thing(&self) -> bool {
        !self.edges.is_empty()
    }
}

/// What became of a unit: one entry per job in order, or why it was refused as a whole.
pub type SubmitOutcome = Result<Vec<Submitted>, StoreError>;

/// What became of one job of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// It was stored.
    Created(JobId),
    /// An earlier job with the same idempotency key stands for it.
    Existing(JobId),
}

impl Submitted {
    /// The job to follow.
    pub const fn id(self) -> JobId {
        match self {
            Self::Created(id) | Self::Existing(id) => id,
        }
    }
}
