//! The coordinator, and the thread that it speaks from.

use std::time::Duration;

use async_trait::async_trait;
use ratchet_coordinator::Hub;
use ratchet_core::NodeId;
use ratchet_core::coordinator::{ClusterCoordinator, CoordinatorStats, Hint, ListenGuard, Listener};
use redis::Client;
use tokio::sync::{Notify, oneshot, watch};
use uuid::Uuid;

use crate::link::Link;
use crate::options::{ConnectError, RedisOptions};

/// Carries hints between nodes over a channel of a Redis server.
///
/// It speaks with the server from a thread of its own, so that a busy or blocked runtime of the application delays
/// nothing. A server that is lost is tried again after 200 ms, then after ever longer pauses up to 30 s. Dropping the
/// coordinator ends it too, without waiting.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use ratchet_coordinator_redis::RedisCoordinator;
/// use ratchet_core::MemoryStore;
/// use ratchet_engine::{Ratchet, SystemClock};
///
/// let redis = Arc::new(RedisCoordinator::connect("redis://127.0.0.1:6379").await?);
/// # let store = MemoryStore::new(Arc::new(SystemClock));
/// let builder = Ratchet::builder().store(store).coordinator(redis);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RedisCoordinator {
    hub: Hub,
    closing: watch::Sender<bool>,
    /// Its sender is dropped when the thread ends.
    ended: watch::Receiver<()>,
}

impl RedisCoordinator {
    /// A coordinator on the usual channel of this server.
    ///
    /// Returns when it has subscribed, or has failed to once: a server that is away is no error, because nodes work
    /// without it, and it goes on trying.
    ///
    /// # Errors
    /// [`ConnectError`] for an address that cannot be used.
    pub async fn connect(url: impl Into<String>) -> Result<Self, ConnectError> {
        Self::options(url).connect().await
    }

    /// A coordinator with options.
    pub fn options(url: impl Into<String>) -> RedisOptions {
        RedisOptions::new(url)
    }

    pub(crate) async fn start(client: Client, channel: String, ping_every: Duration) -> Result<Self, ConnectError> {
        let hub = Hub::new(Uuid::new_v4());
        let (closing, closed) = watch::channel(false);
        let (alive, ended) = watch::channel(());
        let (first, tried) = oneshot::channel();
        let link = Link { client, channel, hub: hub.clone(), ping_every, closing: closed, back: Notify::new() };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ConnectError::Thread)?;
        std::thread::Builder::new()
            .name("ratchet-redis".to_owned())
            .spawn(move || {
                runtime.block_on(link.run(first));
                drop(alive);
            })
            .map_err(ConnectError::Thread)?;
        // Told in any case, and if the thread is gone there is nothing to wait for.
        let _ = tried.await;
        Ok(Self { hub, closing, ended })
    }
}

#[async_trait]
impl ClusterCoordinator for RedisCoordinator {
    fn notify(&self, hint: &Hint) {
        self.hub.notify(hint);
    }

    fn listen(&self, own: NodeId, listener: Listener) -> ListenGuard {
        self.hub.listen(own, listener)
    }

    async fn flush(&self) {
        self.hub.flushed().await;
    }

    async fn close(&self) {
        self.hub.close();
        self.closing.send_replace(true);
        // Nothing is ever sent: the sender's end is the news.
        let _ = self.ended.clone().changed().await;
    }

    fn stats(&self) -> CoordinatorStats {
        self.hub.stats()
    }
}

impl Drop for RedisCoordinator {
    fn drop(&mut self) {
        self.hub.close();
        self.closing.send_replace(true);
    }
}
