use std::collections::BTreeSet;

use async_trait::async_trait;

use super::MemoryStore;
use crate::error::{ErrorKind, StoreError};
use crate::flow::{Edge, Workflow, WorkflowStep};
use crate::id::JobId;
use crate::name::Principal;
use crate::page::{JobCursor, JobFilter, PAGE_LIMIT_MAX, Page};
use crate::record::{AttemptRecord, JobRecord};
use crate::store::{QueryStore, StateCounts};

#[async_trait]
impl QueryStore for MemoryStore {
    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord>, StoreError> {
        check_limit(limit)?;
        let (tables, _) = self.open();
        let live = tables.jobs.values().filter(|_| filter.archive.has_live());
        let archived = tables.archive.values().map(|one| &one.job).filter(|_| filter.archive.has_archived());
        let mut found: Vec<&JobRecord> = live.chain(archived).filter(|job| passes(filter, after, job)).collect();
        found.sort_unstable_by_key(|job| std::cmp::Reverse(job.id));
        let more = found.len() > limit;
        let items: Vec<JobRecord> = found.into_iter().take(limit).cloned().collect();
        let next = items.last().filter(|_| more).map(|job| JobCursor(job.id));
        Ok(Page { items, next })
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
        if let Some(one) = tables.archive.get(&id) {
            return Ok(one.attempts.clone());
        }
        Ok(tables.attempts.range((id, 0)..=(id, u64::MAX)).map(|(_, attempt)| attempt.clone()).collect())
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

fn counted<'a>(jobs: impl Iterator<Item = &'a JobRecord>) -> StateCounts {
    let mut counts = StateCounts::new();
    for job in jobs {
        *counts.entry(job.state).or_default() += 1;
    }
    counts
}

pub(super) fn check_limit(limit: usize) -> Result<(), StoreError> {
    if (1..=PAGE_LIMIT_MAX).contains(&limit) {
        return Ok(());
    }
    let problem = format!("`limit` is {limit}; give 1 to {PAGE_LIMIT_MAX}");
    Err(StoreError::new(ErrorKind::Invalid, "list jobs", problem))
}

pub(super) fn passes(filter: &JobFilter, after: Option<JobCursor>, job: &JobRecord) -> bool {
    let (from, until) = filter.id_range(after);
    (from..until).contains(&job.id)
        && (filter.states.is_empty() || filter.states.contains(&job.state))
        && filter.kind.as_ref().is_none_or(|kind| job.spec.kind == *kind)
        && filter.queue.as_ref().is_none_or(|queue| job.spec.queue == *queue)
        && filter.tag.as_ref().is_none_or(|tag| job.spec.tags.contains(tag))
        && filter.parent.is_none_or(|parent| job.parent == Some(parent))
        && filter.business_key.as_ref().is_none_or(|key| job.business_key.as_ref() == Some(key))
        && filter.principal.as_ref().is_none_or(|principal| job.spec.principal.as_ref() == Some(principal))
}
