//! Waking this node and others for new work.

use std::sync::Arc;

use ratchet_core::{ClusterCoordinator, Followed, FollowedBy, Hint, NodeId, Priority};

use crate::announcer::Announcer;
use crate::client::Client;
use crate::node::ids::new_node_id;
use crate::observe::metrics::Meter;
use crate::pump::wake::Wake;
use crate::schedule::Notice;
use crate::submit::unit::Waking;

/// The wakeups of this node's own loops and of other nodes.
pub(super) struct Wakeups {
    wake: Arc<Wake>,
    /// Sends hints to other nodes, if there is a coordinator.
    announcer: Option<Announcer>,
    /// The origin of this client's hints, which is the first incarnation of its node too.
    origin: NodeId,
    schedules: Notice,
    breakers: Notice,
}

impl Wakeups {
    pub(super) fn new(coordinator: Option<Arc<dyn ClusterCoordinator>>, meter: Meter) -> Self {
        let origin = new_node_id();
        let announcer = coordinator.map(|coordinator| Announcer::new(coordinator, origin, meter));
        Self { wake: Arc::default(), announcer, origin, schedules: Notice::default(), breakers: Notice::default() }
    }
}

impl Client {
    pub(crate) fn wake(&self) -> &Arc<Wake> {
        &self.inner.wakeups.wake
    }

    /// Wakes this node and others for those of these jobs that can run now.
    pub(crate) fn wake_for(&self, followed: &[Followed]) {
        let released = followed.iter().filter(|one| one.what == FollowedBy::Released);
        if let Some(priority) = released.map(|one| one.priority).max() {
            self.wake().work();
            self.announce(priority);
        }
    }

    /// Sends a hint of work that other nodes could claim.
    pub(crate) fn announce(&self, priority: Priority) {
        if let Some(announcer) = &self.inner.wakeups.announcer {
            announcer.announce(priority);
        }
    }

    /// Waits until the hints of this client have left the process, for one second at most.
    ///
    /// Hints are sent in the background. A process that ends right after a submit may end before them: then other nodes find the
    /// job by polling, seconds later.
    ///
    /// ```
    /// # use ratchet_core::MemoryStore;
    /// # use ratchet_engine::Client;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let client = Client::new(MemoryStore::manual().0);
    /// // client.enqueue(…).submit().await?;
    /// client.flush().await;
    /// # }
    /// ```
    pub async fn flush(&self) {
        if let Some(announcer) = &self.inner.wakeups.announcer {
            announcer.flush().await;
        }
    }

    /// Returns the hint for jobs that the caller's transaction will commit.
    pub(crate) fn hint(&self, waking: Waking) -> Option<Hint> {
        waking.0.map(|priority| Hint { origin: self.origin(), priority })
    }

    pub(crate) fn origin(&self) -> NodeId {
        self.inner.wakeups.origin
    }

    pub(crate) fn coordinator(&self) -> Option<&Arc<dyn ClusterCoordinator>> {
        self.inner.wakeups.announcer.as_ref().map(Announcer::coordinator)
    }

    /// Notified when this client creates or resumes schedules.
    pub(crate) fn schedules_notice(&self) -> &Notice {
        &self.inner.wakeups.schedules
    }

    /// Notified when this client writes an order about circuit breakers.
    pub(crate) fn breakers_notice(&self) -> &Notice {
        &self.inner.wakeups.breakers
    }
}
