//! Waking this node and others for new work.

use std::sync::Arc;

use ratchet_core::{ClusterCoordinator, Followed, FollowedBy, Hint, NodeId, Priority};

use crate::announcer::Announcer;
use crate::client::Client;
use crate::pump::wake::Wake;
use crate::schedule::Notice;
use crate::submit::unit::Waking;

impl Client {
    pub(crate) fn wake(&self) -> &Arc<Wake> {
        &self.inner.wake
    }

    /// Wakes this node and others for those of these jobs that can run now.
    pub(crate) fn wake_for(&self, followed: &[Followed]) {
        let released = followed.iter().filter(|one| one.what == FollowedBy::Released);
        if let Some(priority) = released.map(|one| one.priority).max() {
            self.wake().work();
            self.announce(priority);
        }
    }

    /// There is work that other nodes could take.
    pub(crate) fn announce(&self, priority: Priority) {
        if let Some(announcer) = &self.inner.announcer {
            announcer.announce(priority);
        }
    }

    /// Waits until other nodes have been told of the work that this client has for them, a second at most.
    ///
    /// They are told in the background. A process that ends right after a submit may end before, and then they find the job by
    /// polling, seconds later.
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
        if let Some(announcer) = &self.inner.announcer {
            announcer.flush().await;
        }
    }

    /// What to tell other nodes of jobs that somebody else will commit.
    pub(crate) fn hint(&self, waking: Waking) -> Option<Hint> {
        waking.0.map(|priority| Hint { origin: self.origin(), priority })
    }

    pub(crate) fn origin(&self) -> NodeId {
        self.inner.origin
    }

    pub(crate) fn coordinator(&self) -> Option<&Arc<dyn ClusterCoordinator>> {
        self.inner.announcer.as_ref().map(Announcer::coordinator)
    }

    /// Told when schedules were created or resumed here.
    pub(crate) fn schedules_notice(&self) -> &Notice {
        &self.inner.schedules
    }

    /// Told when something was ordered here about circuit breakers.
    pub(crate) fn breakers_notice(&self) -> &Notice {
        &self.inner.breakers
    }
}
