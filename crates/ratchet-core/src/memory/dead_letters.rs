use async_trait::async_trait;
use jiff::Timestamp;

use super::query::check_limit;
use super::{MemoryStore, Tables};
use crate::batch::Batch;
use crate::control::{BulkRetry, LetterTies};
use crate::dead_letter::{DeadLetter, DeadLetterFilter, has_failed};
use crate::error::StoreError;
use crate::job_head::JobHead;
use crate::page::{JobCursor, JobFilter, ListCursor, Page};
use crate::record::JobRecord;
use crate::state::JobState;
use crate::store::{DEAD_LETTERS_EXAMINED_MAX, DeadLetterStore, RetriedAll};

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
        let mut items = tables.dead_letters(filter, after, limit + 1);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|letter| JobCursor(letter.id));
        Ok(Page { items, next })
    }

    async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
        let mut retry = BulkRetry::new(limit)?;
        let (mut tables, now) = self.open();
        let dead_letters = tables.dead_letters(&filter.jobs, None, DEAD_LETTERS_EXAMINED_MAX);
        let meant = dead_letters.iter().filter(|letter| filter.passes(letter));
        let meant: Vec<JobRecord> = meant.filter_map(|letter| tables.jobs.get(&letter.id).cloned()).collect();
        let ties = tables.dead_letter_ties(&meant);
        retry.judge(meant, &ties);
        let before = tables.clone();
        let retried = tables.retry_dead_letters(&retry, now);
        if retried.is_err() {
            *tables = before;
        }
        retried
    }
}

impl Tables {
    fn dead_letters(&self, filter: &JobFilter, after: Option<JobCursor>, limit: usize) -> Vec<DeadLetter> {
        if !has_failed(filter) {
            return Vec::new();
        }
        let (from, until) = filter.id_range(after.map(ListCursor::from));
        let listed = self.jobs.values().rev().filter(|job| (from..until).contains(&job.id));
        let failed = listed.filter(|job| job.state == JobState::Failed && filter.passes(&JobHead::of(job)));
        failed.filter_map(|job| self.dead_letter(job)).take(limit).collect()
    }

    fn dead_letter(&self, job: &JobRecord) -> Option<DeadLetter> {
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

    fn dead_letter_ties(&self, jobs: &[JobRecord]) -> LetterTies {
        let undecidable = jobs.iter().filter(|job| self.undecidable(job).is_some()).map(|job| job.id).collect();
        let batches: Vec<Batch> =
            LetterTies::batches(jobs).iter().filter_map(|id| self.batches.get(id).cloned()).collect();
        LetterTies::new(undecidable, &batches)
    }

    /// Retries the dead letters that were chosen; after an error the caller puts back what was.
    fn retry_dead_letters(&mut self, retry: &BulkRetry, now: Timestamp) -> Result<RetriedAll, StoreError> {
        retry.refuse_held(retry.held_keys(|key| self.business_keys.get(key).copied()))?;
        for letter in retry.plain() {
            self.retry_row(letter.id, now)?;
        }
        for (batch, count) in retry.uncounted() {
            self.uncount_failures(batch, count)?;
        }
        let mut tied = Vec::new();
        for id in retry.tied() {
            tied.extend(self.retry(*id, now).map_err(|error| retry.refused(*id, error))?);
        }
        Ok(retry.result(&tied))
    }
}
