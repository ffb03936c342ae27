//! What the cases stand on: nodes with coordinators, and ears that remember what they hear.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ratchet_core::coordinator::{CoordinatorStats, ListenGuard};
use ratchet_core::{ClusterCoordinator, Hint, NodeId, Priority};
use tokio::sync::Notify;
use uuid::Uuid;

use super::{CoordinatorFixture, LATENCY_MAX, Transport};

/// How long a case waits to be sure of a silence that no later message could end.
const SILENCE: Duration = Duration::from_millis(200);

/// Nodes on one transport.
#[derive(Debug)]
pub struct Cluster {
    fixture: CoordinatorFixture,
}

impl Cluster {
    /// A cluster without nodes.
    pub fn new(fixture: CoordinatorFixture) -> Self {
        Self { fixture }
    }

    pub(super) fn transport(&self) -> &dyn Transport {
        &*self.fixture.transport
    }

    /// A node that does not listen.
    pub(super) async fn deaf_node(&self) -> Node {
        Node { id: new_id(), coordinator: self.transport().connect().await }
    }

    /// A node with an ear.
    pub(super) async fn node(&self) -> (Node, Ear) {
        let node = self.deaf_node().await;
        let ear = node.listens();
        (node, ear)
    }

    /// Takes the transport away, or says loudly that it cannot.
    pub(super) async fn cut(&self) -> bool {
        let cut = self.transport().cut().await;
        if !cut {
            eprintln!("NOT TESTED: this transport cannot be cut");
        }
        cut
    }
}

pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) coordinator: Arc<dyn ClusterCoordinator>,
}

impl Node {
    /// Sends a hint of this node, and returns it.
    pub(super) fn notifies(&self, priority: Priority) -> Hint {
        let hint = Hint { origin: self.id, priority };
        self.coordinator.notify(&hint);
        hint
    }

    /// Sends a hint that equals no other, and returns it. Its origin is a client that shares the node's coordinator.
    pub(super) fn speaks(&self) -> Hint {
        let hint = Hint { origin: new_id(), priority: Priority::Normal };
        self.coordinator.notify(&hint);
        hint
    }

    pub(super) fn listens(&self) -> Ear {
        self.listens_as(self.id)
    }

    pub(super) fn listens_as(&self, own: NodeId) -> Ear {
        let heard = Arc::new(Heard::default());
        let told = heard.clone();
        let guard = self.coordinator.listen(own, Box::new(move |hint| told.tell(hint)));
        Ear { heard, guard: Some(guard) }
    }

    pub(super) fn stats(&self) -> CoordinatorStats {
        self.coordinator.stats()
    }

    /// Waits until the counters are as they should be.
    pub(super) async fn counts(&self, what: &str, fits: impl Fn(CoordinatorStats) -> bool) {
        eventually(what, || fits(self.stats())).await;
    }
}

/// A listener that remembers.
pub(super) struct Ear {
    heard: Arc<Heard>,
    guard: Option<ListenGuard>,
}

#[derive(Default)]
struct Heard {
    hints: Mutex<Vec<Hint>>,
    news: Notify,
}

impl Heard {
    fn tell(&self, hint: &Hint) {
        self.hints.lock().unwrap().push(hint.clone());
        self.news.notify_one();
    }
}

impl Ear {
    pub(super) fn heard(&self) -> Vec<Hint> {
        self.heard.hints.lock().unwrap().clone()
    }

    pub(super) fn closes(&mut self) {
        self.guard = None;
    }

    /// Waits until it has heard this hint, and not for long.
    pub(super) async fn hears(&self, hint: &Hint) {
        self.hears_within(LATENCY_MAX, hint).await;
    }

    pub(super) async fn hears_within(&self, limit: Duration, hint: &Hint) {
        assert!(self.does_hear(limit, hint).await, "{hint:?} does not come within {limit:?}; heard {:?}", self.heard());
    }

    pub(super) async fn does_hear(&self, limit: Duration, hint: &Hint) -> bool {
        let hearing = async {
            while !self.heard().contains(hint) {
                self.heard.news.notified().await;
            }
        };
        tokio::time::timeout(limit, hearing).await.is_ok()
    }
}

pub(super) fn new_id() -> NodeId {
    NodeId(Uuid::new_v4())
}

pub(super) async fn silence() {
    tokio::time::sleep(SILENCE).await;
}

/// Waits for what no listener tells of.
pub(super) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LATENCY_MAX, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
