use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{MemoryStore, Tables};
use crate::batch::{Batch, NewBatch, Tally};
use crate::error::{ErrorKind, StoreError};
use crate::flow::Flow;
use crate::id::JobId;
use crate::page::{JobCursor, Page, check_limit};
use crate::record::JobRecord;
use crate::settlement::{Followed, FollowedBy};
use crate::spec::NewJob;
use crate::state::JobState;
use crate::store::{BatchStore, CanceledChildren, SubmitUnit, Submitted};
use crate::transition::Event;

#[async_trait]
impl BatchStore for MemoryStore {
    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let (mut tables, now) = self.open();
        let is_known =
            |child: &NewJob| tables.jobs.contains_key(&child.id) || tables.first_with_idempotency_key(child).is_some();
        let known = children.iter().all(is_known) && !children.is_empty();
        let batch = tables.batches.get(&id).ok_or_else(|| unknown("extend", id))?;
        if let Some(problem) = batch.refusal().filter(|_| !known) {
            return Err(StoreError::new(ErrorKind::Conflict, format!("extend batch {id}"), problem));
        }
        let before = tables.jobs.len();
        let submitted = tables.submit(&[SubmitUnit::of(children.to_vec())], now).remove(0)?;
        let stored = tables.jobs.len() - before;
        if let Some(batch) = tables.batches.get_mut(&id) {
            batch.counts.total += stored as u64;
        }
        Ok(submitted)
    }

    async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError> {
        let (mut tables, now) = self.open();
        let batch = tables.batches.get_mut(&id).ok_or_else(|| unknown("seal", id))?;
        if batch.counts.sealed {
            return Ok(Vec::new());
        }
        if batch.completed_at.is_some() {
            return Err(StoreError::new(ErrorKind::Conflict, format!("seal batch {id}"), "it was cancelled"));
        }
        batch.counts.sealed = true;
        batch.updated_at = now;
        tables.after_counting(id, now)
    }

    async fn find_batches(&self, ids: &[JobId]) -> Result<Vec<Batch>, StoreError> {
        let (tables, _) = self.open();
        Ok(ids.iter().filter_map(|id| tables.batch(*id)).collect())
    }

    async fn list_batches(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<Batch>, StoreError> {
        check_limit(limit).map_err(|error| StoreError::refused("listing batches", error))?;
        let (tables, _) = self.open();
        let newest_first = tables.batches.keys().rev();
        let mut left = newest_first.filter(|id| after.is_none_or(|cursor| **id < cursor.0));
        let items: Vec<Batch> = left.by_ref().take(limit).filter_map(|id| tables.batch(*id)).collect();
        let more = left.next().is_some();
        let next = items.last().filter(|_| more).map(|batch| JobCursor(batch.id));
        Ok(Page { items, next })
    }

    async fn canceling_batches(&self, limit: usize) -> Result<Vec<JobId>, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.batches.values().filter(|batch| batch.canceling).map(|batch| batch.id).take(limit).collect())
    }

    async fn cancel_children(
        &self,
        id: JobId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<CanceledChildren, StoreError> {
        let (mut tables, now) = self.open();
        if !tables.batches.get(&id).is_some_and(|batch| batch.canceling) {
            return Ok(CanceledChildren::default());
        }
        let is_child = |job: &&JobRecord| job.parent == Some(id) && after.is_none_or(|after| job.id > after);
        let mut left = tables.jobs.values().filter(is_child).map(|job| job.id);
        let children: Vec<JobId> = left.by_ref().take(limit).collect();
        let next = children.last().copied().filter(|_| left.next().is_some());
        let mut canceled = Vec::new();
        for child in children {
            // One that is paused after its failure has been counted.
            if let Some(done) = tables.cancel(child, now, |job| job.canceled_because = Some(id))? {
                canceled.push(Followed::of(&done.job, FollowedBy::Canceled { because: id }));
                canceled.extend(done.followed);
            }
        }
        if let (None, Some(batch)) = (next, tables.batches.get_mut(&id)) {
            batch.canceling = false;
        }
        Ok(CanceledChildren { children: canceled, next })
    }
}

fn unknown(verb: &str, id: JobId) -> StoreError {
    StoreError::new(ErrorKind::NotFound, format!("{verb} batch {id}"), "there is no such batch")
}

/// Ends of children, by their batch.
pub(super) type Tallies = BTreeMap<JobId, Tally>;

impl Tables {
    /// Stores the row of a batch whose job was just stored.
    pub(super) fn store_batch(&mut self, new: &NewBatch, stored: &[&NewJob], now: Timestamp) -> Result<(), StoreError> {
        let total = SubmitUnit::count_children(new.id, stored.iter().copied());
        self.batches.insert(new.id, Batch::stored(new, total, now));
        self.after_counting(new.id, now).map(|_| ())
    }

    /// Notes the end of a job for its batch, or of a batch.
    pub(super) fn note_end(&mut self, id: JobId, tallies: &mut Tallies, now: Timestamp) {
        let Some(job) = self.jobs.get(&id).filter(|job| job.state.is_terminal()) else { return };
        if let Some(batch) = job.parent.filter(|_| job.flow.has(Flow::BATCH_CHILD)) {
            tallies.entry(batch).or_default().add(job.state, job.timing.map(|timing| timing.duration));
        }
        if job.flow.has(Flow::BATCH)
            && let Some(batch) = self.batches.get_mut(&id)
        {
            batch.completed_at.get_or_insert(now);
            batch.canceling |= job.state == JobState::Canceled;
        }
    }

    /// Counts ends of children, and does what follows.
    pub(super) fn count(&mut self, tallies: &Tallies, now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        let mut followed = Vec::new();
        for (id, tally) in tallies {
            if let Some(batch) = self.batches.get_mut(id) {
                batch.counts.add(tally);
                batch.updated_at = now;
                followed.append(&mut self.after_counting(*id, now)?);
            }
        }
        Ok(followed)
    }

    /// Tells of a threshold that was passed, and releases the job that stands for a batch that is complete.
    fn after_counting(&mut self, id: JobId, now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        let Some(batch) = self.batches.get_mut(&id) else { return Ok(Vec::new()) };
        let mut told = None;
        if let (Some(hook), Some(next)) = (&batch.hook, batch.next_progress)
            && let Some(threshold) = hook.every.passed(next, &batch.counts)
        {
            batch.next_progress = Some(threshold + hook.every.step());
            told = batch.progress_job(threshold);
        }
        let complete = batch.counts.is_complete();
        if let Some(job) = told.filter(|job| !self.jobs.contains_key(&job.id)) {
            self.insert(&job, now)?;
        }
        if !complete {
            return Ok(Vec::new());
        }
        let Some((_, parent)) = self.transition(id, Event::Release)? else { return Ok(Vec::new()) };
        parent.waits_for = 0;
        parent.due_at_release(now);
        Ok(vec![Followed::of(parent, FollowedBy::Released)])
    }

    /// Takes the failure of a child back that is retried.
    pub(super) fn uncount_failure(&mut self, child: JobId) -> Result<(), StoreError> {
        let Some(job) = self.jobs.get(&child).filter(|job| job.flow.has(Flow::BATCH_CHILD)) else { return Ok(()) };
        let batch = job.parent.and_then(|batch| self.batches.get_mut(&batch));
        match batch {
            Some(batch) if batch.completed_at.is_none() && !batch.counts.is_complete() => {
                batch.counts.failed = batch.counts.failed.saturating_sub(1);
                Ok(())
            }
            _ => {
                let problem = "its batch is over, and counts it as failed; submit it anew";
                Err(StoreError::new(ErrorKind::Conflict, format!("retry job {child}"), problem))
            }
        }
    }

    /// Whether children of the batch that this job stands for are still to end.
    pub(super) fn has_children_to_come(&self, id: JobId) -> bool {
        self.batches.get(&id).is_some_and(|batch| batch.counts.done() < batch.counts.total)
    }

    fn batch(&self, id: JobId) -> Option<Batch> {
        let state = self.jobs.get(&id)?.state;
        self.batches.get(&id).map(|batch| Batch { state, ..batch.clone() })
    }
}
