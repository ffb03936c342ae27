//! What all tasks of a node share.

use std::sync::Arc;

use ratchet_core::{Clock, ClusterCoordinator, Store};
use tokio::sync::watch;

use crate::client::Client;
use crate::node::timing::Timing;
use crate::observe::metered::Metered;
use crate::observe::metrics::Meter;
use crate::observe::stats::Counters;
use crate::submit::admission::Rules;
use crate::upkeep::heartbeat::Standing;

/// What the pump, the heartbeat and the loops beside them need of their node. A clone shares all of it.
#[derive(Clone)]
pub(crate) struct NodeContext {
    /// The store as the node's own tasks call it: with a deadline for every call.
    pub(crate) store: Arc<dyn Store>,
    /// The node as a client. Its calls of the store are those of users, and have no deadline.
    pub(crate) client: Client,
    pub(crate) counters: Arc<Counters>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timing: Timing,
    /// The node's standing, as the heartbeat publishes it.
    pub(crate) standing: watch::Receiver<Standing>,
}

impl NodeContext {
    /// Puts the context of a new incarnation together. The heartbeat gets the sender, and publishes once the node is registered.
    pub(super) fn new(
        store: Arc<dyn Store>,
        coordinator: Option<Arc<dyn ClusterCoordinator>>,
        clock: Arc<dyn Clock>,
        meter: &Meter,
        rules: Rules,
        timing: Timing,
    ) -> (Self, watch::Sender<Standing>) {
        let shared = Metered::for_client(store.clone(), meter.clone());
        let store = Metered::for_node(store, meter.clone(), timing.store_deadline);
        let coordinator = coordinator.or_else(|| store.coordinator());
        let client = Client::over(shared, clock.clone(), coordinator, meter.clone()).under(rules);
        let (publish, standing) = watch::channel(Standing::of(client.origin()));
        let counters = Arc::new(Counters::new(meter.clone()));
        (Self { store, client, counters, clock, timing, standing }, publish)
    }

    /// Returns the context of a node that has no tasks.
    #[cfg(test)]
    pub(crate) fn for_test(store: ratchet_core::MemoryStore, node: ratchet_core::NodeId) -> Self {
        Self {
            store: Arc::new(store.clone()),
            client: Client::new(store),
            counters: Arc::new(Counters::new(Meter::default())),
            clock: Arc::new(crate::SystemClock),
            timing: Timing::default(),
            standing: watch::channel(Standing::of(node)).1,
        }
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.counters.meter
    }
}
