//! Notifying other nodes of new work.

use std::sync::Arc;
use std::time::Duration;

use ratchet_core::{ClusterCoordinator, Hint, NodeId, Priority};

use crate::guard;
use crate::observe::metrics::Meter;

/// The maximum wait for hints to leave: by then other nodes find the work by polling.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Sends the hints of an engine or client, which all have one origin. The coordinator decides how often they leave.
#[derive(Debug)]
pub(crate) struct Announcer {
    coordinator: Arc<dyn ClusterCoordinator>,
    origin: NodeId,
    meter: Meter,
}

impl Announcer {
    pub(crate) fn new(coordinator: Arc<dyn ClusterCoordinator>, origin: NodeId, meter: Meter) -> Self {
        Self { coordinator, origin, meter }
    }

    pub(crate) fn coordinator(&self) -> &Arc<dyn ClusterCoordinator> {
        &self.coordinator
    }

    /// Sends a hint of new work of this priority, whose transaction is committed. Returns at once.
    pub(crate) fn announce(&self, priority: Priority) {
        let hint = Hint { origin: self.origin, priority };
        // The coordinator may be the user's: a panic costs a hint, not a submit that is already committed.
        let _ = guard::call(&self.meter, guard::COORDINATOR, || self.coordinator.notify(&hint));
    }

    /// Waits until all hints have left this process, for one second at most.
    pub(crate) async fn flush(&self) {
        // A panic of the coordinator costs hints: a node goes on to shut down.
        let flush = guard::run(&self.meter, guard::COORDINATOR, async { self.coordinator.flush().await });
        let _ = tokio::time::timeout(FLUSH_MAX, flush).await;
    }
}
