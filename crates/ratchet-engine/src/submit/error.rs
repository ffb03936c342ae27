//! The reasons for refusing a submit.

use std::fmt;

use ratchet_core::{BusinessKey, ErrorKind, InvalidInput, JobFlags, JobId, JobRecord, StoreError};

use crate::protect::authorizer::Denied;
use crate::protect::policy::PolicyRefusal;

/// The reason for refusing a submit.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// An option or the payload is out of bounds; nothing was written.
    #[error("the job was refused: {0}")]
    Invalid(InvalidInput),
    /// A live job or a schedule owns the business key; nothing was written.
    #[error("{}", duplicate_text(business_key, *holder, of.as_deref(), *held_by))]
    #[non_exhaustive]
    Duplicate {
        /// The key.
        business_key: BusinessKey,
        /// The job or the schedule that owns it.
        holder: JobId,
        /// The job that asked for it, if several were submitted together.
        of: Option<String>,
        /// Whether the owner is a job or a schedule.
        held_by: SubmittedKind,
    },
    /// An earlier submit with the same idempotency key created something of another kind; nothing was written.
    #[error("an earlier submit with this idempotency key made {existing} {id}, not a {expected}; use another key")]
    #[non_exhaustive]
    IdempotencyKeyReused {
        /// The id of what the earlier submit created.
        id: JobId,
        /// The kind of what the earlier submit created.
        existing: SubmittedKind,
        /// The kind of what this submit would have created.
        expected: SubmittedKind,
    },
    /// The job policy does not allow the job; nothing was written.
    #[error("the job policy refused the job: {0}")]
    Refused(PolicyRefusal),
    /// The caller may not submit the job; nothing was written.
    #[error("the job was refused: {0}")]
    Denied(Denied),
    /// The store failed, or refused the job.
    #[error(transparent)]
    Store(StoreError),
}

/// The kind of thing that a submit creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SubmittedKind {
    /// A job, alone or with the jobs that follow it.
    Job,
    /// A workflow of named steps.
    Workflow,
    /// A batch.
    Batch,
    /// A schedule.
    Schedule,
}

impl SubmittedKind {
    /// Returns the kind of the submit that has this job as its first.
    pub(super) fn of(job: &JobRecord) -> Self {
        match () {
            () if job.flow.has(JobFlags::BATCH) => Self::Batch,
            () if job.step.is_some() => Self::Workflow,
            () => Self::Job,
        }
    }
}

impl fmt::Display for SubmittedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Job => "job",
            Self::Workflow => "workflow",
            Self::Batch => "batch",
            Self::Schedule => "schedule",
        })
    }
}

impl From<InvalidInput> for SubmitError {
    fn from(refused: InvalidInput) -> Self {
        Self::Invalid(refused)
    }
}

impl From<PolicyRefusal> for SubmitError {
    fn from(refused: PolicyRefusal) -> Self {
        Self::Refused(refused)
    }
}

impl From<Denied> for SubmitError {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl From<StoreError> for SubmitError {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            ErrorKind::Duplicate { business_key, holder } => {
                let (of, held_by) = (None, SubmittedKind::Job);
                Self::Duplicate { business_key: business_key.clone(), holder: *holder, of, held_by }
            }
            _ => Self::Store(error),
        }
    }
}

fn duplicate_text(key: &BusinessKey, holder: JobId, of: Option<&str>, held_by: SubmittedKind) -> String {
    let of = of.map_or_else(String::new, |of| format!(" of {of}"));
    let advice = match held_by {
        SubmittedKind::Schedule => "cancel that, or use another key",
        _ => "wait for it, cancel it or replace it",
    };
    format!("the business key {:?}{of} is held by {held_by} {holder}; {advice}", key.as_str())
}
