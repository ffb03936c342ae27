//! A transport in memory, for tests: what one says, all hear.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ratchet_coordinator::Hub;
use ratchet_core::coordinator::{CoordinatorStats, ListenGuard, Listener};
use ratchet_core::{ClusterCoordinator, Hint, NodeId};
use tokio::sync::watch;
use uuid::Uuid;

use super::Transport;

/// Carries hints between coordinators of one process. Clones are the same bus.
#[derive(Debug, Clone, Default)]
pub struct Bus {
    hubs: Arc<Mutex<Vec<Hub>>>,
    cut: Arc<watch::Sender<bool>>,
}

impl Bus {
    /// One more coordinator on this bus; needs a tokio runtime to carry what it sends.
    pub fn coordinator(&self) -> Arc<BusCoordinator> {
        let hub = Hub::new(Uuid::new_v4());
        self.hubs.lock().unwrap().push(hub.clone());
        let (ended, carried) = watch::channel(());
        tokio::spawn(self.clone().carry(hub.clone(), ended));
        Arc::new(BusCoordinator { hub, carried })
    }

    fn deliver(&self, text: &str) {
        let hubs = self.hubs.lock().unwrap().clone();
        for hub in hubs {
            hub.incoming(text);
        }
    }

    async fn carry(self, hub: Hub, _ended: watch::Sender<()>) {
        let mut cut = self.cut.subscribe();
        while let Some(texts) = hub.next_outgoing().await {
            if *cut.borrow_and_update() {
                hub.transport_failed();
                if hub.is_closed() || cut.wait_for(|cut| !cut).await.is_err() {
                    break;
                }
                hub.reconnected();
            }
            for text in &texts {
                self.deliver(text);
            }
        }
        self.hubs.lock().unwrap().retain(|other| !other.is_closed());
    }
}

#[async_trait]
impl Transport for Bus {
    async fn connect(&self) -> Arc<dyn ClusterCoordinator> {
        self.coordinator()
    }

    async fn inject(&self, text: &str) {
        self.deliver(text);
    }

    async fn cut(&self) -> bool {
        self.cut.send_replace(true);
        true
    }

    async fn restore(&self) {
        self.cut.send_replace(false);
    }
}

/// A coordinator on a [`Bus`].
#[derive(Debug)]
pub struct BusCoordinator {
    hub: Hub,
    /// Its sender is dropped when everything has been carried.
    carried: watch::Receiver<()>,
}

#[async_trait]
impl ClusterCoordinator for BusCoordinator {
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
        let _ = self.carried.clone().changed().await;
    }

    fn stats(&self) -> CoordinatorStats {
        self.hub.stats()
    }
}

impl Drop for BusCoordinator {
    fn drop(&mut self) {
        self.hub.close();
    }
}
