//! A store in memory: the model that real stores are compared with, and a store for tests.
//!
//! One mutex around plain collections, every rule from [`transition`](crate::transition), no cleverness. What it says
//! is right by reading; that it scans all jobs to claim one is its price. Nothing survives the process.

mod archive;
mod batches;
mod breakers;
mod cluster;
mod control;
mod dead_letters;
mod flow;
mod insight;
mod job_log;
mod jobs;
mod query;
mod queues;
mod schedules;
mod resources;
mod signals;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use self::archive::ArchivedJob;
use self::resources::Limit;
use crate::batch::Batch;
use crate::breaker_order::BreakerOrder;
use crate::claim::Fence;
use crate::clock::{Clock, ManualClock, later, to_micros};
use crate::error::StoreError;
use crate::flow::Edge;
use crate::id::{JobId, NodeId};
use crate::job_log::{LogLine, LogPlace};
use crate::name::{BusinessKey, IdempotencyKey, QueueName, ResourceName, ServiceName, SignalKey};
use crate::node::NodeRecord;
use crate::record::{AttemptRecord, JobRecord};
use crate::schedule::{ArchiveReason, ScheduleRecord};
use crate::signal::{Signal, SignalRecord};
use crate::store::{MovableClock, Store};
use crate::transition::{Event, Place, next};

/// A store in memory. Clones share the same jobs.
///
/// ```
/// use ratchet_core::{MemoryStore, Store};
///
/// let (store, clock) = MemoryStore::manual();
/// clock.advance(std::time::Duration::from_secs(60));
/// assert_eq!(store.name(), "memory");
/// ```
#[derive(Debug, Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    /// What [`MovableClock`] has added to the clock.
    offset_us: AtomicI64,
    tables: Mutex<Tables>,
}

/// Everything that is stored.
#[derive(Debug, Default, Clone)]
struct Tables {
    jobs: BTreeMap<JobId, JobRecord>,
    /// Who holds a key; an entry is there exactly while the holder's place [holds](Place::holds_business_key) it.
    business_keys: BTreeMap<BusinessKey, JobId>,
    /// By parent and child.
    edges: BTreeMap<(JobId, JobId), Edge>,
    signals: BTreeMap<JobId, SignalRecord>,
    /// Signals that are kept for a job to come, and until when.
    mailbox: BTreeMap<SignalKey, (Signal, Timestamp)>,
    batches: BTreeMap<JobId, Batch>,
    /// Never freed.
    idempotency_keys: BTreeMap<IdempotencyKey, JobId>,
    /// By job and version of the claim.
    attempts: BTreeMap<(JobId, u64), AttemptRecord>,
    alerts: Vec<Alert>,
    nodes: BTreeMap<NodeId, NodeRecord>,
    paused_queues: BTreeSet<QueueName>,
    leases: BTreeMap<String, Lease>,
    schedules: BTreeMap<JobId, ScheduleRecord>,
    schedule_archive: Vec<ArchivedSchedule>,
    archive: BTreeMap<JobId, ArchivedJob>,
    resources: BTreeMap<ResourceName, Limit>,
    /// By attempt.
    permits: BTreeMap<Fence, ResourceName>,
    breaker_orders: BTreeMap<ServiceName, BreakerOrder>,
    log: BTreeMap<(JobId, LogPlace), LogLine>,
}

#[derive(Debug, Clone)]
struct Alert {
    job_id: JobId,
    error_hash: String,
    at: Timestamp,
}

#[derive(Debug, Clone)]
struct ArchivedSchedule {
    schedule: ScheduleRecord,
    reason: ArchiveReason,
    archived_at: Timestamp,
}

#[derive(Debug, Clone)]
struct Lease {
    owner: NodeId,
    expires_at: Timestamp,
}

impl MemoryStore {
    /// An empty store that lives by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { shared: Arc::new(Shared { clock, offset_us: AtomicI64::new(0), tables: Mutex::default() }) }
    }

    /// An empty store with a clock that moves only when told to, from the start of 2026.
    pub fn manual() -> (Self, Arc<ManualClock>) {
        let start = Timestamp::from_second(1_767_225_600).expect("the year 2026 is within jiff's range");
        let clock = Arc::new(ManualClock::at(start));
        (Self::new(clock.clone()), clock)
    }

    /// The store's time, as precise as it is stored.
    fn now(&self) -> Timestamp {
        let offset = u64::try_from(self.shared.offset_us.load(Ordering::SeqCst)).unwrap_or(0);
        to_micros(later(self.shared.clock.now(), Duration::from_micros(offset)))
    }

    /// The tables, and the time at which they are looked at.
    fn open(&self) -> (MutexGuard<'_, Tables>, Timestamp) {
        let tables = self.shared.tables.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that of two calls the later one never sees the earlier time.
        let now = self.now();
        (tables, now)
    }
}

impl Store for MemoryStore {
    fn name(&self) -> &'static str {
        "memory"
    }
}

impl MovableClock for MemoryStore {
    fn advance_clock(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).expect("a test does not advance by 290,000 years");
        self.shared.offset_us.fetch_add(by, Ordering::SeqCst);
    }
}

impl Tables {
    /// Lets `event` happen to a job: its place, its version and its hold on its business key change together.
    ///
    /// Returns the job as it was and as it is; `None`, and nothing has changed, if there is no such job or the event
    /// may not happen where it stands. The only error is a business key that another job holds; nothing has changed then
    /// either.
    fn transition(&mut self, id: JobId, event: Event) -> Result<Option<(JobRecord, &mut JobRecord)>, StoreError> {
        let Some(job) = self.jobs.get_mut(&id) else { return Ok(None) };
        let from = job.place();
        let Some(to) = next(from, event) else { return Ok(None) };
        if let Some(key) = &job.business_key {
            match (from.holds_business_key(), to.holds_business_key()) {
                (true, false) => {
                    self.business_keys.remove(key);
                }
                (false, true) => {
                    if let Some(holder) = self.business_keys.get(key) {
                        return Err(StoreError::duplicate(format!("{event} job {id}"), key.clone(), *holder));
                    }
                    self.business_keys.insert(key.clone(), id);
                }
                _ => {}
            }
        }
        let before = job.clone();
        job.state = to.state();
        job.paused_from = to.paused_from();
        job.version += 1;
        if to.state().is_terminal() {
            job.waits_for = 0;
        }
        if from == Place::Running {
            job.picked_by = None;
            job.picked_at = None;
            job.progress = None;
            job.deferred_until = None;
        }
        Ok(Some((before, job)))
    }

    /// Whether the node is registered and was not declared dead.
    fn is_alive(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.dead_at.is_none())
    }
}
