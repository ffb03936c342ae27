use async_trait::async_trait;

use super::query::{check_limit, passes};
use super::{MemoryStore, Tables};
use crate::dead_letter::{DeadLetter, DeadLetterFilter, has_failed};
use crate::error::StoreError;
use crate::flow::Flow;
use crate::id::JobId;
use crate::limits::check_retry_count;
use crate::page::{JobCursor, JobFilter, ListCursor, Page};
use crate::record::JobRecord;
use crate::state::JobState;
use crate::store::{DeadLetterStore, LETTERS_LOOKED_AT_MAX, RetriedAll};

#[async_trait]
impl DeadLetterStore for MemoryStore {
    async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError> {
        check_limit(limit)?;
        let (tables, _) = self.open();
        let mut items = tables.letters(filter, after, limit + 1);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|letter| JobCursor(letter.id));
        Ok(Page { items, next })
    }

    async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
        check_retry_count(limit).map_err(|refused| StoreError::refused("retrying dead letters", refused))?;
        let (mut tables, now) = self.open();
        let before = tables.clone();
        let letters = tables.letters(&filter.jobs, None, LETTERS_LOOKED_AT_MAX);
        let chosen = letters.iter().filter(|letter| filter.passes(letter));
        let call: Vec<JobId> = chosen.map(|letter| letter.id).collect();
        let mut retried = RetriedAll::default();
        let mut held = Vec::new();
        let mut left = limit;
        for id in call.iter().copied() {
            if left == 0 {
                break;
            }
            let untold = tables.jobs.get(&id).is_some_and(|job| tables.untold(job).is_some());
            if untold || tables.batch_is_over(id) {
                retried.passed_over += 1;
                continue;
            }
            left -= 1;
            match tables.retry(id, now).map_err(|error| error.of_letter(id, &call)) {
                Ok(None) => {}
                Ok(Some(done)) => {
                    retried.count += 1;
                    retried.revived += done.followed.len() as u64;
                    let can_run = done.job.state == JobState::Pending;
                    retried.priority = retried.priority.max(can_run.then_some(done.job.spec.priority));
                }
                // Whatever it has changed is put back below.
                Err(error) if !error.held().is_empty() => held.extend_from_slice(error.held()),
                Err(error) => {
                    *tables = before;
                    return Err(error);
                }
            }
        }
        if !held.is_empty() {
            *tables = before;
            return Err(StoreError::held_keys("retry dead letters", held));
        }
        Ok(retried)
    }
}

impl Tables {
    fn letters(&self, filter: &JobFilter, after: Option<JobCursor>, limit: usize) -> Vec<DeadLetter> {
        if !has_failed(filter) {
            return Vec::new();
        }
        let after = after.map(ListCursor::from);
        let failed = self.jobs.values().rev().filter(|job| job.state == JobState::Failed);
        failed.filter(|job| passes(filter, after, job)).filter_map(|job| self.letter(job)).take(limit).collect()
    }

    fn letter(&self, job: &JobRecord) -> Option<DeadLetter> {
        let last = self.attempts.range((job.id, 0)..=(job.id, u64::MAX)).next_back();
        Some(DeadLetter {
            id: job.id,
            kind: job.spec.kind.clone(),
            queue: job.spec.queue.clone(),
            error_class: last.and_then(|(_, attempt)| attempt.error_class.clone()),
            error: job.last_error.clone().unwrap_or_default(),
            failed_at: job.terminated_at?,
        })
    }

    /// Whether a job is a child of a batch that counts it as failed for good.
    fn batch_is_over(&self, id: JobId) -> bool {
        let child = self.jobs.get(&id).filter(|job| job.flow.has(Flow::BATCH_CHILD));
        let Some(parent) = child.and_then(|job| job.parent) else { return false };
        let open = self.batches.get(&parent);
        open.is_none_or(|batch| batch.completed_at.is_some() || batch.counts.is_complete())
    }
}
