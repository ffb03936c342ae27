use std::cmp::Reverse;
use std::collections::BTreeSet;

use async_trait::async_trait;

use super::{MemoryStore, Tables};
use crate::count::{COUNTED_MAX, CountBy, Counted};
use crate::error::StoreError;
use crate::flow::{Edge, Workflow, WorkflowStep};
use crate::id::JobId;
use crate::job_head::JobHead;
use crate::name::Principal;
use crate::page::{self, JobCursor, JobFilter, ListCursor, ListOrder, Page};
use crate::record::{AttemptRecord, JobRecord};
use crate::store::{LastAttempts, QueryStore, StateCounts};

#[async_trait]
impl QueryStore for MemoryStore {
    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError> {
        check_limit(limit)?;
        filter.check_cursor(after).map_err(|refused| StoreError::refused("listing jobs", refused))?;
        let (tables, _) = self.open();
        // In the order of priorities those before the cursor are known by more than their ids.
        let begin = after.filter(|cursor| cursor.priority().is_none());
        let (from, until) = filter.id_range(begin);
        let mut found: Vec<&JobRecord> = tables.passing(filter).filter(|job| (from..until).contains(&job.id)).collect();
        let urgency = |job: &JobRecord| Reverse((job.spec.priority, job.id));
        match filter.order {
            ListOrder::Newest => found.sort_unstable_by_key(|job| Reverse(job.id)),
            ListOrder::Oldest => found.sort_unstable_by_key(|job| job.id),
            ListOrder::Priority => found.sort_unstable_by_key(|job| urgency(job)),
        }
        if let Some((priority, last)) = after.and_then(|cursor| Some((cursor.priority()?, cursor.last()))) {
            found.retain(|job| urgency(job) > Reverse((priority, last)));
        }
        let more = found.len() > limit;
        let items: Vec<JobRecord> = found.into_iter().take(limit).cloned().collect();
        let next = items.last().filter(|_| more).map(|job| match filter.order {
            ListOrder::Newest => ListCursor::newest(job.id),
            ListOrder::Oldest => ListCursor::oldest(job.id),
            ListOrder::Priority => ListCursor::of_priority(job.spec.priority, job.id),
        });
        Ok(Page { items, next })
    }

    async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
        let (tables, _) = self.open();
        let mut counted = Counted::default();
        let mut found = tables.passing(filter);
        for job in found.by_ref().take(COUNTED_MAX) {
            let last = tables.attempts_of(job.id).last().map(|attempt| attempt.node);
            counted.add(by.group(&JobHead::of(job), last));
        }
        counted.more = found.next().is_some();
        Ok(counted)
    }

    async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        Ok(counted(self.open().0.jobs.values()))
    }

    async fn count_by_state_of(&self, principal: &Principal) -> Result<StateCounts, StoreError> {
        let (tables, _) = self.open();
        Ok(counted(tables.jobs.values().filter(|job| job.spec.principal.as_ref() == Some(principal))))
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.attempts_of(id).cloned().collect())
    }

    async fn last_attempts(&self, id: JobId, before: Option<u64>, limit: usize) -> Result<LastAttempts, StoreError> {
        check_limit(limit)?;
        let (tables, _) = self.open();
        let all: Vec<&AttemptRecord> = tables.attempts_of(id).collect();
        let earlier = all.iter().rev().filter(|attempt| before.is_none_or(|before| attempt.version < before));
        Ok(LastAttempts { items: earlier.take(limit).copied().cloned().collect(), total: all.len() as u64 })
    }

    async fn workflow(&self, id: JobId) -> Result<Option<Workflow>, StoreError> {
        let (tables, _) = self.open();
        let mut edges: Vec<Edge> = tables.edges.values().filter(|edge| edge.workflow == id).cloned().collect();
        edges.sort_by_key(|edge| edge.order);
        let members: BTreeSet<JobId> = edges.iter().flat_map(|edge| [edge.parent, edge.child]).collect();
        let steps: Vec<_> = members.iter().filter_map(|id| tables.job_anywhere(*id)).map(WorkflowStep::of).collect();
        Ok((!steps.is_empty()).then_some(Workflow { id, steps, edges }))
    }

    async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
        check_limit(limit)?;
        let (tables, _) = self.open();
        // The edges of a schedule's queue name the schedule, which is no job.
        let of_jobs = |workflow: &JobId| tables.job_anywhere(*workflow).is_some();
        let all: BTreeSet<JobId> = tables.edges.values().map(|edge| edge.workflow).filter(of_jobs).collect();
        let mut left = all.into_iter().rev().filter(|id| after.is_none_or(|cursor| *id < cursor.0));
        let items: Vec<JobId> = left.by_ref().take(limit).collect();
        let next = items.last().copied().filter(|_| left.next().is_some()).map(JobCursor);
        Ok(Page { items, next })
    }

    async fn edges_from(&self, ids: &[JobId]) -> Result<Vec<Edge>, StoreError> {
        let (tables, _) = self.open();
        let mut edges: Vec<Edge> = tables.edges.values().filter(|edge| ids.contains(&edge.parent)).cloned().collect();
        edges.sort_by_key(|edge| (edge.parent, edge.order));
        Ok(edges)
    }

    async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.alerts.iter().filter(|alert| alert.job_id == id).map(|_| 1).sum())
    }
}

impl Tables {
    /// Returns the jobs that pass a filter, from the tables that it names.
    fn passing<'t>(&'t self, filter: &'t JobFilter) -> impl Iterator<Item = &'t JobRecord> {
        let live = self.jobs.values().filter(|_| filter.archive.has_live());
        let archived = self.archive.values().map(|one| &one.job).filter(|_| filter.archive.has_archived());
        live.chain(archived).filter(|job| filter.passes(&JobHead::of(job)))
    }

    /// The attempts of a job, archived or not, the first first.
    fn attempts_of(&self, id: JobId) -> impl DoubleEndedIterator<Item = &AttemptRecord> {
        let archived = self.archive.get(&id).into_iter().flat_map(|one| &one.attempts);
        archived.chain(self.attempts.range((id, 0)..=(id, u64::MAX)).map(|(_, attempt)| attempt))
    }
}

fn counted<'a>(jobs: impl Iterator<Item = &'a JobRecord>) -> StateCounts {
    let mut counts = StateCounts::new();
    for job in jobs {
        *counts.entry(job.state).or_default() += 1;
    }
    counts
}

pub(super) fn check_limit(limit: usize) -> Result<(), StoreError> {
    page::check_limit(limit).map_err(|error| StoreError::refused("listing jobs", error))
}
