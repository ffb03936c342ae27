//! A good store in a process that dies right after one of its calls.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratchet_core::signal::Delivery;
use ratchet_core::store::{Access, Call, Delivered, Expired, StoreDecorator, Swept, Turn};
use ratchet_core::{ClaimRequest, NodeId, Settlement, SignalKey, Store, StoreError};

/// A store whose process dies once a number of calls have changed something, before anyone sees the last answer.
#[derive(Debug)]
pub struct DyingStore {
    inner: Arc<dyn Store>,
    calls_left: AtomicU64,
}

/// Writes that a node repeats whether or not they change a job. The process does not die of them: how many there are depends on
/// the time.
const HOUSEKEEPING: [&str; 10] = [
    "append_log",
    "archive",
    "deregister",
    "orphans",
    "purge_archive",
    "purge_log",
    "purge_schedules",
    "reconcile",
    "register",
    "release_permits",
];

impl DyingStore {
    /// Lets the process die after this number of calls that changed something.
    pub fn new(inner: Arc<dyn Store>, calls: u64) -> Self {
        Self { inner, calls_left: AtomicU64::new(calls) }
    }

    /// Passes on the answer of a call, unless the process dies of it.
    fn survive<T>(&self, answer: Result<T, StoreError>, changes: impl FnOnce(&T) -> bool) -> Result<T, StoreError> {
        if answer.as_ref().is_ok_and(changes) && self.calls_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
        answer
    }
}

/// The calls that are overridden here are made whether or not there is something to do: only those count that found something.
impl StoreDecorator for DyingStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn around<T: Send>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let counts = call.access == Access::Write && !HOUSEKEEPING.contains(&call.operation);
        self.survive(answer.await, |_| counts)
    }

    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError> {
        let turn = self.inner().settle_and_claim(settlements, claim).await;
        self.survive(turn, |turn| !settlements.is_empty() || !turn.claimed.is_empty())
    }

    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
        self.survive(self.inner().acquire_lease(name, owner, ttl).await, |acquired| *acquired)
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError> {
        self.survive(self.inner().deliver(delivery).await, |found| !found.jobs.is_empty() || found.kept)
    }

    async fn expire(&self, limit: usize) -> Result<Expired, StoreError> {
        self.survive(self.inner().expire(limit).await, |expired| !expired.jobs.is_empty())
    }

    async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
        self.survive(self.inner().sweep_signals(after, limit).await, |swept| swept.removed > 0)
    }
}
