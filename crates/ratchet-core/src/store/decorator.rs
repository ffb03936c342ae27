use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    ArchiveRequest, ArchiveStore, Archived, BatchStore, BreakerStore, CanceledChildren, ClusterStore, ControlStore,
    DeadLetterStore, Declared, Delivered, Expired, Fired, HeartbeatStore, InsightStore, JobLogStore, JobStore,
    LastAttempts, Orphans, Progress, PurgeLog, PurgedLog, QueryStore, QueueStore, Replacement, ResourceStore,
    RetriedAll, Running, ScheduleStore, SignalStore, StateCounts, Store, SubmitOutcome, SubmitUnit, Submitted, Swept,
    Transitioned, Turn, TurnStore, WaitingLane, WatchGuard,
};
use crate::batch::Batch;
use crate::breaker_order::BreakerOrder;
use crate::claim::{ClaimRequest, Fence};
use crate::coordinator::ClusterCoordinator;
use crate::count::{CountBy, Counted};
use crate::dead_letter::{DeadLetter, DeadLetterFilter};
use crate::error::StoreError;
use crate::flow::{Edge, Workflow};
use crate::id::{JobId, NodeId};
use crate::insight::{LaneRange, RecentEnd};
use crate::job_log::{LogFilter, LogLine, LogPage, LogPlace};
use crate::name::{BusinessKey, IdempotencyKey, Principal, QueueName, ResourceName, ServiceName, SignalKey};
use crate::node::{NodeRecord, NodeRegistration, QueueRecord};
use crate::page::{JobCursor, JobFilter, ListCursor, Page};
use crate::record::{AttemptRecord, JobRecord};
use crate::resource::{ResourceLimit, ResourceRecord};
use crate::schedule::{ArchiveReason, Firing, NewSchedule, ScheduleFilter, ScheduleRecord};
use crate::settlement::{Followed, Settlement};
use crate::signal::{Delivery, SignalRecord};
use crate::spec::NewJob;
use crate::state::JobState;

/// A call of a store that a [`StoreDecorator`] passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Call {
    /// The name of the trait's method: `submit`.
    pub operation: &'static str,
    /// Whether it may change what is stored.
    pub access: Access,
}

/// Whether a call may change what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It changes nothing.
    Read,
    /// It may change something.
    Write,
}

/// Writes [`StoreDecorator`] and its blanket implementations from one table of every method of every store trait.
///
/// A method that is missing in the table leaves a blanket implementation incomplete, which the compiler refuses.
macro_rules! decorated {
    ($($trait:ident {
        $($access:ident fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*
    })*) => {
        /// A store that adds something to another one: measures its calls, delays them, refuses some, or breaks them for a test.
        ///
        /// Only [`inner`](Self::inner) is required. Every other method passes its call on to that store, through
        /// [`around`](Self::around); override those that do something else. Every decorator is a [`Store`].
        ///
        /// Import this trait, or the trait of the calls ([`JobStore`] and so on), but not both in one module: a decorator has the
        /// methods of both, under the same names.
        ///
        /// ```
        /// use std::future::Future;
        /// use std::sync::atomic::{AtomicU64, Ordering};
        ///
        /// use ratchet_core::store::{Access, Call, StoreDecorator};
        /// use ratchet_core::{MemoryStore, Store, StoreError};
        ///
        /// #[derive(Debug)]
        /// struct Counting {
        ///     inner: MemoryStore,
        ///     writes: AtomicU64,
        /// }
        ///
        /// impl StoreDecorator for Counting {
        ///     fn inner(&self) -> &dyn Store {
        ///         &self.inner
        ///     }
        ///
        ///     async fn around<T: Send>(
        ///         &self,
        ///         call: Call,
        ///         answer: impl Future<Output = Result<T, StoreError>> + Send,
        ///     ) -> Result<T, StoreError> {
        ///         if call.access == Access::Write {
        ///             self.writes.fetch_add(1, Ordering::Relaxed);
        ///         }
        ///         answer.await
        ///     }
        /// }
        ///
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), StoreError> {
        /// let store = Counting { inner: MemoryStore::manual().0, writes: AtomicU64::new(0) };
        /// store.submit(&[]).await?;
        /// store.count_by_state().await?;
        /// assert_eq!(store.writes.into_inner(), 1);
        /// # Ok(())
        /// # }
        /// ```
        pub trait StoreDecorator: fmt::Debug + Send + Sync {
            /// The store that calls are passed on to.
            fn inner(&self) -> &dyn Store;

            /// Runs a call that was not overridden: `answer` asks the [`inner`](Self::inner) store once it is awaited.
            ///
            /// The calls of a [`HeartbeatStore`] are no calls of the store; to see them, override [`open_heartbeat`](Self::open_heartbeat).
            fn around<T: Send>(
                &self,
                call: Call,
                answer: impl Future<Output = Result<T, StoreError>> + Send,
            ) -> impl Future<Output = Result<T, StoreError>> + Send {
                let _ = call;
                answer
            }

            /// Passes on [`Store::name`].
            fn name(&self) -> &'static str {
                self.inner().name()
            }

            /// Passes on [`Store::settles_beside_claims`].
            fn settles_beside_claims(&self) -> bool {
                self.inner().settles_beside_claims()
            }

            /// Passes on [`Store::watch`].
            fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
                self.inner().watch(changed)
            }

            /// Passes on [`Store::coordinator`].
            fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
                self.inner().coordinator()
            }

            $($(
                #[doc = concat!("Passes on [`", stringify!($trait), "::", stringify!($name), "`].")]
                fn $name(&self, $($arg: $type),*) -> impl Future<Output = Result<$out, StoreError>> + Send {
                    let call = Call { operation: stringify!($name), access: Access::$access };
                    async move { self.around(call, self.inner().$name($($arg),*)).await }
                }
            )*)*
        }

        $(
            #[async_trait]
            impl<D: StoreDecorator> $trait for D {
                $(
                    async fn $name(&self, $($arg: $type),*) -> Result<$out, StoreError> {
                        StoreDecorator::$name(self, $($arg),*).await
                    }
                )*
            }
        )*
    };
}

decorated! {
    JobStore {
        Write fn submit(units: &[SubmitUnit]) -> Vec<SubmitOutcome>;
        Read fn find(ids: &[JobId]) -> Vec<JobRecord>;
        Read fn find_by_business_key(key: &BusinessKey) -> Option<JobId>;
        Read fn find_by_idempotency_key(key: &IdempotencyKey) -> Option<JobId>;
        Write fn delete(id: JobId) -> bool;
    }
    TurnStore {
        Write fn settle_and_claim(settlements: &[Settlement], claim: Option<&ClaimRequest>) -> Turn;
        Read fn next_due(request: &ClaimRequest) -> Option<Duration>;
    }
    ControlStore {
        Write fn cancel(id: JobId) -> Option<Transitioned>;
        Write fn pause(id: JobId) -> Option<Transitioned>;
        Write fn resume(id: JobId) -> Option<Transitioned>;
        Write fn retry(id: JobId) -> Option<Transitioned>;
        Write fn replace(old: JobId, new: &NewJob) -> Replacement;
    }
    BatchStore {
        Write fn extend_batch(id: JobId, children: &[NewJob]) -> Vec<Submitted>;
        Write fn seal_batch(id: JobId) -> Vec<Followed>;
        Read fn find_batches(ids: &[JobId]) -> Vec<Batch>;
        Read fn list_batches(after: Option<JobCursor>, limit: usize) -> Page<Batch>;
        Read fn canceling_batches(limit: usize) -> Vec<JobId>;
        Write fn cancel_children(id: JobId, after: Option<JobId>, limit: usize) -> CanceledChildren;
    }
    ClusterStore {
        Read fn database_time() -> Timestamp;
        Write fn register(node: &NodeRegistration) -> ();
        Write fn deregister(node: NodeId) -> ();
        Read fn open_heartbeat() -> Box<dyn HeartbeatStore>;
        Read fn nodes() -> Vec<NodeRecord>;
        Write fn reconcile(node: NodeId, progress: &[Progress]) -> Vec<Running>;
        Write fn orphans(observer: NodeId, grace: Duration, limit: usize) -> Orphans;
        Write fn acquire_lease(name: &str, owner: NodeId, ttl: Duration) -> bool;
        Write fn release_lease(name: &str, owner: NodeId) -> ();
    }
    QueueStore {
        Write fn pause_queue(queue: &QueueName) -> bool;
        Write fn resume_queue(queue: &QueueName) -> bool;
        Read fn queues() -> Vec<QueueRecord>;
    }
    QueryStore {
        Read fn list(filter: &JobFilter, after: Option<ListCursor>, limit: usize) -> Page<JobRecord, ListCursor>;
        Read fn count(filter: &JobFilter, by: &CountBy) -> Counted;
        Read fn count_by_state() -> StateCounts;
        Read fn count_by_state_of(principal: &Principal) -> StateCounts;
        Read fn attempts(id: JobId) -> Vec<AttemptRecord>;
        Read fn last_attempts(id: JobId, before: Option<u64>, limit: usize) -> LastAttempts;
        Read fn workflow(id: JobId) -> Option<Workflow>;
        Read fn workflows(after: Option<JobCursor>, limit: usize) -> Page<JobId>;
        Read fn edges_from(ids: &[JobId]) -> Vec<Edge>;
        Read fn alert_count(id: JobId) -> u64;
    }
    ScheduleStore {
        Write fn create_schedule(new: &NewSchedule) -> ();
        Write fn declare_schedules(all: &[NewSchedule]) -> Vec<Declared>;
        Read fn find_schedules(ids: &[JobId]) -> Vec<ScheduleRecord>;
        Read fn list_schedules(filter: &ScheduleFilter, after: Option<JobCursor>, limit: usize) -> Page<ScheduleRecord>;
        Read fn next_fire() -> Option<Duration>;
        Read fn due_schedules(limit: usize) -> (Timestamp, Vec<ScheduleRecord>);
        Write fn fire_schedules(firings: &[Firing]) -> Vec<Fired>;
        Write fn pause_schedule(id: JobId) -> bool;
        Write fn resume_schedule(id: JobId, next_fire: Option<Timestamp>) -> bool;
        Write fn cancel_schedule(id: JobId, reason: ArchiveReason, idle_for: Option<Duration>) -> bool;
    }
    SignalStore {
        Write fn deliver(delivery: &Delivery) -> Delivered;
        Write fn expire(limit: usize) -> Expired;
        Read fn signals(ids: &[JobId]) -> Vec<SignalRecord>;
        Write fn sweep_signals(after: Option<&SignalKey>, limit: usize) -> Swept;
    }
    ArchiveStore {
        Write fn archive(request: &ArchiveRequest) -> Archived;
        Write fn purge_archive(age: Duration, limit: usize) -> u64;
        Write fn purge_schedules(age: Duration, limit: usize) -> u64;
    }
    DeadLetterStore {
        Read fn dead_letters(filter: &JobFilter, after: Option<JobCursor>, limit: usize) -> Page<DeadLetter>;
        Write fn retry_all(filter: &DeadLetterFilter, limit: usize) -> RetriedAll;
    }
    ResourceStore {
        Write fn declare_resource(limit: &ResourceLimit) -> ();
        Write fn set_resource(limit: &ResourceLimit) -> ();
        Write fn remove_resource(name: &ResourceName) -> bool;
        Read fn resources() -> Vec<ResourceRecord>;
        Read fn permits_of(node: NodeId) -> Vec<Fence>;
        Write fn release_permits(attempts: &[Fence]) -> ();
    }
    BreakerStore {
        Write fn open_breaker(service: &ServiceName) -> bool;
        Write fn reset_breaker(service: &ServiceName) -> bool;
        Read fn breaker_orders() -> Vec<BreakerOrder>;
    }
    InsightStore {
        Read fn waiting_lanes() -> Vec<WaitingLane>;
        Read fn count_waiting(ranges: &[LaneRange], most: u64) -> Vec<u64>;
        Read fn recent_ends(state: JobState, limit: usize) -> Vec<RecentEnd>;
        Read fn count_ended(state: JobState, most: u64) -> u64;
        Read fn running_by_queue() -> BTreeMap<QueueName, u64>;
        Read fn paused_queues() -> Vec<QueueName>;
        Read fn edges_to(id: JobId) -> Vec<Edge>;
    }
    JobLogStore {
        Write fn append_log(lines: Arc<[LogLine]>) -> ();
        Read fn read_log(id: JobId, filter: &LogFilter, after: Option<LogPlace>, limit: usize) -> LogPage;
        Write fn purge_log(request: &PurgeLog) -> PurgedLog;
    }
}

impl<D: StoreDecorator> Store for D {
    fn name(&self) -> &'static str {
        StoreDecorator::name(self)
    }

    fn settles_beside_claims(&self) -> bool {
        StoreDecorator::settles_beside_claims(self)
    }

    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
        StoreDecorator::watch(self, changed)
    }

    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        StoreDecorator::coordinator(self)
    }
}

/// A shared store is a store: what takes one takes the other.
impl StoreDecorator for Arc<dyn Store> {
    fn inner(&self) -> &dyn Store {
        &**self
    }
}

/// So that whoever gives a store away can go on using what else it has, such as what a decorator counts.
impl<S: Store> StoreDecorator for Arc<S> {
    fn inner(&self) -> &dyn Store {
        &**self
    }
}
