use async_trait::async_trait;
use jiff::Timestamp;

use super::batches::Tallies;
use super::{MemoryStore, Tables};
use crate::clock::elapsed;
use crate::error::{ErrorKind, StoreError};
use crate::flow::{Flow, retry_event, signaled};
use crate::id::JobId;
use crate::record::{AttemptRecord, AttemptStatus, JobRecord, Timing};
use crate::recurring::leaves_its_place;
use crate::spec::NewJob;
use crate::state::JobState;
use crate::store::{ControlStore, Replacement, Transitioned};
use crate::transition::{Event, next};

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

    async fn release(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let (mut tables, now) = self.open();
        tables.control(id, Event::Release, |job| {
            job.waits_for = 0;
            job.flow = job.flow.at_rest();
            job.due_at_release(now);
        })
    }

    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
        let (mut tables, now) = self.open();
        // First, so that asking again after a lost reply finds what the first asking did.
        if let Some(first) = tables.first_with_idempotency_key(new) {
            return Ok(Replacement::Existing(first));
        }
        tables.check_replace(old, new)?;
        let replaced = tables.cancel(old, now, |job| job.superseded_by = Some(new.id))?;
        tables.write_new(new, now);
        let replaced = replaced.expect("it was just found to be cancellable");
        Ok(Replacement::Replaced(replaced))
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

    /// Gives a failed job a new life; after an error the caller puts back what was.
    pub(super) fn retry(&mut self, id: JobId, now: Timestamp) -> Result<Option<Transitioned>, StoreError> {
        let Some(job) = self.jobs.get(&id).filter(|job| next(job.place(), Event::Retry).is_some()) else {
            return Ok(None);
        };
        if let Some(problem) = self.untold(job) {
            return Err(StoreError::new(ErrorKind::Conflict, format!("retry job {id}"), problem));
        }
        let waiting = job.waiting();
        let has_come = waiting.flow.has(Flow::SIGNAL) && self.take_kept(id, now);
        let flow = if has_come { signaled(waiting).flow } else { waiting.flow };
        let event = retry_event(flow);
        let retried = self.control(id, event, |job| {
            job.attempts = 0;
            job.crash_count = 0;
            job.last_error = None;
            job.result = None;
            job.timing = None;
            job.terminated_at = None;
            job.scheduled_time = now;
            job.deferred_until = None;
            job.flow = flow;
            job.waits_for = u32::from(job.state == JobState::Waiting);
        })?;
        let Some(mut retried) = retried else { return Ok(None) };
        self.uncount_failure(id)?;
        self.begin_limit(id, now);
        retried.followed = self.revive(id, now)?;
        Ok(Some(retried))
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
        let attempt = canceled_attempt(&before, now);
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

    /// Refuses a replacement before anything has changed.
    fn check_replace(&self, old: JobId, new: &NewJob) -> Result<(), StoreError> {
        let doing = || format!("replace job {old}");
        let Some(job) = self.jobs.get(&old) else {
            return Err(StoreError::new(ErrorKind::NotFound, doing(), "there is no such job"));
        };
        if next(job.place(), Event::Cancel).is_none() {
            let problem = format!("it is {} and cannot be cancelled any more", job.place());
            return Err(StoreError::new(ErrorKind::Conflict, doing(), problem));
        }
        if self.jobs.contains_key(&new.id) {
            let problem = format!("the new id {} is taken", new.id);
            return Err(StoreError::new(ErrorKind::Conflict, doing(), problem));
        }
        if let Some(key) = &new.business_key
            && let Some(holder) = self.business_keys.get(key)
            && *holder != old
        {
            return Err(StoreError::duplicate(doing(), key.clone(), *holder));
        }
        Ok(())
    }
}

/// The record of an attempt that is cancelled `now`; `None` if the job was not running.
fn canceled_attempt(job: &JobRecord, now: Timestamp) -> Option<AttemptRecord> {
    let (node, picked_at) = (job.picked_by?, job.picked_at?);
    Some(AttemptRecord {
        job_id: job.id,
        version: job.version,
        attempt: job.attempts + 1,
        node,
        status: AttemptStatus::Canceled,
        timing: Timing {
            started_at: picked_at,
            ended_at: now,
            duration: elapsed(picked_at, now),
            queue_wait: elapsed(job.due(), picked_at),
        },
        error_class: None,
        error: None,
    })
}
