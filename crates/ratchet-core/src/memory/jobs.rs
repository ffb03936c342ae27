use async_trait::async_trait;
use jiff::Timestamp;

use super::{MemoryStore, Tables, to_micros};
use crate::clock::later;
use crate::error::{ErrorKind, StoreError};
use crate::id::JobId;
use crate::name::{BusinessKey, IdempotencyKey};
use crate::record::JobRecord;
use crate::signal::SignalRecord;
use crate::spec::{Due, NewJob, StartState};
use crate::state::JobState;
use crate::store::{JobStore, SubmitOutcome, SubmitUnit, Submitted};

#[async_trait]
impl JobStore for MemoryStore {
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let (mut tables, now) = self.open();
        Ok(units.iter().map(|unit| tables.submit_unit(unit, now)).collect())
    }

    async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
        let (tables, _) = self.open();
        Ok(ids.iter().filter_map(|id| tables.job_anywhere(*id).cloned()).collect())
    }

    async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.business_keys.get(key).copied())
    }

    async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.idempotency_keys.get(key).copied())
    }

    async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        let (mut tables, _) = self.open();
        let Some(job) = tables.jobs.get(&id) else {
            tables.forget_log(id);
            return Ok(tables.archive.remove(&id).is_some());
        };
        if !job.state.is_terminal() {
            let problem = format!("it is {}; cancel it first", job.state);
            return Err(StoreError::new(ErrorKind::Conflict, format!("delete job {id}"), problem));
        }
        if tables.is_needed(id) {
            let problem = "a live job waits for it or has its input from it; let that end first";
            return Err(StoreError::new(ErrorKind::Conflict, format!("delete job {id}"), problem));
        }
        if let Some(child) = tables.needed_again_by(id) {
            let problem = format!("job {child} needs it if it is retried; delete that first");
            return Err(StoreError::new(ErrorKind::Conflict, format!("delete job {id}"), problem));
        }
        if tables.has_children_to_come(id) {
            let problem = "not all jobs of this batch have ended; cancel it, or let them end";
            return Err(StoreError::new(ErrorKind::Conflict, format!("delete job {id}"), problem));
        }
        tables.erase(id);
        Ok(true)
    }
}

impl Tables {
    /// Deletes a job and all that was only about it.
    pub(super) fn erase(&mut self, id: JobId) {
        self.jobs.remove(&id);
        self.signals.remove(&id);
        self.batches.remove(&id);
        self.edges.retain(|(parent, child), _| *parent != id && *child != id);
        self.attempts.retain(|(job_id, _), _| *job_id != id);
        self.alerts.retain(|alert| alert.job_id != id);
        self.forget_log(id);
    }

    /// Stores all jobs of a unit, or none.
    pub(super) fn submit_unit(&mut self, unit: &SubmitUnit, now: Timestamp) -> SubmitOutcome {
        let SubmitUnit { jobs, edges, batch } = unit;
        let is_stored = |job: &NewJob| self.jobs.contains_key(&job.id);
        if let Some(first) = unit.stand_in(is_stored, |job| self.first_with_idempotency_key(job)) {
            return Ok(vec![Submitted::Existing(first); jobs.len()]);
        }
        let mut answers = Vec::with_capacity(jobs.len());
        let mut stored = Vec::new();
        let mailbox = self.mailbox.clone();
        for job in jobs {
            match self.submit_one(job, now) {
                Ok(answer) => {
                    if answer.stored {
                        stored.push(job);
                    }
                    answers.push(answer.submitted);
                }
                Err(refused) => {
                    for job in stored {
                        self.forget(job);
                    }
                    self.mailbox = mailbox;
                    return Err(refused);
                }
            }
        }
        for edge in edges {
            self.edges.entry((edge.parent, edge.child)).or_insert_with(|| edge.clone());
        }
        if let Some(batch) = batch.as_ref().filter(|batch| stored.iter().any(|job| job.id == batch.id)) {
            self.store_batch(batch, &stored, now)?;
        }
        Ok(answers)
    }

    fn submit_one(&mut self, job: &NewJob, now: Timestamp) -> Result<Answer, StoreError> {
        if self.jobs.contains_key(&job.id) {
            // Submitted again after a lost reply.
            return Ok(Answer { submitted: Submitted::Created(job.id), stored: false });
        }
        if let Some(first) = self.first_with_idempotency_key(job) {
            return Ok(Answer { submitted: Submitted::Existing(first), stored: false });
        }
        self.insert(job, now)?;
        Ok(Answer { submitted: Submitted::Created(job.id), stored: true })
    }

    /// The job that was first submitted with this job's idempotency key.
    pub(super) fn first_with_idempotency_key(&self, job: &NewJob) -> Option<JobId> {
        job.idempotency_key.as_ref().and_then(|key| self.idempotency_keys.get(key).copied())
    }

    /// Writes a new job and its keys; refused if another job holds the business key.
    pub(super) fn insert(&mut self, job: &NewJob, now: Timestamp) -> Result<(), StoreError> {
        if let Some(key) = &job.business_key {
            if let Some(holder) = self.business_keys.get(key) {
                return Err(StoreError::duplicate("submit a job", key.clone(), *holder));
            }
            self.business_keys.insert(key.clone(), job.id);
        }
        if let Some(key) = &job.idempotency_key {
            self.idempotency_keys.insert(key.clone(), job.id);
        }
        self.jobs.insert(job.id, record(job, now));
        if let Some(wait) = &job.signal {
            self.signals.insert(job.id, SignalRecord::new(job.id, wait));
            if self.take_kept(job.id, now) {
                self.jobs.insert(job.id, record(&job.already_signaled(), now));
            }
            self.begin_limit(job.id, now);
        }
        Ok(())
    }

    /// Takes back what [`insert`](Self::insert) wrote.
    fn forget(&mut self, job: &NewJob) {
        self.jobs.remove(&job.id);
        self.signals.remove(&job.id);
        if let Some(key) = &job.business_key {
            self.business_keys.remove(key);
        }
        if let Some(key) = &job.idempotency_key {
            self.idempotency_keys.remove(key);
        }
    }
}

struct Answer {
    submitted: Submitted,
    /// Whether this very submit wrote it.
    stored: bool,
}

fn record(job: &NewJob, now: Timestamp) -> JobRecord {
    let state = match job.start {
        StartState::Ready => JobState::Pending,
        StartState::Waiting => JobState::Waiting,
    };
    let (scheduled_time, release_delay) = match (job.start, job.due) {
        // The delay begins with the release.
        (StartState::Waiting, Due::After(delay)) => (now, Some(delay).filter(|delay| !delay.is_zero())),
        (StartState::Ready, Due::After(delay)) => (later(now, delay), None),
        (_, Due::At(at)) => (at, None),
    };
    JobRecord {
        business_key: job.business_key.clone(),
        idempotency_key: job.idempotency_key.clone(),
        on_success: job.on_success.clone(),
        on_failure: job.on_failure.clone(),
        origin: job.origin.clone(),
        parent: job.parent,
        workflow: job.workflow,
        step: job.step.clone(),
        flow: job.flow,
        waits_for: job.waits_for,
        release_delay,
        ..JobRecord::stored(job.id, job.spec.clone(), job.job_type, state, now, to_micros(scheduled_time))
    }
}
