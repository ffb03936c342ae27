//! What one node does for all of a cluster: whoever holds the lease.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratchet_core::{NodeId, Store, StoreError};

/// The right to fire schedules, and to retire them.
pub(crate) const SCHEDULES: &str = "schedules";
/// The right to end waits for signals.
pub(crate) const SIGNALS: &str = "signals";
/// The right to cancel what is left of canceled batches.
pub(crate) const BATCHES: &str = "batches";
/// The right to archive and purge.
pub(crate) const RETENTION: &str = "retention";

/// One of these rights, as a loop asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) name: &'static str,
    /// How long it lasts if its holder dies.
    pub(crate) ttl: Duration,
}

impl Lease {
    /// Takes it or makes it last longer; `false` while another node has it.
    pub(crate) async fn hold(&self, node: NodeId) -> Result<bool, StoreError> {
        self.store.acquire_lease(self.name, node, self.ttl).await
    }

    /// Lets another node have it.
    pub(crate) async fn release(&self, node: NodeId) {
        release(&*self.store, self.name, node).await;
    }
}

/// A lease that is kept from one look to the next: asked for now and then, and renewed before it runs out.
#[derive(Debug)]
pub(crate) struct KeptLease {
    lease: Lease,
    every: Duration,
    holder: Option<NodeId>,
    /// When to ask again, whoever has it.
    ask: Instant,
}

impl KeptLease {
    /// Asks every so often; a few times while the lease lasts.
    pub(crate) fn new(lease: Lease, every: Duration) -> Self {
        Self { lease, every, holder: None, ask: Instant::now() }
    }

    /// Whether this node has it; asks for it if it is time to.
    pub(crate) async fn keep(&mut self, node: NodeId) -> Result<bool, StoreError> {
        let now = Instant::now();
        if now >= self.ask || self.holder.is_some_and(|holder| holder != node) {
            // Without an answer nobody knows who has it.
            self.holder = None;
            self.holder = self.lease.hold(node).await?.then_some(node);
            self.ask = now + self.every;
        }
        Ok(self.holder.is_some())
    }
}

/// Lets other nodes have whatever this one holds, so that they need not wait until it runs out.
pub(crate) async fn release_all(store: &dyn Store, node: NodeId) {
    for name in [SCHEDULES, SIGNALS, BATCHES, RETENTION] {
        release(store, name, node).await;
    }
}

async fn release(store: &dyn Store, name: &'static str, node: NodeId) {
    if let Err(error) = store.release_lease(name, node).await {
        let error = &error as &dyn std::error::Error;
        tracing::debug!(lease = name, error, "giving up a lease failed; it runs out");
    }
}
