use async_trait::async_trait;
use jiff::Timestamp;

use super::{MemoryStore, Tables};
use crate::control::DeleteTies;
use crate::error::StoreError;
use crate::id::JobId;
use crate::name::{BusinessKey, IdempotencyKey};
use crate::record::JobRecord;
use crate::signal::SignalRecord;
use crate::spec::NewJob;
use crate::store::{JobStore, SubmitOutcome, SubmitUnit};
use crate::submit::{AcceptedUnit, KeyReservations};

#[async_trait]
impl JobStore for MemoryStore {
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let (mut tables, now) = self.open();
        Ok(tables.submit(units, now))
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
        let ties = DeleteTies {
            needed_by: tables.needed_by(id),
            needed_again_by: tables.needed_again_by(id),
            children: tables.batches.get(&id).map(|batch| batch.counts),
            ..DeleteTies::none(id, job.place())
        };
        if let Some(refusal) = ties.refusal() {
            return Err(refusal);
        }
        tables.erase(id);
        Ok(true)
    }
}

impl Tables {
    /// A live job that waits for this one or has its input from it.
    fn needed_by(&self, id: JobId) -> Option<JobId> {
        let live = |child: &JobId| self.jobs.get(child).is_some_and(|child| !child.state.is_terminal());
        self.edges.values().filter(|edge| edge.parent == id).map(|edge| edge.child).find(live)
    }

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

    /// Stores what each unit has that is new, or nothing of it.
    pub(super) fn submit(&mut self, units: &[SubmitUnit], now: Timestamp) -> Vec<SubmitOutcome> {
        let mut taken = self.reservations(units.iter().flat_map(|unit| &unit.jobs));
        units.iter().map(|unit| taken.decide_unit(unit).and_then(|unit| self.write_unit(unit, now))).collect()
    }

    fn write_unit(&mut self, unit: AcceptedUnit<'_>, now: Timestamp) -> SubmitOutcome {
        let AcceptedUnit { submitted, jobs, edges, batch } = unit;
        for job in &jobs {
            self.write_new(job, now);
        }
        for edge in edges {
            self.edges.entry((edge.parent, edge.child)).or_insert_with(|| edge.clone());
        }
        if let Some(batch) = batch {
            self.store_batch(batch, &jobs, now)?;
        }
        Ok(submitted)
    }

    /// Stores a job that follows from something else, unless it is stored already.
    pub(super) fn insert(&mut self, job: &NewJob, now: Timestamp) -> Result<(), StoreError> {
        for job in self.reservations([job]).decide_following([job])? {
            self.write_new(job, now);
        }
        Ok(())
    }

    /// Reads which ids and keys of these jobs are taken.
    fn reservations<'a>(&self, jobs: impl IntoIterator<Item = &'a NewJob>) -> KeyReservations {
        let mut taken = KeyReservations::default();
        for job in jobs {
            if self.jobs.contains_key(&job.id) {
                taken.add_id(job.id);
            }
            if let (Some(key), Some(owner)) = (&job.idempotency_key, self.first_with_idempotency_key(job)) {
                taken.add_idempotency_key(key.as_str(), owner);
            }
            if let Some(key) = &job.business_key
                && let Some(holder) = self.business_keys.get(key)
            {
                taken.add_business_key(key.as_str(), *holder);
            }
        }
        taken
    }

    /// The job that was first submitted with this job's idempotency key.
    pub(super) fn first_with_idempotency_key(&self, job: &NewJob) -> Option<JobId> {
        job.idempotency_key.as_ref().and_then(|key| self.idempotency_keys.get(key).copied())
    }

    /// Writes a new job and its keys, which are free.
    pub(super) fn write_new(&mut self, job: &NewJob, now: Timestamp) {
        if let Some(key) = &job.business_key {
            self.business_keys.insert(key.clone(), job.id);
        }
        if let Some(key) = &job.idempotency_key {
            self.idempotency_keys.insert(key.clone(), job.id);
        }
        self.jobs.insert(job.id, job.clone().into_record(now));
        if let Some(wait) = &job.signal {
            self.signals.insert(job.id, SignalRecord::new(job.id, wait));
            if self.take_kept(job.id, now) {
                self.jobs.insert(job.id, job.already_signaled().into_record(now));
            }
            self.begin_limit(job.id, now);
        }
    }
}
