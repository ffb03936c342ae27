use std::collections::BTreeSet;

use async_trait::async_trait;

use super::MemoryStore;
use crate::error::{ErrorKind, StoreError};
use crate::flow::{Edge, Workflow, WorkflowStep};
use crate::id::JobId;
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
        let newest_first = tables.jobs.values().rev();
        let mut left = newest_first.filter(|job| after.is_none_or(|cursor| job.id < cursor.0) && passes(filter, job));
        let items: Vec<JobRecord> = left.by_ref().take(limit).cloned().collect();
        let more = left.next().is_some();
        let next = items.last().filter(|_| more).map(|job| JobCursor(job.id));
        Ok(Page { items, next })
    }

    async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        let (tables, _) = self.open();
        let mut counts = StateCounts::new();
        for job in tables.jobs.values() {
            *counts.entry(job.state).or_default() += 1;
        }
        Ok(counts)
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.attempts.range((id, 0)..=(id, u64::MAX)).map(|(_, attempt)| attempt.clone()).collect())
    }

    async fn workflow(&self, id: JobId) -> Result<Option<Workflow>, StoreError> {
        let (tables, _) = self.open();
        let mut edges: Vec<Edge> = tables.edges.values().filter(|edge| edge.workflow == id).cloned().collect();
        edges.sort_by_key(|edge| edge.order);
        let members: BTreeSet<JobId> = edges.iter().flat_map(|edge| [edge.parent, edge.child]).collect();
        let step = |job: &JobRecord| WorkflowStep {
            id: job.id,
            step: job.step.clone(),
            kind: job.spec.kind.clone(),
            job_type: job.job_type,
            state: job.state,
            error: job.last_error.clone(),
            canceled_because: job.canceled_because,
        };
        let steps: Vec<_> = members.iter().filter_map(|id| tables.jobs.get(id)).map(step).collect();
        Ok((!steps.is_empty()).then_some(Workflow { id, steps, edges }))
    }

    async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
        check_limit(limit)?;
        let (tables, _) = self.open();
        let all: BTreeSet<JobId> = tables.edges.values().map(|edge| edge.workflow).collect();
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

pub(super) fn check_limit(limit: usize) -> Result<(), StoreError> {
    if (1..=PAGE_LIMIT_MAX).contains(&limit) {
        return Ok(());
    }
    let problem = format!("`limit` is {limit}; give 1 to {PAGE_LIMIT_MAX}");
    Err(StoreError::new(ErrorKind::Invalid, "list jobs", problem))
}

fn passes(filter: &JobFilter, job: &JobRecord) -> bool {
    (filter.states.is_empty() || filter.states.contains(&job.state))
        && filter.kind.as_ref().is_none_or(|kind| job.spec.kind == *kind)
        && filter.queue.as_ref().is_none_or(|queue| job.spec.queue == *queue)
        && filter.tag.as_ref().is_none_or(|tag| job.spec.tags.contains(tag))
        && filter.parent.is_none_or(|parent| job.parent == Some(parent))
        && filter.business_key.as_ref().is_none_or(|key| job.business_key.as_ref() == Some(key))
}
