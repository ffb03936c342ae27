//! Why a submit is refused, told in terms of what was submitted.

use std::collections::HashMap;
use std::fmt;

use ratchet_core::store::{SubmitUnit, Submitted};
use ratchet_core::{BusinessKey, InvalidInput, JobFlags, JobId, JobRecord};

use crate::client::Client;
use crate::submit::enqueue::SubmitError;

/// What a submit makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SubmittedKind {
    /// A job, alone or with what follows it.
    Job,
    /// A workflow of named steps.
    Workflow,
    /// A batch.
    Batch,
    /// A schedule.
    Schedule,
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

impl SubmittedKind {
    /// What was submitted with this job as its first.
    fn of(job: &JobRecord) -> Self {
        match () {
            () if job.flow.has(JobFlags::BATCH) => Self::Batch,
            () if job.step.is_some() => Self::Workflow,
            () => Self::Job,
        }
    }
}

impl Client {
    /// Submits a unit; a business key that is in the way is told with the step or child that asked for it.
    pub(crate) async fn submit_unit(&self, unit: SubmitUnit) -> Result<Vec<Submitted>, SubmitError> {
        let keys = keys(&unit)?;
        match self.submitter().submit(self.admit(unit)?).await.map_err(SubmitError::from) {
            Err(SubmitError::Duplicate { business_key, holder, .. }) => {
                let of = keys.get(&business_key).cloned();
                Err(SubmitError::Duplicate { of, held_by: self.sort_of_holder(holder).await, business_key, holder })
            }
            outcome => outcome,
        }
    }

    /// Whether the holder of a key is a job or a schedule. If the store does not say, it is taken for a job.
    async fn sort_of_holder(&self, holder: JobId) -> SubmittedKind {
        let schedules = self.store().find_schedules(&[holder]).await;
        if schedules.is_ok_and(|found| !found.is_empty()) { SubmittedKind::Schedule } else { SubmittedKind::Job }
    }

    /// Refuses a handle to what an earlier submit with the same idempotency key made, if that is of another sort.
    pub(crate) async fn check_submitted_kind(
        &self,
        submitted: Submitted,
        expected: SubmittedKind,
    ) -> Result<(), SubmitError> {
        let Submitted::Existing(id) = submitted else { return Ok(()) };
        match self.find(id).await?.map(|job| SubmittedKind::of(&job)) {
            Some(existing) if existing != expected => Err(SubmitError::IdempotencyKeyReused { id, existing, expected }),
            _ => Ok(()),
        }
    }
}

/// Who asks for which business key, if there are several jobs.
fn keys(unit: &SubmitUnit) -> Result<HashMap<BusinessKey, String>, InvalidInput> {
    let mut keys: HashMap<BusinessKey, String> = HashMap::new();
    if unit.jobs.len() == 1 {
        return Ok(keys);
    }
    // Where each job is a submit of its own, one of them may stand for an earlier one, and then asks for no key.
    let all_or_none = unit.is_one_thing() || unit.batch.is_some();
    let once = unit.jobs.iter().all(|job| job.idempotency_key.is_none());
    let mut children = 0;
    for (at, job) in unit.jobs.iter().enumerate() {
        let child = children;
        children += usize::from(job.flow.has(JobFlags::BATCH_CHILD));
        let Some(key) = &job.business_key else { continue };
        let name = match &job.step {
            Some(step) => format!("step {:?}", step.as_str()),
            None if job.flow.has(JobFlags::BATCH_CHILD) => format!("child[{child}]"),
            None if job.workflow.is_some() => format!("step[{at}] ({})", job.spec.kind),
            None => format!("job[{at}]"),
        };
        if let Some(first) = keys.insert(key.clone(), name.clone()).filter(|_| all_or_none || once) {
            let problem = format!("is {:?}, and so is that of {first}; of live jobs one can hold a key", key.as_str());
            return Err(InvalidInput::new(format!("{name}.business_key"), problem));
        }
    }
    Ok(keys)
}
