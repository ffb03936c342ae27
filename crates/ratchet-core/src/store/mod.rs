//! The traits that a store implements, split by who reads them.
//!
//! Every trait is object-safe; the engine and the client hold an `Arc<dyn Store>`. The suite in `ratchet-conformance` is the
//! executable form of this contract. What any store must guarantee, on tables and on documents alike:
//!
//! - **Atomic calls.** A call that writes happens as a whole or not at all, with everything that its documentation says
//!   follows from it. A call that fails with [`Unavailable`](crate::ErrorKind::Unavailable) may or may not have happened; it
//!   can be repeated, and the repetition changes nothing that the first has changed.
//! - **No lost update.** Two concurrent calls behave as if one came after the other wherever they touch the same job, key,
//!   batch, permit or lease. Whether that is done by locks, by versions that are compared or by retries is the store's choice;
//!   conflicts that it can resolve by repeating its own transaction are resolved before the caller sees them.
//! - **One clock.** Times are compared and written by the database's clock. Ages and delays travel as durations.
//! - **Rules come from the core.** A store reads rows, asks a pure function of this crate and writes what it returns.
//! - **Bounded work.** A call examines no more than its limit, or the bound that it documents, however much is stored.

mod jobs;
mod turn;
mod control;
mod batches;
mod cluster;
mod queues;
mod query;
mod schedules;
mod signals;
mod archive;
mod dead_letters;
mod resources;
mod breakers;
mod insight;
mod job_log;
mod decorator;

use std::sync::Arc;
use std::time::Duration;

pub use archive::{ArchiveRequest, ArchiveStore, Archived, Removal};
pub use batches::{BatchStore, CanceledChildren};
pub use breakers::BreakerStore;
pub use cluster::{ClusterStore, HeartbeatStore, Orphans, Progress, Running};
pub use control::{ControlStore, Replacement, Transitioned};
pub use dead_letters::{DEAD_LETTERS_EXAMINED_MAX, DeadLetterStore, LETTER_PAGES_MAX, RetriedAll};
pub use decorator::{Access, Call, StoreDecorator};
pub use insight::{InsightStore, LANES_MAX, WaitingLane};
pub use job_log::{JobLogStore, PurgeLog, PurgedLog};
pub use jobs::{JobStore, SubmitOutcome, SubmitUnit, Submitted};
pub use query::{LastAttempts, QueryStore, StateCounts};
pub use queues::QueueStore;
pub use resources::ResourceStore;
pub use schedules::{Declared, Fired, ScheduleStore};
pub use signals::{Delivered, Expired, SignalStore, Swept};
pub use turn::{Turn, TurnStore};

use crate::coordinator::ClusterCoordinator;

/// Everything that Ratchet asks of a database.
pub trait Store:
    JobStore
    + TurnStore
    + ControlStore
    + BatchStore
    + ClusterStore
    + QueueStore
    + QueryStore
    + ScheduleStore
    + SignalStore
    + ArchiveStore
    + DeadLetterStore
    + ResourceStore
    + BreakerStore
    + InsightStore
    + JobLogStore
    + std::fmt::Debug
{
    /// The name of the database, for people: `sqlite`, `postgres`, `memory`.
    fn name(&self) -> &'static str;

    /// Returns whether one call may settle while another of the same node claims, and both are done sooner than one call
    /// that does both. Under load a node then makes two calls at a time.
    fn settles_beside_claims(&self) -> bool {
        false
    }

    /// How the node learns that other processes have submitted work; `None` if it can only poll.
    ///
    /// The store calls `changed` from a task of its own, at most once in a few milliseconds, and stops when the
    /// returned guard is dropped. It is a hint: calling it too often costs a poll, missing a change costs latency.
    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
        let _ = changed;
        None
    }

    /// What carries hints between nodes over this database, for engines and clients that are given nothing else; `None`
    /// if it cannot. The store owns it: every call gives the same, and it ends with the store.
    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        None
    }
}

/// Keeps a watch alive; dropping it ends the watch.
pub struct WatchGuard(#[expect(dead_code, reason = "held for its drop")] Box<dyn Send + Sync>);

impl WatchGuard {
    /// A guard that drops `inner` when it is dropped.
    pub fn new(inner: impl Send + Sync + 'static) -> Self {
        Self(Box::new(inner))
    }
}

impl std::fmt::Debug for WatchGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchGuard")
    }
}

/// A store whose clock a test can move, for the conformance suite and for tests of applications.
pub trait MovableClock {
    /// Moves the store's time forward.
    fn advance_clock(&self, by: Duration);
}
