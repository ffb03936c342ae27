use async_trait::async_trait;
use jiff::Timestamp;

use super::batches::Tallies;
use super::{MemoryStore, Tables};
use crate::batch::batch_of;
use crate::control::Replace;
use crate::error::{ErrorKind, StoreError};
use crate::id::JobId;
use crate::record::JobRecord;
use crate::schedule::leaves_its_place;
use crate::spec::NewJob;
use crate::store::{ControlStore, Replacement, Transitioned};
use crate::transition::Event;

#[async_trait]
impl ControlStore for MemoryStore {
    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let (mut tables, now) = self.open();
        tables.cancel(id, now, |_| ())
    }

    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let (mut tables, _) = self.open();
        tables.control(id, Event::Pause, |_| ())
    }

    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let (mut tables, _) = self.open();
        tables.control(id, Event::Resume, |_| ())
    }

    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let (mut tables, now) = self.open();
        let before = tables.clone();
        let retried = tables.retry(id, now);
        if retried.is_err() {
            *tables = before;
        }
        retried
    }

    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
        let (mut tables, now) = self.open();
        // First, so that asking again after a lost reply finds what the first asking did.
        if let Some(first) = tables.first_with_idempotency_key(new) {
            return Ok(Replacement::Existing(first));
        }
        let before = tables.clone();
        let replaced = tables.replace(Replace { old, new }, now);
        if replaced.is_err() {
            *tables = before;
        }
        replaced.map(Replacement::Replaced)
    }
}

impl Tables {
    /// Lets `event` happen, if it may, and `change` what goes with it.
    fn control(
        &mut self,
        id: JobId,
        event: Event,
        change: impl FnOnce(&mut JobRecord),
    ) -> Result<Option<Transitioned>, StoreError> {
        let Some((before, job)) = self.transition(id, event)? else { return Ok(None) };
        change(job);
        Ok(Some(Transitioned { from: before.place(), job: job.clone(), followed: Vec::new() }))
    }

    /// Retries a failed job. After an error the caller restores the tables.
    pub(super) fn retry(&mut self, id: JobId, now: Timestamp) -> Result<Option<Transitioned>, StoreError> {
        let Some(job) = self.jobs.get(&id).filter(|job| job.retried(false).is_some()) else { return Ok(None) };
        if let Some(problem) = self.undecidable(job) {
            return Err(StoreError::new(ErrorKind::Conflict, format!("retry job {id}"), problem));
        }
        let batch = batch_of(job.flow, job.parent);
        let Some(mut retried) = self.retry_row(id, now)? else { return Ok(None) };
        if let Some(batch) = batch {
            self.uncount_failures(batch, 1)?;
        }
        self.begin_limit(id, now);
        retried.followed = self.revive(id, now)?;
        Ok(Some(retried))
    }

    /// Writes the row of a failed job that is retried.
    pub(super) fn retry_row(&mut self, id: JobId, now: Timestamp) -> Result<Option<Transitioned>, StoreError> {
        let awaits_signal = self.jobs.get(&id).is_some_and(JobRecord::awaits_signal_when_retried);
        let signal_came = awaits_signal && self.take_kept(id, now);
        let Some(reset) = self.jobs.get(&id).and_then(|job| job.retried(signal_came)) else { return Ok(None) };
        self.control(id, reset.event, |job| reset.write(job, now))
    }

    pub(super) fn cancel(
        &mut self,
        id: JobId,
        now: Timestamp,
        change: impl FnOnce(&mut JobRecord),
    ) -> Result<Option<Transitioned>, StoreError> {
        let Some((before, job)) = self.transition(id, Event::Cancel)? else { return Ok(None) };
        change(job);
        job.terminated_at = Some(now);
        let attempt = before.canceled_attempt(now);
        job.timing = attempt.as_ref().map(|attempt| attempt.timing);
        let mut transitioned = Transitioned { from: before.place(), job: job.clone(), followed: Vec::new() };
        if let Some(attempt) = attempt {
            self.attempts.insert((id, attempt.version), attempt);
        }
        if !leaves_its_place(before.job_type, before.place()) {
            transitioned.followed = self.follow(id, now)?;
        }
        let mut tallies = Tallies::new();
        self.note_end(id, &mut tallies, now);
        transitioned.followed.append(&mut self.count(&tallies, now)?);
        Ok(Some(transitioned))
    }

    /// Replaces a job; after an error the caller puts back what was.
    fn replace(&mut self, replace: Replace<'_>, now: Timestamp) -> Result<Transitioned, StoreError> {
        let Replace { old, new } = replace;
        replace.end_old(self.jobs.get(&old).map(JobRecord::place))?;
        let replaced = self.cancel(old, now, |job| job.superseded_by = Some(new.id))?;
        let replaced = replaced.expect("it was just found to be cancelable");
        replace.take_key(new.business_key.as_ref().and_then(|key| self.business_keys.get(key).copied()))?;
        replace.take_id(!self.jobs.contains_key(&new.id))?;
        self.write_new(new, now);
        Ok(replaced)
    }
}
