//! What a broken store passes on: all but turns and the upkeep of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::flow::{Edge, Workflow};
use ratchet_core::insight::{LaneRange, RecentEnd};
use ratchet_core::node::QueueRecord;
use ratchet_core::page::{JobCursor, JobFilter, ListCursor, Page};
use ratchet_core::recurring::{ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord};
use ratchet_core::signal::Delivery;
use ratchet_core::store::{
    ArchiveRequest, ArchiveStore, Archived, BatchStore, BreakerStore, CanceledChildren, ControlStore, DeadLetterStore,
    Declared, Delivered, Expired, Fired, InsightStore, JobLogStore, JobStore, LastAttempts, PurgeLog, PurgedLog,
    QueryStore, QueueStore, RecurringStore, Replacement, ResourceStore, RetriedAll, SignalStore, StateCounts,
    SubmitOutcome, SubmitUnit, Submitted, Swept, Transitioned, WaitingLane,
};
use ratchet_core::{
    AttemptRecord, Batch, BreakerOrder, BusinessKey, CountBy, Counted, DeadLetter, DeadLetterFilter, Fence, Followed,
    IdempotencyKey, JobId, JobRecord, JobState, LogFilter, LogLine, LogPage, LogPlace, NewJob, NodeId, Principal,
    QueueName, ResourceLimit, ResourceName, ResourceRecord, ServiceName, SignalKey, SignalRecord, StoreError,
    Timestamp,
};

use super::BrokenStore;

#[async_trait]
impl JobStore for BrokenStore {
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let submitted = self.inner.submit(units).await?;
        self.changed();
        Ok(submitted)
    }

    async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
        self.inner.find(ids).await
    }

    async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError> {
        self.inner.find_by_business_key(key).await
    }

    async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError> {
        self.inner.find_by_idempotency_key(key).await
    }

    async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        let deleted = self.inner.delete(id).await?;
        if deleted {
            self.changed();
        }
        Ok(deleted)
    }
}

#[async_trait]
impl ControlStore for BrokenStore {
    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let changed = self.inner.cancel(id).await?;
        if changed.is_some() {
            self.changed();
        }
        Ok(changed)
    }

    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let changed = self.inner.pause(id).await?;
        if changed.is_some() {
            self.changed();
        }
        Ok(changed)
    }

    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let changed = self.inner.resume(id).await?;
        if changed.is_some() {
            self.changed();
        }
        Ok(changed)
    }

    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        let changed = self.inner.retry(id).await?;
        if changed.is_some() {
            self.changed();
        }
        Ok(changed)
    }

    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
        let replaced = self.inner.replace(old, new).await?;
        self.changed();
        Ok(replaced)
    }
}

#[async_trait]
impl BatchStore for BrokenStore {
    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let submitted = self.inner.extend_batch(id, children).await?;
        self.changed();
        Ok(submitted)
    }

    async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError> {
        let followed = self.inner.seal_batch(id).await?;
        self.changed();
        Ok(followed)
    }

    async fn find_batches(&self, ids: &[JobId]) -> Result<Vec<Batch>, StoreError> {
        self.inner.find_batches(ids).await
    }

    async fn list_batches(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<Batch>, StoreError> {
        self.inner.list_batches(after, limit).await
    }

    async fn canceling_batches(&self, limit: usize) -> Result<Vec<JobId>, StoreError> {
        self.inner.canceling_batches(limit).await
    }

    async fn cancel_children(
        &self,
        id: JobId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<CanceledChildren, StoreError> {
        let canceled = self.inner.cancel_children(id, after, limit).await?;
        self.changed();
        Ok(canceled)
    }
}

#[async_trait]
impl QueueStore for BrokenStore {
    async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.inner.pause_queue(queue).await
    }

    async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.inner.resume_queue(queue).await
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.inner.queues().await
    }
}

#[async_trait]
impl SignalStore for BrokenStore {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError> {
        let delivered = self.inner.deliver(delivery).await?;
        if !delivered.jobs.is_empty() || delivered.kept {
            self.changed();
        }
        Ok(delivered)
    }

    async fn expire(&self, limit: usize) -> Result<Expired, StoreError> {
        let expired = self.inner.expire(limit).await?;
        if !expired.jobs.is_empty() {
            self.changed();
        }
        Ok(expired)
    }

    async fn signals(&self, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError> {
        self.inner.signals(ids).await
    }

    async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
        let swept = self.inner.sweep_signals(after, limit).await?;
        if swept.removed > 0 {
            self.changed();
        }
        Ok(swept)
    }
}

#[async_trait]
impl ArchiveStore for BrokenStore {
    async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError> {
        self.inner.archive(request).await
    }

    async fn purge_archive(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        self.inner.purge_archive(age, limit).await
    }

    async fn purge_schedules(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        self.inner.purge_schedules(age, limit).await
    }
}

#[async_trait]
impl DeadLetterStore for BrokenStore {
    async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError> {
        self.inner.dead_letters(filter, after, limit).await
    }

    async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
        self.inner.retry_all(filter, limit).await
    }
}

#[async_trait]
impl ResourceStore for BrokenStore {
    async fn declare_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        self.inner.declare_resource(limit).await
    }

    async fn set_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        self.inner.set_resource(limit).await
    }

    async fn remove_resource(&self, name: &ResourceName) -> Result<bool, StoreError> {
        self.inner.remove_resource(name).await
    }

    async fn resources(&self) -> Result<Vec<ResourceRecord>, StoreError> {
        self.inner.resources().await
    }

    async fn permits_of(&self, node: NodeId) -> Result<Vec<Fence>, StoreError> {
        self.inner.permits_of(node).await
    }

    async fn release_permits(&self, attempts: &[Fence]) -> Result<(), StoreError> {
        self.inner.release_permits(attempts).await
    }
}

#[async_trait]
impl BreakerStore for BrokenStore {
    async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.inner.open_breaker(service).await
    }

    async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        self.inner.reset_breaker(service).await
    }

    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError> {
        self.inner.breaker_orders().await
    }
}

#[async_trait]
impl InsightStore for BrokenStore {
    async fn waiting_lanes(&self) -> Result<Vec<WaitingLane>, StoreError> {
        self.inner.waiting_lanes().await
    }

    async fn count_waiting(&self, ranges: &[LaneRange], most: u64) -> Result<Vec<u64>, StoreError> {
        self.inner.count_waiting(ranges, most).await
    }

    async fn recent_ends(&self, state: JobState, limit: usize) -> Result<Vec<RecentEnd>, StoreError> {
        self.inner.recent_ends(state, limit).await
    }

    async fn count_ended(&self, state: JobState, most: u64) -> Result<u64, StoreError> {
        self.inner.count_ended(state, most).await
    }

    async fn running_by_queue(&self) -> Result<BTreeMap<QueueName, u64>, StoreError> {
        self.inner.running_by_queue().await
    }

    async fn paused_queues(&self) -> Result<Vec<QueueName>, StoreError> {
        self.inner.paused_queues().await
    }

    async fn edges_to(&self, id: JobId) -> Result<Vec<Edge>, StoreError> {
        self.inner.edges_to(id).await
    }
}

#[async_trait]
impl JobLogStore for BrokenStore {
    async fn append_log(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        self.inner.append_log(lines).await
    }

    async fn read_log(
        &self,
        id: JobId,
        filter: &LogFilter,
        after: Option<LogPlace>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        self.inner.read_log(id, filter, after, limit).await
    }

    async fn purge_log(&self, request: &PurgeLog) -> Result<PurgedLog, StoreError> {
        self.inner.purge_log(request).await
    }
}

#[async_trait]
impl QueryStore for BrokenStore {
    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError> {
        self.inner.list(filter, after, limit).await
    }

    async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
        self.inner.count(filter, by).await
    }

    async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        self.inner.count_by_state().await
    }

    async fn count_by_state_of(&self, principal: &Principal) -> Result<StateCounts, StoreError> {
        self.inner.count_by_state_of(principal).await
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        self.inner.attempts(id).await
    }

    async fn last_attempts(&self, id: JobId, before: Option<u64>, limit: usize) -> Result<LastAttempts, StoreError> {
        self.inner.last_attempts(id, before, limit).await
    }

    async fn workflow(&self, id: JobId) -> Result<Option<Workflow>, StoreError> {
        self.inner.workflow(id).await
    }

    async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
        self.inner.workflows(after, limit).await
    }

    async fn edges_from(&self, ids: &[JobId]) -> Result<Vec<Edge>, StoreError> {
        self.inner.edges_from(ids).await
    }

    async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
        self.inner.alert_count(id).await
    }
}

#[async_trait]
impl RecurringStore for BrokenStore {
    async fn create_recurring(&self, new: &NewRecurring) -> Result<(), StoreError> {
        self.inner.create_recurring(new).await
    }

    async fn declare_recurring(&self, all: &[NewRecurring]) -> Result<Vec<Declared>, StoreError> {
        self.inner.declare_recurring(all).await
    }

    async fn find_recurring(&self, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError> {
        self.inner.find_recurring(ids).await
    }

    async fn list_recurring(
        &self,
        filter: &RecurringFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<RecurringRecord>, StoreError> {
        self.inner.list_recurring(filter, after, limit).await
    }

    async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
        self.inner.next_fire().await
    }

    async fn due_recurring(&self, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError> {
        self.inner.due_recurring(limit).await
    }

    async fn fire_recurring(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let fired = self.inner.fire_recurring(firings).await?;
        self.changed();
        Ok(fired)
    }

    async fn pause_recurring(&self, id: JobId) -> Result<bool, StoreError> {
        self.inner.pause_recurring(id).await
    }

    async fn resume_recurring(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
        self.inner.resume_recurring(id, next_fire).await
    }

    async fn cancel_recurring(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError> {
        self.inner.cancel_recurring(id, reason, idle_for).await
    }
}
