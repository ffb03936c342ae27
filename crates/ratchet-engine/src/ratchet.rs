//! A running node.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratchet_core::coordinator::ListenGuard;
use ratchet_core::store::WatchGuard;
use ratchet_core::{NodeId, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::builder::{Hooks, RatchetBuilder};
use crate::client::Client;
use crate::deadline::within;
use crate::pulse::Pulse;
use crate::signal_limit;
use crate::stats::{Counters, Stats};

/// A running node: claims and runs jobs until [`shutdown`](Self::shutdown). It is also a [`Client`].
///
/// Dropping it without a shutdown ends it like a crash: what ran is rescued by other nodes after the grace.
pub struct Ratchet {
    client: Client,
    counters: Arc<Counters>,
    tasks: Tasks,
    pulse: Pulse,
    draining: Draining,
    hooks: Hooks,
}

/// How the node is told to drain, and how long things may take then.
pub(crate) struct Draining {
    pub(crate) drain: watch::Sender<Option<Instant>>,
    pub(crate) drain_timeout: Duration,
    pub(crate) store_deadline: Duration,
}

/// The tasks of a node; dropping them ends them.
#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) pump: JoinSet<()>,
    pub(crate) side: JoinSet<()>,
    pub(crate) listeners: JoinSet<()>,
    pub(crate) stop_listening: CancellationToken,
    pub(crate) watch: Option<WatchGuard>,
    pub(crate) hints: Option<ListenGuard>,
}

/// How long a stopping node waits for its event listeners.
const LISTENERS_MAX: Duration = Duration::from_secs(5);

impl Ratchet {
    /// Begins to put a node together.
    pub fn builder() -> RatchetBuilder {
        RatchetBuilder::new()
    }

    /// A client that only submits and steers: no handlers, no poller.
    pub fn client(store: impl Store + 'static) -> Client {
        Client::new(store)
    }

    pub(crate) fn new(
        client: Client,
        counters: Arc<Counters>,
        tasks: Tasks,
        pulse: Pulse,
        draining: Draining,
        hooks: Hooks,
    ) -> Self {
        Self { client, counters, tasks, pulse, draining, hooks }
    }

    /// The node's present incarnation.
    pub fn node_id(&self) -> NodeId {
        self.pulse.standing.borrow().node
    }

    /// What the node has done since it started.
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// Stops claiming, lets running jobs finish up to the drain timeout, hands back the rest without consuming an
    /// attempt, writes what is left to write, and leaves the cluster.
    pub async fn shutdown(mut self) {
        self.hooks.before_stop().await;
        tracing::info!(node = %self.node_id(), "node is draining");
        self.draining.drain.send_replace(Some(Instant::now() + self.draining.drain_timeout));
        while self.tasks.pump.join_next().await.is_some() {}
        self.tasks.side.shutdown().await;
        drop((self.tasks.watch.take(), self.tasks.hints.take()));
        let node = self.node_id();
        self.pulse.stop().await;
        let released = self.client.store().release_lease(signal_limit::LEASE, node);
        if let Err(error) = within(self.draining.store_deadline, "giving up the lease for signals", released).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "giving up a lease failed; it runs out");
        }
        let deregistered = self.client.store().deregister(node);
        if let Err(error) = within(self.draining.store_deadline, "leaving the cluster", deregistered).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "leaving the cluster failed; others will notice");
        }
        self.tasks.stop_listening.cancel();
        let heard = async { while self.tasks.listeners.join_next().await.is_some() {} };
        if tokio::time::timeout(LISTENERS_MAX, heard).await.is_err() {
            tracing::warn!("event listeners were too slow to hear of everything before the end");
        }
        tracing::info!(%node, "node stopped");
        self.hooks.after_stop().await;
    }
}

impl Deref for Ratchet {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.client
    }
}

impl fmt::Debug for Ratchet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ratchet").field("node", &self.node_id()).finish_non_exhaustive()
    }
}
