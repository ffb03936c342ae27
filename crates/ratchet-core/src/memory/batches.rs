use async_trait::async_trait;
use jiff::Timestamp;

use super::{MemoryStore, Tables};
use crate::batch::{Batch, CountPlan, CountedBatch, NewBatch, batch_of};
use crate::error::{ErrorKind, StoreError};
use crate::flow::{JobFlags, Release};
use crate::id::JobId;
use crate::page::{JobCursor, Page, check_limit};
use crate::record::JobRecord;
use crate::settlement::{Followed, FollowedBy};
use crate::spec::NewJob;
use crate::state::JobState;
use crate::store::{BatchStore, CanceledChildren, SubmitUnit, Submitted};

#[async_trait]
impl BatchStore for MemoryStore {
    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let (mut tables, now) = self.open();
        if !tables.batches.contains_key(&id) {
            return Err(unknown("extend", id));
        }
        let before = tables.clone();
        let submitted = tables.submit(&[SubmitUnit::of(children.to_vec())], now).remove(0)?;
        let stored = tables.jobs.len() - before.jobs.len();
        let grown = tables.grow_batch(id, stored, children.len());
        if let Err(problem) = grown {
            *tables = before;
            return Err(StoreError::new(ErrorKind::Conflict, format!("extend batch {id}"), problem));
        }
        Ok(submitted)
    }

    async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError> {
        let (mut tables, now) = self.open();
        let batch = tables.batches.get_mut(&id).ok_or_else(|| unknown("seal", id))?;
        let mut counted = CountedBatch::of(batch);
        let sealed = counted.seal();
        if !sealed.map_err(|problem| StoreError::new(ErrorKind::Conflict, format!("seal batch {id}"), problem))? {
            return Ok(Vec::new());
        }
        batch.counts = counted.counts;
        batch.updated_at = now;
        tables.after_counting(&[counted], now)
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

pub(super) use crate::batch::Tallies;

impl Tables {
    /// Stores the row of a batch whose job was just stored.
    pub(super) fn store_batch(&mut self, new: &NewBatch, stored: &[&NewJob], now: Timestamp) -> Result<(), StoreError> {
        let total = SubmitUnit::count_children(new.id, stored.iter().copied());
        let batch = Batch::stored(new, total, now);
        let counted = CountedBatch::of(&batch);
        self.batches.insert(new.id, batch);
        self.after_counting(&[counted], now).map(|_| ())
    }

    fn grow_batch(&mut self, id: JobId, stored: usize, asked: usize) -> Result<(), String> {
        let Some(batch) = self.batches.get_mut(&id) else { return Ok(()) };
        let mut counted = CountedBatch::of(batch);
        counted.grow(stored, asked)?;
        batch.counts = counted.counts;
        Ok(())
    }

    /// Notes the end of a job for its batch, or of a batch.
    pub(super) fn note_end(&mut self, id: JobId, tallies: &mut Tallies, now: Timestamp) {
        let Some(job) = self.jobs.get(&id).filter(|job| job.state.is_terminal()) else { return };
        if let Some(batch) = batch_of(job.flow, job.parent) {
            tallies.entry(batch).or_default().add(job.state, job.timing.map(|timing| timing.duration));
        }
        if job.flow.has(JobFlags::BATCH) {
            self.close_batch(id, job.state, now);
        }
    }

    /// Notes that the job that stands for a batch has ended; if it was canceled its children are to be, too.
    pub(super) fn close_batch(&mut self, id: JobId, state: JobState, now: Timestamp) {
        if let Some(batch) = self.batches.get_mut(&id) {
            batch.completed_at.get_or_insert(now);
            batch.canceling |= state == JobState::Canceled;
        }
    }

    /// Counts ends of children, and does what follows.
    pub(super) fn count(&mut self, tallies: &Tallies, now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        let mut all = Vec::with_capacity(tallies.len());
        for (id, tally) in tallies {
            let Some(batch) = self.batches.get_mut(id) else { continue };
            let mut counted = CountedBatch::of(batch);
            counted.count(tally);
            batch.counts = counted.counts;
            batch.updated_at = now;
            all.push(counted);
        }
        self.after_counting(&all, now)
    }

    /// Submits the jobs that report thresholds, and releases the jobs that stand for batches that are complete.
    fn after_counting(&mut self, counted: &[CountedBatch], now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        let plan = CountPlan::after(counted);
        for (id, threshold) in plan.thresholds {
            let Some(batch) = self.batches.get_mut(&id) else { continue };
            batch.next_progress = Some(threshold.next);
            let report = batch.progress_job(threshold.reached);
            if let Some(job) = report.filter(|job| !self.jobs.contains_key(&job.id)) {
                self.insert(&job, now)?;
            }
        }
        let mut followed = Vec::new();
        for id in plan.complete {
            let Some(parent) = self.jobs.get(&id) else { continue };
            let release = Release::new(id, parent.flow, parent.release_delay);
            followed.extend(self.release(release, now)?.map(|parent| Followed::of(parent, FollowedBy::Released)));
        }
        Ok(followed)
    }

    /// Takes back the failures of children that are retried.
    pub(super) fn uncount_failures(&mut self, id: JobId, count: u64) -> Result<(), StoreError> {
        let refused = |problem| StoreError::new(ErrorKind::Conflict, "retrying a child of a batch", problem);
        let batch = self.batches.get_mut(&id).ok_or_else(|| refused(CountedBatch::over(id)))?;
        let mut counted = CountedBatch::of(batch);
        counted.uncount(count).map_err(refused)?;
        batch.counts = counted.counts;
        Ok(())
    }

    fn batch(&self, id: JobId) -> Option<Batch> {
        let state = self.jobs.get(&id)?.state;
        self.batches.get(&id).map(|batch| Batch { state, ..batch.clone() })
    }
}
