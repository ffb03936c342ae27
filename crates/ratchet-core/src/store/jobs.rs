use async_trait::async_trait;

use crate::batch::{NewBatch, tie_child};
use crate::error::StoreError;
use crate::flow::{Edge, JobFlags, link};
use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::limits;
use crate::name::{BusinessKey, IdempotencyKey};
use crate::record::JobRecord;
use crate::spec::NewJob;

/// Storing jobs and reading them back.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Stores the jobs of all units atomically. Returns the outcome of each unit, in order.
    ///
    /// A unit is stored as a whole or refused as a whole; a refused unit changes nothing and does not affect the others. When a
    /// call returns `Err`, nothing of it was stored, except after [`Unavailable`](crate::ErrorKind::Unavailable), when the
    /// reply to the commit may have been lost. Submitting the same units again is then safe: a unit whose jobs are
    /// already stored is reported as created.
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError>;

    /// Returns jobs by id, archived ones too, in the order of the ids; unknown ids are left out.
    async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError>;

    /// Returns the live job that holds a business key.
    async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError>;

    /// Returns the job that was first submitted with an idempotency key, even if it was deleted since.
    async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError>;

    /// Deletes a terminal job with its tags, attempts, alerts and log. Returns `false` if there is none.
    ///
    /// Its idempotency key stays taken. [`Conflict`](crate::ErrorKind::Conflict) if the job is live, if a live job waits for it or
    /// takes its input from it, and if a failed job needs it when it is retried.
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
    /// The batch that one of the jobs stands for; others may be its children. If the idempotency key of that job was used
    /// before, nothing is stored, and the earlier one stands for all. A child whose key was used before is left out.
    pub batch: Option<NewBatch>,
}

impl SubmitUnit {
    /// Jobs that have nothing to do with each other but that all or none of them are stored.
    pub const fn of(jobs: Vec<NewJob>) -> Self {
        Self { jobs, edges: Vec::new(), batch: None }
    }

    /// Jobs that hang on each other.
    ///
    /// # Errors
    /// See [`link`](crate::flow::link).
    pub fn workflow(mut jobs: Vec<NewJob>, edges: Vec<Edge>) -> Result<Self, InvalidInput> {
        link(&mut jobs, &edges)?;
        Ok(Self { jobs, edges, batch: None })
    }

    /// The same with a batch: the first job stands for it, and these are its children, besides what depends on the first.
    ///
    /// # Errors
    /// See [`tie_child`]; and if there are more children than one submit may have.
    pub fn with_batch(mut self, batch: NewBatch, children: Vec<NewJob>) -> Result<Self, InvalidInput> {
        limits::check_submit_count(children.len())?;
        if let Some(parent) = self.jobs.first_mut() {
            batch.tie_parent(parent);
        }
        for mut child in children {
            tie_child(batch.id, &mut child)?;
            self.jobs.push(child);
        }
        self.batch = Some(batch);
        Ok(self)
    }

    /// How many of these jobs are children of the batch.
    pub fn count_children<'a>(batch: JobId, jobs: impl IntoIterator<Item = &'a NewJob>) -> u64 {
        let is_child = |job: &&NewJob| job.parent == Some(batch) && job.flow.has(JobFlags::BATCH_CHILD);
        jobs.into_iter().filter(is_child).map(|_| 1).sum()
    }

    /// Whether its jobs belong together, so that one stands for all.
    pub fn is_one_thing(&self) -> bool {
        !self.edges.is_empty() && self.batch.is_none()
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
