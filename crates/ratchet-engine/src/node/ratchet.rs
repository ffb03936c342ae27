//! A running node.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratchet_core::{NodeId, Store};
use tokio::sync::watch;

use crate::client::Client;
use crate::client::insight::NodeDefaults;
use crate::node::builder::RatchetBuilder;
use crate::node::hooks::Hooks;
use crate::node::tasks::Tasks;
use crate::observe::health::{Health, HealthProbe};
use crate::observe::stats::{Counters, Stats};
use crate::protect::resilience::{Guarded, ServiceState};
use crate::pump::ShutdownLeftovers;
use crate::upkeep::heartbeat::Heartbeat;
use crate::upkeep::lease;

/// A running node: claims and runs jobs until [`shutdown`](Self::shutdown). It is also a [`Client`].
///
/// Dropping it without a shutdown ends it like a crash: what ran is rescued by other nodes after the grace.
pub struct Ratchet {
    client: Client,
    counters: Arc<Counters>,
    resilience: Guarded,
    known: NodeDefaults,
    tasks: Tasks,
    heartbeat: Heartbeat,
    draining: Draining,
    hooks: Hooks,
}

/// How the node is told to drain, and how long things may take then.
pub(crate) struct Draining {
    pub(crate) drain: watch::Sender<Option<Instant>>,
    pub(crate) drain_timeout: Duration,
    pub(crate) store_deadline: Duration,
    pub(crate) store: Arc<dyn Store>,
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

    pub(crate) fn new(
        client: Client,
        counters: Arc<Counters>,
        (resilience, known): (Guarded, NodeDefaults),
        tasks: Tasks,
        heartbeat: Heartbeat,
        draining: Draining,
        hooks: Hooks,
    ) -> Self {
        Self { client, counters, resilience, known, tasks, heartbeat, draining, hooks }
    }

    /// The node's present incarnation.
    pub fn node_id(&self) -> NodeId {
        self.heartbeat.standing.borrow().node
    }

    /// What the node has done since it started.
    pub fn stats(&self) -> Stats {
        self.counters.read()
    }

    /// How the node is now; see [`probe`](Self::probe).
    pub fn health(&self) -> Health {
        self.probe().health()
    }

    /// Tells how the node is, also while it drains: what an application's `/health/live` and `/health/ready` answer by.
    pub fn probe(&self) -> HealthProbe {
        HealthProbe {
            counters: self.counters.clone(),
            standing: self.heartbeat.standing.clone(),
            drain: self.draining.drain.subscribe(),
            pump: self.tasks.pump_handle(),
            client: self.client.clone(),
        }
    }

    pub(crate) fn known(&self) -> &NodeDefaults {
        &self.known
    }

    /// How the services that this node's jobs call stand: those that were called lately, and those whose breaker is open.
    pub fn services(&self) -> Vec<ServiceState> {
        self.resilience.services()
    }

    /// Runs no more jobs of this service on this node until [`reset_breaker_here`](Self::reset_breaker_here), or until it is
    /// [reset everywhere](Client::reset_breaker). What runs goes on. For all nodes at once: [`Client::open_breaker`].
    /// `false`, with nothing changed, if no kind of this node calls it.
    pub fn open_breaker_here(&self, service: &str) -> bool {
        let known = self.known.services.has(service);
        if known {
            self.resilience.open(service);
        }
        known
    }

    /// Runs the jobs of this service again on this node, and forgets what was known of it; unless it is
    /// [held open everywhere](Client::open_breaker). `false` if no kind of this node calls it.
    pub fn reset_breaker_here(&self, service: &str) -> bool {
        let known = self.known.services.has(service);
        if known {
            self.resilience.reset(service);
            self.client.wake().work();
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
        self.draining.drain.send_replace(Some(Instant::now() + self.draining.drain_timeout));
        let left = self.tasks.drained().await;
        self.tasks.flush_logs(self.draining.store_deadline).await;
        drop((self.tasks.watch.take(), self.tasks.hints.take()));
        let node = self.node_id();
        self.heartbeat.stop().await;
        lease::release_all(&*self.draining.store, node).await;
        match left {
            ShutdownLeftovers::Nothing => {
                if let Err(error) = self.draining.store.deregister(node).await {
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
        self.client.flush().await;
        self.tasks.end_listeners().await;
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
