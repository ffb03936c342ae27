use ratchet_core::node::QueueRecord;
use ratchet_core::page::{ArchiveScope, JobFilter, ListCursor, ListOrder, Page};
use ratchet_core::record::{AttemptRecord, AttemptTiming, JobRecord};
use ratchet_core::store::{LastAttempts, StateCounts, StoreDecorator};
use ratchet_core::{AttemptStatus, CountBy, Counted, JobId, JobState, NodeId, Principal, QueueName, Store, StoreError};

use super::{Broken, Flaw, Layer, mangled};

#[derive(Debug)]
pub(super) enum Queries {}

impl StoreDecorator for Layer<Queries> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError> {
        let (mut filter, mut after, mut limit) = (filter.clone(), after, limit);
        match self.flaw {
            Flaw::IgnoresFilters => filter = unfiltered(&filter),
            Flaw::IgnoresOrder => {
                filter.order = ListOrder::Newest;
                after = after.map(|cursor| ListCursor::newest(cursor.last()));
            }
            Flaw::TakesAnyCursor if filter.check_cursor(after).is_err() => after = None,
            Flaw::MixesArchive => filter.archive = ArchiveScope::Both,
            Flaw::HidesArchive => filter.archive = ArchiveScope::Live,
            Flaw::ForgetsCursor => after = None,
            Flaw::AnyLimit => limit = limit.clamp(1, 1_000),
            _ => {}
        }
        let mut page = self.good.list(&filter, after, limit).await?;
        match self.flaw {
            Flaw::ListsOldestFirst => page.items.reverse(),
            Flaw::ListsPerTag => {
                page.items =
                    page.items.into_iter().flat_map(|job| vec![job.clone(); job.spec.tags.len().max(1)]).collect();
            }
            Flaw::AlwaysMore if page.items.len() == limit => {
                page.next = page.items.last().map(|job| ListCursor::newest(job.id));
            }
            _ => {}
        }
        Ok(page)
    }

    async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
        let mut filter = filter.clone();
        match self.flaw {
            Flaw::IgnoresFilters => filter = unfiltered(&filter),
            Flaw::MixesArchive => filter.archive = ArchiveScope::Both,
            Flaw::HidesArchive => filter.archive = ArchiveScope::Live,
            _ => {}
        }
        let mut counted = self.good.count(&filter, by).await?;
        if self.has(Flaw::CountsNothing) {
            let in_none = counted.jobs - counted.groups.values().sum::<u64>();
            counted.groups.insert(String::new(), in_none);
        }
        Ok(counted)
    }

    async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        let mut counts = self.good.count_by_state().await?;
        if self.has(Flaw::CountsNothing) {
            for state in JobState::ALL {
                counts.entry(state).or_default();
            }
        }
        Ok(counts)
    }

    async fn count_by_state_of(&self, principal: &Principal) -> Result<StateCounts, StoreError> {
        if self.has(Flaw::IgnoresFilters) {
            return self.good.count_by_state().await;
        }
        self.good.count_by_state_of(principal).await
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        let mut attempts = self.good.attempts(id).await?;
        match self.flaw {
            Flaw::ForgetsArchivedHistory if self.is_archived(id).await => attempts.truncate(1),
            Flaw::RecordsTwice => attempts = attempts.iter().flat_map(|a| [a.clone(), a.clone()]).collect(),
            Flaw::MixesAttempts => {
                attempts.clear();
                let all = self.seen().jobs.clone();
                for job in all {
                    attempts.extend(self.good.attempts(job).await?);
                }
            }
            Flaw::CancelsWithoutRecord => attempts.retain(|attempt| attempt.status != AttemptStatus::Canceled),
            Flaw::LosesSuccesses => attempts.retain(|attempt| attempt.status != AttemptStatus::Succeeded),
            Flaw::InventsAttempts if attempts.is_empty() => attempts.extend(self.invented(id).await),
            Flaw::DeletesAllHistory if self.seen().deleted => attempts.clear(),
            Flaw::MangledText => {
                for attempt in &mut attempts {
                    attempt.error = attempt.error.take().map(|text| mangled(&text));
                }
            }
            _ => {}
        }
        Ok(attempts)
    }

    async fn last_attempts(&self, id: JobId, before: Option<u64>, limit: usize) -> Result<LastAttempts, StoreError> {
        let before = before.filter(|_| !self.has(Flaw::ForgetsCursor));
        let limit = if self.has(Flaw::AnyLimit) { limit.clamp(1, 1_000) } else { limit };
        let mut last = self.good.last_attempts(id, before, limit).await?;
        match self.flaw {
            Flaw::ListsOldestFirst => last.items.reverse(),
            Flaw::ForgetsArchivedHistory if self.is_archived(id).await => last = LastAttempts::default(),
            _ => {}
        }
        Ok(last)
    }

    async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
        let count = self.good.alert_count(id).await?;
        Ok(match self.flaw {
            Flaw::AlertsAlways => self.seen().settled.get(&id).copied().unwrap_or(0),
            Flaw::AlertsOnce => count.min(1),
            _ => count,
        })
    }

    async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        match self.flaw {
            Flaw::IgnoresQueuePause => Ok(true),
            Flaw::AlwaysSaysPaused => self.good.pause_queue(queue).await.map(|_| true),
            Flaw::CancelsWithQueue => {
                let filter = JobFilter { queue: Some(queue.clone()), ..JobFilter::default() };
                for job in self.good.list(&filter, None, 1_000).await?.items {
                    self.good.cancel(job.id).await?;
                }
                self.good.pause_queue(queue).await
            }
            _ => self.good.pause_queue(queue).await,
        }
    }

    async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let resumed = self.good.resume_queue(queue).await?;
        Ok(resumed || self.has(Flaw::AlwaysSaysPaused))
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        let mut queues = self.good.queues().await?;
        if self.has(Flaw::HidesEmptyQueues) {
            queues.retain(|queue| !queue.live.is_empty());
        }
        Ok(queues)
    }
}

fn unfiltered(filter: &JobFilter) -> JobFilter {
    JobFilter { archive: filter.archive, order: filter.order, ..JobFilter::default() }
}

impl Broken {
    async fn invented(&self, id: JobId) -> Option<AttemptRecord> {
        let job = self.inner_job(id).await?;
        let (at, zero) = (job.created_at, std::time::Duration::ZERO);
        Some(AttemptRecord {
            job_id: id,
            version: job.version,
            attempt: 1,
            node: NodeId(uuid::Uuid::nil()),
            status: AttemptStatus::Canceled,
            timing: AttemptTiming { started_at: at, ended_at: at, duration: zero, queue_wait: zero },
            error_class: None,
            error: None,
        })
    }
}
