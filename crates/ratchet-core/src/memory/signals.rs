use std::ops::Bound;

use async_trait::async_trait;
use jiff::Timestamp;

use super::batches::Tallies;
use super::flow::dependent;
use super::{MemoryStore, Tables, to_micros};
use crate::clock::later;
use crate::error::StoreError;
use crate::flow::{SignalPlan, awaits_signal, limit_begins, signaled};
use crate::id::JobId;
use crate::name::SignalKey;
use crate::page::check_limit;
use crate::settlement::Followed;
use crate::signal::{Delivery, Signal, SignalRecord, SignalTarget, is_kept};
use crate::state::JobState;
use crate::store::{Delivered, Expired, SignalStore, Swept};
use crate::transition::Event;

#[async_trait]
impl SignalStore for MemoryStore {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError> {
        let (mut tables, now) = self.open();
        let waiting: Vec<JobId> = tables
            .signals
            .values()
            .filter(|record| match &delivery.target {
                SignalTarget::Job(id) => record.job_id == *id,
                SignalTarget::Key(key) => record.key == *key,
            })
            .filter(|record| tables.awaits(record.job_id))
            .map(|record| record.job_id)
            .collect();
        let jobs = tables.give(delivery, &waiting, now)?;
        let kept = jobs.is_empty() && tables.keep(delivery, now);
        Ok(Delivered { jobs, kept })
    }

    async fn expire(&self, limit: usize) -> Result<Expired, StoreError> {
        check_limit(limit).map_err(|error| StoreError::refused("ending waits for signals", error))?;
        let (mut tables, now) = self.open();
        let mut late: Vec<(Timestamp, JobId)> = tables
            .signals
            .values()
            .filter(|record| tables.awaits(record.job_id))
            .filter_map(|record| record.expired(now).and(Some((record.expires_at?, record.job_id))))
            .collect();
        late.sort_unstable();
        let mut expired = Expired { more: late.len() > limit, ..Expired::default() };
        for (_, id) in late.into_iter().take(limit) {
            expired.followed.append(&mut tables.expire(id, now)?);
            let mut tallies = Tallies::new();
            tables.note_end(id, &mut tallies, now);
            expired.followed.append(&mut tables.count(&tallies, now)?);
            expired.jobs.extend(tables.jobs.get(&id).cloned());
        }
        Ok(expired)
    }

    async fn signals(&self, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError> {
        let (tables, _) = self.open();
        Ok(ids.iter().filter_map(|id| tables.signal_anywhere(*id).cloned()).collect())
    }

    async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
        let (mut tables, now) = self.open();
        let from = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
        let looked_at: Vec<SignalKey> =
            tables.mailbox.range((from, Bound::Unbounded)).map(|(key, _)| key.clone()).take(limit).collect();
        let before = tables.mailbox.len();
        tables.mailbox.retain(|key, (_, until)| is_kept(*until, now) || !looked_at.contains(key));
        let removed = (before - tables.mailbox.len()) as u64;
        let next = looked_at.into_iter().nth(limit.saturating_sub(1));
        Ok(Swept { removed, next })
    }
}

impl Tables {
    fn signal_anywhere(&self, id: JobId) -> Option<&SignalRecord> {
        self.signals.get(&id).or_else(|| self.archive.get(&id)?.signal.as_ref())
    }

    /// Whether a job waits for a signal that has not come.
    fn awaits(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_some_and(|job| awaits_signal(job.state, job.flow))
    }

    /// Gives jobs that wait for it a signal.
    fn give(&mut self, delivery: &Delivery, ids: &[JobId], now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        for id in ids {
            let Some(record) = self.signals.get_mut(id) else { continue };
            record.signal = Some(delivery.signal(record.key.clone(), now));
            record.expires_at = None;
        }
        let plan = SignalPlan::of(ids.iter().filter_map(|id| Some((*id, dependent(self.jobs.get(id)?)))));
        for (id, left) in plan.still {
            if let Some(job) = self.jobs.get_mut(&id) {
                (job.waits_for, job.flow) = (left.waits_for, left.flow);
            }
        }
        for release in plan.released {
            self.release(release, now)?;
        }
        let followed = |(id, what)| self.jobs.get(&id).map(|job| Followed::of(job, what));
        Ok(plan.followed.into_iter().filter_map(followed).collect())
    }

    /// Keeps a signal for a job to come, if it is to be kept and none is kept already.
    fn keep(&mut self, delivery: &Delivery, now: Timestamp) -> bool {
        let SignalTarget::Key(key) = &delivery.target else { return false };
        let occupied = self.mailbox.get(key).is_some_and(|(_, until)| is_kept(*until, now));
        let Some((key, until)) = delivery.kept(occupied, now) else { return false };
        self.mailbox.insert(key.clone(), (delivery.signal(key.clone(), now), until));
        true
    }

    /// Takes what is kept for the signal of a job, which has got it then.
    pub(super) fn take_kept(&mut self, id: JobId, now: Timestamp) -> bool {
        let Some(record) = self.signals.get_mut(&id) else { return false };
        let Some((kept, until)) = self.mailbox.remove(&record.key) else { return false };
        record.signal = Some(kept).filter(|_| is_kept(until, now));
        record.signal.is_some()
    }

    /// Lets a job that was brought back wait for its signal again, if it has not come.
    pub(super) fn await_again(&mut self, id: JobId, now: Timestamp) {
        if self.awaits(id)
            && self.take_kept(id, now)
            && let Some(job) = self.jobs.get_mut(&id)
        {
            let left = signaled(job.waiting());
            (job.waits_for, job.flow) = (left.waits_for, left.flow);
        }
        self.begin_limit(id, now);
    }

    /// Sets until when a job waits for its signal: only if that is all it waits for.
    pub(super) fn begin_limit(&mut self, id: JobId, now: Timestamp) {
        let runs = self.jobs.get(&id).is_some_and(|job| job.state == JobState::Waiting && limit_begins(job.waiting()));
        if let Some(record) = self.signals.get_mut(&id) {
            record.expires_at = record.timeout.filter(|_| runs).map(|timeout| to_micros(later(now, timeout)));
        }
    }

    /// The signal that a job waited for, if it has come.
    pub(super) fn signal_of(&self, id: JobId) -> Option<Signal> {
        self.signals.get(&id)?.signal.clone()
    }

    /// Ends a job whose signal did not come in time.
    fn expire(&mut self, id: JobId, now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        let Some(report) = self.signals.get(&id).and_then(|record| record.expired(now)) else { return Ok(Vec::new()) };
        let Some((_, job)) = self.transition(id, Event::Expire)? else { return Ok(Vec::new()) };
        job.flow = job.flow.at_rest();
        job.last_error = Some(report.text().to_owned());
        job.terminated_at = Some(now);
        self.begin_limit(id, now);
        self.failed_unrun(id, &report, now)?;
        self.follow(id, now)
    }
}
