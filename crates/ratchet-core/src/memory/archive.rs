use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{MemoryStore, Tables};
use crate::batch::Batch;
use crate::clock::elapsed;
use crate::error::StoreError;
use crate::id::JobId;
use crate::record::{AttemptRecord, JobRecord};
use crate::retention::{ARCHIVED_ATTEMPTS_MAX, EndedJob, TieQuestions, Ties, may_go};
use crate::signal::SignalRecord;
use crate::store::{ArchiveRequest, ArchiveStore, Archived, Removal};

fn ended(job: &JobRecord) -> EndedJob {
    EndedJob { id: job.id, flow: job.flow, parent: job.parent, canceled_because: job.canceled_because }
}

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
        let cutoff = request.cutoff(now);
        let below = JobId::floor(cutoff);
        let after = |id: JobId| request.after.is_none_or(|after| id > after);
        let mut read: Vec<JobId> = tables
            .jobs
            .values()
            .filter(|job| job.state == request.state && job.state.is_terminal())
            .map(|job| job.id)
            .filter(|id| *id < below && request.only.as_ref().map_or_else(|| after(*id), |only| only.contains(id)))
            .collect();
        if request.only.is_none() {
            read.truncate(request.limit);
        }
        let old: Vec<EndedJob> = read
            .iter()
            .filter_map(|id| tables.jobs.get(id))
            .filter(|job| job.terminated_at.is_some_and(|at| at <= cutoff))
            .map(ended)
            .collect();
        let ties = tables.ties(TieQuestions::about(old.iter().copied()));
        let gone: BTreeSet<JobId> = old.iter().filter(|job| may_go(job, &ties)).map(|job| job.id).collect();
        let removal = |job: &JobRecord| request.removal.of_job(job.flow, job.workflow);
        let (deleted, moved): (Vec<JobId>, Vec<JobId>) =
            gone.iter().partition(|id| tables.jobs.get(id).is_some_and(|job| removal(job) == Removal::Delete));
        for id in &deleted {
            tables.erase(*id);
        }
        for id in &moved {
            tables.move_to_archive(*id, now);
        }
        tables.forget_edges(&gone);
        Ok(request.answer(&read, moved.len() as u64, deleted.len() as u64))
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
        tables.schedule_archive.retain(|one| {
            let goes = purged < limit && elapsed(one.archived_at, now) >= age;
            purged += usize::from(goes);
            !goes
        });
        Ok(purged as u64)
    }
}

impl Tables {
    /// The answers to the questions that ended jobs ask before they go.
    fn ties(&self, questions: TieQuestions) -> Ties {
        let those = |asked: Vec<JobId>, is: &dyn Fn(&JobId) -> bool| asked.into_iter().filter(|id| is(id)).collect();
        let has_children = |batch: &Batch| batch.counts.has_children_to_come(batch.canceling);
        Ties {
            needed: those(questions.needed, &|id| self.is_needed(*id)),
            open_batches: those(questions.open_batches, &|id| self.batches.get(id).is_some_and(has_children)),
            live_parents: those(questions.live_parents, &|id| {
                self.jobs.get(id).is_some_and(|parent| !parent.state.is_terminal())
            }),
            revivers: those(questions.revivers, &|id| self.may_be_retried(*id)),
        }
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
