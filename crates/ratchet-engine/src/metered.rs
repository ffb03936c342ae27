//! The one place that every call of a store passes: how long each takes, by operation and outcome.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ratchet_core::claim::ClaimRequest;
use ratchet_core::flow::{Edge, Workflow};
use ratchet_core::insight::{LaneRange, RecentEnd};
use ratchet_core::node::{NodeRecord, NodeRegistration, NodeVitals, QueueRecord};
use ratchet_core::page::{JobCursor, JobFilter, ListCursor, Page};
use ratchet_core::recurring::{ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord};
use ratchet_core::signal::Delivery;
use ratchet_core::store::{
    ArchiveRequest, ArchiveStore, Archived, BatchStore, BreakerStore, CanceledChildren, ClusterStore, ControlStore,
    DeadLetterStore, Declared, Delivered, Expired, Fired, InsightStore, JobLogStore, JobStore, LastAttempts, Orphans,
    Progress, PulseStore, PurgeLog, PurgedLog, QueryStore, QueueStore, RecurringStore, Replacement, ResourceStore,
    RetriedAll, Running, SignalStore, StateCounts, Store, SubmitOutcome, SubmitUnit, Submitted, Swept, Transitioned,
    Turn, TurnStore, WaitingLane, WatchGuard,
};
use ratchet_core::{
    AttemptRecord, Batch, BreakerOrder, BusinessKey, ClusterCoordinator, CountBy, Counted, DeadLetter,
    DeadLetterFilter, Fence, Followed, IdempotencyKey, JobId, JobRecord, JobState, LogFilter, LogLine, LogPage,
    LogPlace, NewJob, NodeId, Principal, QueueName, ResourceLimit, ResourceName, ResourceRecord, ServiceName,
    Settlement, SignalKey, SignalRecord, StoreError, Timestamp,
};

use crate::metrics::{Meter, names};

/// A store whose calls are timed.
pub(crate) struct Metered {
    store: Arc<dyn Store>,
    meter: Meter,
}

impl Metered {
    pub(crate) fn over(store: Arc<dyn Store>, meter: Meter) -> Arc<dyn Store> {
        Arc::new(Self { store, meter })
    }
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// A call that is under way. One that is dropped before its answer was given up: by a deadline, or by whoever waited for it.
struct Call<'a> {
    meter: &'a Meter,
    operation: &'static str,
    begun: Instant,
    outcome: &'static str,
}

impl<'a> Call<'a> {
    fn begin(meter: &'a Meter, operation: &'static str) -> Self {
        Self { meter, operation, begun: Instant::now(), outcome: "given_up" }
    }

    fn end<T>(mut self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        self.outcome = if answer.is_ok() { "ok" } else { "error" };
        answer
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let labels = [("operation", self.operation), ("outcome", self.outcome)];
        self.meter.time(names::STORE_OPERATION, &labels, self.begun.elapsed());
    }
}

macro_rules! timed {
    ($trait:ident { $(fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)* }) => {
        #[async_trait]
        impl $trait for Metered {
            $(async fn $name(&self, $($arg: $type),*) -> Result<$out, StoreError> {
                let call = Call::begin(&self.meter, stringify!($name));
                call.end(self.store.$name($($arg),*).await)
            })*
        }
    };
}

timed!(JobStore {
    fn submit(units: &[SubmitUnit]) -> Vec<SubmitOutcome>;
    fn find(ids: &[JobId]) -> Vec<JobRecord>;
    fn find_by_business_key(key: &BusinessKey) -> Option<JobId>;
    fn find_by_idempotency_key(key: &IdempotencyKey) -> Option<JobId>;
    fn delete(id: JobId) -> bool;
    fn keep(id: JobId) -> ();
});
timed!(TurnStore {
    fn turn(settlements: &[Settlement], claim: Option<&ClaimRequest>) -> Turn;
    fn next_due(request: &ClaimRequest) -> Option<Duration>;
});
timed!(ControlStore {
    fn cancel(id: JobId) -> Option<Transitioned>;
    fn pause(id: JobId) -> Option<Transitioned>;
    fn resume(id: JobId) -> Option<Transitioned>;
    fn retry(id: JobId) -> Option<Transitioned>;
    fn release(id: JobId) -> Option<Transitioned>;
    fn replace(old: JobId, new: &NewJob) -> Replacement;
});
timed!(BatchStore {
    fn extend_batch(id: JobId, children: &[NewJob]) -> Vec<Submitted>;
    fn seal_batch(id: JobId) -> Vec<Followed>;
    fn find_batches(ids: &[JobId]) -> Vec<Batch>;
    fn list_batches(after: Option<JobCursor>, limit: usize) -> Page<Batch>;
    fn canceling_batches(limit: usize) -> Vec<JobId>;
    fn cancel_children(id: JobId, after: Option<JobId>, limit: usize) -> CanceledChildren;
});
timed!(QueueStore {
    fn pause_queue(queue: &QueueName) -> bool;
    fn resume_queue(queue: &QueueName) -> bool;
    fn queues() -> Vec<QueueRecord>;
});
timed!(QueryStore {
    fn list(filter: &JobFilter, after: Option<ListCursor>, limit: usize) -> Page<JobRecord, ListCursor>;
    fn count(filter: &JobFilter, by: &CountBy) -> Counted;
    fn last_attempts(id: JobId, before: Option<u64>, limit: usize) -> LastAttempts;
    fn count_by_state() -> StateCounts;
    fn count_by_state_of(principal: &Principal) -> StateCounts;
    fn attempts(id: JobId) -> Vec<AttemptRecord>;
    fn workflow(id: JobId) -> Option<Workflow>;
    fn workflows(after: Option<JobCursor>, limit: usize) -> Page<JobId>;
    fn edges_from(ids: &[JobId]) -> Vec<Edge>;
    fn alert_count(id: JobId) -> u64;
});
timed!(RecurringStore {
    fn create_recurring(new: &NewRecurring) -> ();
    fn declare_recurring(new: &NewRecurring) -> Declared;
    fn declare_all_recurring(all: &[NewRecurring]) -> Vec<Declared>;
    fn find_recurring(ids: &[JobId]) -> Vec<RecurringRecord>;
    fn list_recurring(filter: &RecurringFilter, after: Option<JobCursor>, limit: usize) -> Page<RecurringRecord>;
    fn next_fire() -> Option<Duration>;
    fn due_recurring(limit: usize) -> (Timestamp, Vec<RecurringRecord>);
    fn fire_recurring(firings: &[Firing]) -> Vec<Fired>;
    fn pause_recurring(id: JobId) -> bool;
    fn resume_recurring(id: JobId, next_fire: Option<Timestamp>) -> bool;
    fn cancel_recurring(id: JobId, reason: ArchiveReason, idle_for: Option<Duration>) -> bool;
});
timed!(SignalStore {
    fn deliver(delivery: &Delivery) -> Delivered;
    fn expire(limit: usize) -> Expired;
    fn signals(ids: &[JobId]) -> Vec<SignalRecord>;
    fn sweep_signals(after: Option<&SignalKey>, limit: usize) -> Swept;
});
timed!(ArchiveStore {
    fn archive(request: &ArchiveRequest) -> Archived;
    fn purge_archive(age: Duration, limit: usize) -> u64;
    fn purge_schedules(age: Duration, limit: usize) -> u64;
});
timed!(DeadLetterStore {
    fn dead_letters(filter: &JobFilter, after: Option<JobCursor>, limit: usize) -> Page<DeadLetter>;
    fn retry_all(filter: &DeadLetterFilter, limit: usize) -> RetriedAll;
});
timed!(ResourceStore {
    fn declare_resource(limit: &ResourceLimit) -> ();
    fn set_resource(limit: &ResourceLimit) -> ();
    fn remove_resource(name: &ResourceName) -> bool;
    fn permits_of(node: NodeId) -> Vec<Fence>;
    fn resources() -> Vec<ResourceRecord>;
    fn release_permits(attempts: &[Fence]) -> ();
});
timed!(BreakerStore {
    fn open_breaker(service: &ServiceName) -> bool;
    fn reset_breaker(service: &ServiceName) -> bool;
    fn breaker_orders() -> Vec<BreakerOrder>;
});
timed!(InsightStore {
    fn waiting_lanes() -> Vec<WaitingLane>;
    fn count_waiting(ranges: &[LaneRange], most: u64) -> Vec<u64>;
    fn recent_ends(state: JobState, limit: usize) -> Vec<RecentEnd>;
    fn count_ended(state: JobState, most: u64) -> u64;
    fn running_by_queue() -> std::collections::BTreeMap<QueueName, u64>;
    fn paused_queues() -> Vec<QueueName>;
    fn edges_to(id: JobId) -> Vec<Edge>;
});
timed!(JobLogStore {
    fn append_log(lines: Arc<[LogLine]>) -> ();
    fn read_log(id: JobId, filter: &LogFilter, after: Option<LogPlace>, limit: usize) -> LogPage;
    fn purge_log(request: &PurgeLog) -> PurgedLog;
});

#[async_trait]
impl ClusterStore for Metered {
    async fn database_time(&self) -> Result<Timestamp, StoreError> {
        let call = Call::begin(&self.meter, "database_time");
        call.end(self.store.database_time().await)
    }
    async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError> {
        let call = Call::begin(&self.meter, "register");
        call.end(self.store.register(node).await)
    }
    async fn deregister(&self, node: NodeId) -> Result<(), StoreError> {
        let call = Call::begin(&self.meter, "deregister");
        call.end(self.store.deregister(node).await)
    }
    async fn open_pulse(&self) -> Result<Box<dyn PulseStore>, StoreError> {
        let call = Call::begin(&self.meter, "open_pulse");
        let pulse = call.end(self.store.open_pulse().await)?;
        Ok(Box::new(MeteredPulse { pulse, meter: self.meter.clone() }))
    }
    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let call = Call::begin(&self.meter, "nodes");
        call.end(self.store.nodes().await)
    }
    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
        let call = Call::begin(&self.meter, "reconcile");
        call.end(self.store.reconcile(node, progress).await)
    }
    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError> {
        let call = Call::begin(&self.meter, "orphans");
        call.end(self.store.orphans(observer, grace, limit).await)
    }
    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let call = Call::begin(&self.meter, "acquire_lease");
        call.end(self.store.acquire_lease(name, owner, ttl).await)
    }
    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
        let call = Call::begin(&self.meter, "release_lease");
        call.end(self.store.release_lease(name, owner).await)
    }
}

struct MeteredPulse {
    pulse: Box<dyn PulseStore>,
    meter: Meter,
}

#[async_trait]
impl PulseStore for MeteredPulse {
    async fn beat(&mut self, node: NodeId, vitals: NodeVitals) -> Result<bool, StoreError> {
        let call = Call::begin(&self.meter, "heartbeat");
        call.end(self.pulse.beat(node, vitals).await)
    }
    async fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        let call = Call::begin(&self.meter, "database_time");
        call.end(self.pulse.database_time().await)
    }
    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError> {
        let call = Call::begin(&self.meter, "register");
        call.end(self.pulse.register(node).await)
    }
}

impl Store for Metered {
    fn name(&self) -> &'static str {
        self.store.name()
    }

    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
        self.store.watch(changed)
    }

    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        self.store.coordinator()
    }
}
