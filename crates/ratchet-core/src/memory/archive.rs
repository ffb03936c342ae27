use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{MemoryStore, Tables};
use crate::clock::{earlier, elapsed};
use crate::error::StoreError;
use crate::flow::Flow;
use crate::id::JobId;
use crate::record::{AttemptRecord, JobRecord};
use crate::retention::ARCHIVED_ATTEMPTS_MAX;
use crate::signal::SignalRecord;
use crate::store::{ArchiveRequest, ArchiveStore, Archived, Removal};

/// A job in the archive.
#[derive(Debug, Clone)]
pub(super) struct ArchivedJob {
    pub(super) job: JobRecord,
    pub(super) attempts: Vec<AttemptRecord>,
    pub(super) signal: Option<SignalRecord>,
}

#[async_trait]
impl ArchiveStore for MemoryStore {
    async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError> {
        let (mut tables, now) = self.open();
        let below = JobId::floor(earlier(now, request.age));
        let after = |id: JobId| request.after.is_none_or(|after| id > after);
        let mut looked_at: Vec<JobId> = tables
            .jobs
            .values()
            .filter(|job| job.state == request.state && job.state.is_terminal())
            .map(|job| job.id)
            .filter(|id| *id < below && request.only.as_ref().map_or_else(|| after(*id), |only| only.contains(id)))
            .collect();
        if request.only.is_none() {
            looked_at.truncate(request.limit);
        }
        let old = |job: &JobRecord| job.terminated_at.is_some_and(|at| elapsed(at, now) >= request.age);
        let go: Vec<JobId> =
            looked_at.iter().copied().filter(|id| tables.jobs.get(id).is_some_and(old) && tables.may_go(*id)).collect();
        let removal = |job: &JobRecord| request.removal.of_job(job.flow, job.workflow);
        let (deleted, moved): (Vec<JobId>, Vec<JobId>) =
            go.iter().partition(|id| tables.jobs.get(id).is_some_and(|job| removal(job) == Removal::Delete));
        deleted.iter().for_each(|id| tables.erase(*id));
        moved.iter().for_each(|id| tables.move_to_archive(*id, now));
        let gone: BTreeSet<JobId> = go.iter().copied().collect();
        tables.forget_edges(&gone);
        let (moved, deleted) = (moved.len() as u64, deleted.len() as u64);
        if request.only.is_some() {
            return Ok(Archived { moved, deleted, last: request.after, more: false });
        }
        let last = looked_at.last().copied().or(request.after);
        Ok(Archived { moved, deleted, last, more: looked_at.len() == request.limit && request.limit > 0 })
    }

    async fn purge_archive(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        let (mut tables, now) = self.open();
        let old = |one: &&ArchivedJob| one.job.archived_at.is_some_and(|at| elapsed(at, now) >= age);
        let mut found: Vec<_> =
            tables.archive.values().filter(old).map(|one| (one.job.archived_at, one.job.id)).collect();
        found.sort_unstable();
        found.truncate(limit);
        for (_, id) in &found {
            tables.archive.remove(id);
            tables.forget_log(*id);
        }
        Ok(found.len() as u64)
    }

    async fn purge_schedules(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        let (mut tables, now) = self.open();
        let mut purged = 0;
        tables.recurring_archive.retain(|one| {
            let goes = purged < limit && elapsed(one.archived_at, now) >= age;
            purged += usize::from(goes);
            !goes
        });
        Ok(purged as u64)
    }
}

impl Tables {
    /// Whether nothing that is live hangs on an ended job, and nothing can bring it back.
    fn may_go(&self, id: JobId) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let parent = job.parent.filter(|_| job.flow.has(Flow::BATCH_CHILD));
        let parent_lives = parent.and_then(|parent| self.jobs.get(&parent)).is_some_and(|job| !job.state.is_terminal());
        let canceling = self.batches.get(&id).is_some_and(|batch| batch.canceling);
        // The retry of what had cancelled it brings it back.
        let may_come_back = job.canceled_because.is_some_and(|cause| self.may_be_retried(cause));
        !(self.is_needed(id) || parent_lives || canceling || may_come_back || self.has_children_to_come(id))
    }

    fn move_to_archive(&mut self, id: JobId, now: Timestamp) {
        let Some(mut job) = self.jobs.remove(&id) else { return };
        job.archived_at = Some(now);
        let all: Vec<AttemptRecord> =
            self.attempts.range((id, 0)..=(id, u64::MAX)).map(|(_, attempt)| attempt.clone()).collect();
        let attempts = all[all.len().saturating_sub(ARCHIVED_ATTEMPTS_MAX)..].to_vec();
        self.attempts.retain(|(job_id, _), _| *job_id != id);
        self.alerts.retain(|alert| alert.job_id != id);
        self.batches.remove(&id);
        let signal = self.signals.remove(&id);
        self.archive.insert(id, ArchivedJob { job, attempts, signal });
    }

    /// Edges of archived jobs are kept while one of their ends is not: it may be retried, and then needs its input.
    fn forget_edges(&mut self, gone: &BTreeSet<JobId>) {
        let jobs = &self.jobs;
        self.edges.retain(|(parent, child), _| {
            let touched = gone.contains(parent) || gone.contains(child);
            !touched || jobs.contains_key(parent) || jobs.contains_key(child)
        });
    }

    /// A job, wherever it is.
    pub(super) fn job_anywhere(&self, id: JobId) -> Option<&JobRecord> {
        self.jobs.get(&id).or_else(|| self.archive.get(&id).map(|one| &one.job))
    }
}
