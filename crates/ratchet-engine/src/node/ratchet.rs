//! A running node.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, Instant};

use ratchet_core::{NodeId, Store};
use tokio::sync::watch;

use crate::client::Client;
use crate::client::insight::NodeDefaults;
use crate::node::builder::RatchetBuilder;
use crate::node::context::NodeContext;
use crate::node::hooks::Hooks;
use crate::node::tasks::Tasks;
use crate::observe::health::{Health, HealthProbe};
use crate::observe::stats::Stats;
use crate::protect::resilience::ServiceState;
use crate::pump::ShutdownLeftovers;
use crate::upkeep::heartbeat::Heartbeat;
use crate::upkeep::lease;

/// A running node: claims and runs jobs until [`shutdown`](Self::shutdown). It is also a [`Client`].
///
/// Dropping it without a shutdown ends it like a crash: what ran is rescued by other nodes after the grace.
pub struct Ratchet {
    pub(super) node: NodeContext,
    pub(super) known: NodeDefaults,
    pub(super) tasks: Tasks,
    pub(super) heartbeat: Heartbeat,
    /// When the node gives up on what still runs; `None` until it is to stop.
    pub(super) drain: watch::Sender<Option<Instant>>,
    pub(super) drain_timeout: Duration,
    pub(super) hooks: Hooks,
}

impl Ratchet {
    /// Begins to put a node together.
    pub fn builder() -> RatchetBuilder {
        RatchetBuilder::new()
    }

    /// A client that only submits and steers: no handlers, no poller.
    pub fn client(store: impl Store + 'static) -> Client {
        Client::new(store)
    }

    /// The node's present incarnation.
    pub fn node_id(&self) -> NodeId {
        self.node.standing.borrow().node
    }

    /// What the node has done since it started.
    pub fn stats(&self) -> Stats {
        self.node.counters.read()
    }

    /// How the node is now; see [`probe`](Self::probe).
    pub fn health(&self) -> Health {
        self.probe().health()
    }

    /// Tells how the node is, also while it drains: what an application's `/health/live` and `/health/ready` answer by.
    pub fn probe(&self) -> HealthProbe {
        HealthProbe {
            counters: self.node.counters.clone(),
            standing: self.node.standing.clone(),
            drain: self.drain.subscribe(),
            pump: self.tasks.pump_handle(),
            client: self.node.client.clone(),
        }
    }

    pub(crate) fn known(&self) -> &NodeDefaults {
        &self.known
    }

    /// How the services that this node's jobs call stand: those that were called lately, and those whose breaker is open.
    pub fn services(&self) -> Vec<ServiceState> {
        self.known.services.resilience().services()
    }

    /// Runs no more jobs of this service on this node until [`reset_breaker_here`](Self::reset_breaker_here), or until it is
    /// [reset everywhere](Client::reset_breaker). What runs goes on. For all nodes at once: [`Client::open_breaker`].
    /// `false`, with nothing changed, if no kind of this node calls it.
    pub fn open_breaker_here(&self, service: &str) -> bool {
        let known = self.known.services.has(service);
        if known {
            self.known.services.resilience().open(service);
        }
        known
    }

    /// Runs the jobs of this service again on this node, and forgets what was known of it; unless it is
    /// [held open everywhere](Client::open_breaker). `false` if no kind of this node calls it.
    pub fn reset_breaker_here(&self, service: &str) -> bool {
        let known = self.known.services.has(service);
        if known {
            self.known.services.resilience().reset(service);
            self.node.client.wake().work();
        }
        known
    }

    /// Stops claiming, lets running jobs finish up to the drain timeout, hands back the rest without consuming an
    /// attempt, writes what is left to write, and leaves the cluster.
    ///
    /// For a blocking handler that runs on with a permit for a resource it waits ten seconds and two cancel graces more. If that
    /// still runs then, the node stays registered without a heartbeat: its permits end when others declare it dead.
    pub async fn shutdown(mut self) {
        self.hooks.before_stop().await;
        tracing::info!(node = %self.node_id(), "node is draining");
        self.drain.send_replace(Some(Instant::now() + self.drain_timeout));
        let left = self.tasks.drained().await;
        self.tasks.flush_logs(self.node.timing.store_deadline).await;
        drop((self.tasks.watch.take(), self.tasks.hints.take()));
        let node = self.node_id();
        self.heartbeat.stop().await;
        lease::release_all(&*self.node.store, node).await;
        match left {
            ShutdownLeftovers::Nothing => {
                if let Err(error) = self.node.store.deregister(node).await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "leaving the cluster failed; others will notice"
                    );
                }
            }
            ShutdownLeftovers::HeldPermits => {
                tracing::warn!(%node, "handlers still run with permits: these end when others declare the node dead");
            }
        }
        // What it has handed back others take at once.
        self.node.client.flush().await;
        self.tasks.end_listeners().await;
        tracing::info!(%node, "node stopped");
        self.hooks.after_stop().await;
    }
}

impl Deref for Ratchet {
    type Target = Client;
    fn deref(&self) -> &Client {
        &self.node.client
    }
}

impl fmt::Debug for Ratchet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ratchet").field("node", &self.node_id()).finish_non_exhaustive()
    }
}
