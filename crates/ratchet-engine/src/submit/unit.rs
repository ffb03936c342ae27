//! Submitting a unit of jobs: the path that every submit takes, whichever builder began it.

use std::collections::HashMap;

use ratchet_core::store::{SubmitUnit, Submitted};
use ratchet_core::{BusinessKey, Due, InvalidInput, JobFlags, JobId, NewJob, Priority, StartState, limits};

use crate::client::Client;
use crate::client::handle::JobHandle;
use crate::client::signals::awaiting;
use crate::job::Job;
use crate::submit::enqueue::Enqueue;
use crate::submit::error::{SubmitError, SubmittedKind};

/// Whether to wake the nodes for jobs: the highest priority of the jobs to wake them for, if there are any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waking(pub(crate) Option<Priority>);

impl Waking {
    /// Wakes the nodes for those of the jobs that can run at once.
    pub(crate) fn of_ready(jobs: &[NewJob]) -> Self {
        let ready = jobs.iter().filter(|job| job.start == StartState::Ready && job.due == Due::NOW);
        Self(ready.map(|job| job.spec.priority).max())
    }
}

impl Client {
    /// Submits many jobs in one transaction: all of them, or none if one is refused.
    ///
    /// A job whose idempotency key was used before is not refused: its handle follows the earlier job.
    ///
    /// # Errors
    /// As [`Enqueue::submit`]; at most 10,000 jobs a call.
    pub async fn submit_all<J: Job>(
        &self,
        jobs: impl IntoIterator<Item = Enqueue<J>>,
    ) -> Result<Vec<JobHandle<J::Output>>, SubmitError> {
        let mut unit = SubmitUnit::default();
        let mut waking = Waking::default();
        for enqueue in jobs {
            // Counted as they come, so that an endless iterator is refused too.
            limits::check_submit_count(unit.jobs.len() + 1)?;
            let (client, options) = enqueue.into_parts();
            if client.principal() != self.principal() {
                let problem =
                    "was begun by a client that acts for somebody else; begin it with the one that submits it";
                return Err(InvalidInput::new(format!("job[{}]", unit.jobs.len()), problem).into());
            }
            let (one, wakes) = options.into_unit(self)?;
            waking = waking.max(wakes);
            if one.is_one_thing() {
                let problem = "is not for many jobs at once; submit each chain by itself, or all as one workflow";
                return Err(InvalidInput::new("then", problem).into());
            }
            unit.jobs.extend(one.jobs);
        }
        if unit.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let submitted = self.submit_unit(unit, waking).await?;
        Ok(submitted.into_iter().map(|one| JobHandle::new(self.clone(), one)).collect())
    }

    /// Stores a unit, wakes the nodes for it, and publishes which of its jobs wait for their signals.
    pub(crate) async fn submit_unit(&self, unit: SubmitUnit, waking: Waking) -> Result<Vec<Submitted>, SubmitError> {
        let awaiting = awaiting(&unit);
        let submitted = self.store_unit(unit).await?;
        self.submitted(waking);
        self.tell_awaiting(awaiting).await;
        Ok(submitted)
    }

    /// Admits and stores a unit. An error about a business key names the step or the child that asked for it.
    pub(crate) async fn store_unit(&self, unit: SubmitUnit) -> Result<Vec<Submitted>, SubmitError> {
        let keys = keys(&unit)?;
        match self.submitter().submit(self.admit(unit)?).await.map_err(SubmitError::from) {
            Err(SubmitError::Duplicate { business_key, holder, .. }) => {
                let of = keys.get(&business_key).cloned();
                Err(SubmitError::Duplicate { of, held_by: self.kind_of_holder(holder).await, business_key, holder })
            }
            outcome => outcome,
        }
    }

    /// Wakes this node for jobs that were committed, and other nodes if they should know.
    pub(crate) fn submitted(&self, waking: Waking) {
        self.wake().submitted(waking.0.is_some());
        if let Some(priority) = waking.0 {
            self.announce(priority);
        }
    }

    /// Refuses a handle to what an earlier submit with the same idempotency key created, if that is of another kind.
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

    /// Returns whether a job or a schedule owns a key: a job, if the store does not answer.
    async fn kind_of_holder(&self, holder: JobId) -> SubmittedKind {
        let schedules = self.store().find_schedules(&[holder]).await;
        if schedules.is_ok_and(|found| !found.is_empty()) { SubmittedKind::Schedule } else { SubmittedKind::Job }
    }
}

/// Returns which job asks for which business key, if there are several jobs.
fn keys(unit: &SubmitUnit) -> Result<HashMap<BusinessKey, String>, InvalidInput> {
    let mut keys: HashMap<BusinessKey, String> = HashMap::new();
    if unit.jobs.len() == 1 {
        return Ok(keys);
    }
    // Jobs that are submits of their own may resolve to earlier jobs by their idempotency keys, and then need no key.
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
