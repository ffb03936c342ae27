//! Circuit breakers that people open and reset for the whole cluster, and the loop by which a node learns of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::breaker_order::{breakers, calling};
use ratchet_core::{BreakerOrder, BreakerRecord, ServiceName, StoreError};
use tokio::sync::Notify;

use crate::client::Client;
use crate::node::context::NodeContext;
use crate::observe::stats::Loop;
use crate::protect::authorizer::{Action, Target};
use crate::protect::resilience::Guarded;
use crate::upkeep::heartbeat::Standing;
use crate::upkeep::service_watch::ServiceWatch;
use crate::upkeep::{Upkeep, spread};

/// What came of an order about a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerOrdered {
    /// Whether it is otherwise now: held open and was not, or the other way round.
    pub changed: bool,
    /// How many living nodes have jobs that call the service. With none, the name may be a slip of the pen.
    pub calling: usize,
}

impl Client {
    /// Holds the circuit breaker of a service open on every node, also on those that start later, until
    /// [`reset_breaker`](Self::reset_breaker): its jobs wait and use up no attempts. What runs goes on. Nodes learn of it
    /// within seconds.
    ///
    /// # Errors
    /// If the store cannot be asked.
    ///
    /// ```
    /// # use ratchet_core::{MemoryStore, ServiceName};
    /// # use ratchet_engine::Client;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Client::new(MemoryStore::manual().0);
    /// let payments = ServiceName::new("payments")?;
    /// client.open_breaker(&payments).await?;
    /// assert!(client.breakers().await?[0].held_open_since.is_some());
    /// client.reset_breaker(&payments).await?;
    /// assert!(client.breakers().await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open_breaker(&self, service: &ServiceName) -> Result<BreakerOrdered, StoreError> {
        self.demand(Action::Pause, &Target::Service(service))?;
        let calling = self.calling(service).await?;
        let changed = self.store().open_breaker(service).await?;
        self.breakers_notice().notify_one();
        Ok(BreakerOrdered { changed, calling })
    }

    /// Resets the circuit breaker of a service on every node: it is not held open any more, and nodes that had opened it,
    /// by their own judgement or by hand, begin anew. Nodes learn of it within seconds.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn reset_breaker(&self, service: &ServiceName) -> Result<BreakerOrdered, StoreError> {
        self.demand(Action::Resume, &Target::Service(service))?;
        let calling = self.calling(service).await?;
        let changed = self.store().reset_breaker(service).await?;
        self.breakers_notice().notify_one();
        Ok(BreakerOrdered { changed, calling })
    }

    /// Every service whose circuit breaker is held open, or is not closed on some living node as its last heartbeat told.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn breakers(&self) -> Result<Vec<BreakerRecord>, StoreError> {
        self.demand(Action::Read, &Target::Services)?;
        let store = self.store();
        let (orders, nodes) = (store.breaker_orders().await?, store.nodes().await?);
        Ok(breakers(&orders, &nodes, store.database_time().await?))
    }

    async fn calling(&self, service: &ServiceName) -> Result<usize, StoreError> {
        let (nodes, now) = (self.store().nodes().await?, self.store().database_time().await?);
        Ok(calling(service.as_str(), &nodes, now))
    }
}

/// Heeds what people order about the services that this node's jobs call.
pub(crate) struct BreakerOrders {
    node: NodeContext,
    resilience: Guarded,
    services: Arc<[Arc<str>]>,
    /// The last order about each of them.
    heeded: BTreeMap<ServiceName, BreakerOrder>,
    changed: Arc<Notify>,
    every: Duration,
}

/// Looks are no farther apart than this.
const LOOK_MAX: Duration = Duration::from_secs(5);

impl BreakerOrders {
    /// Heeds what was ordered before the node started, so that not even its first claim asks for jobs that should wait.
    pub(crate) async fn begin(node: NodeContext, services: &ServiceWatch) -> Result<Self, StoreError> {
        let (resilience, services) = (services.resilience().clone(), services.services().clone());
        let changed = node.client.breakers_notice().clone();
        let every = (node.timing.heartbeat / 2).min(LOOK_MAX);
        let mut this = Self { node, resilience, services, heeded: BTreeMap::new(), changed, every };
        let (held, reset): (Vec<_>, Vec<_>) = this.read().await?.into_iter().partition(|order| order.held_open);
        // What was reset before concerns those that ran then.
        this.heeded.extend(reset.into_iter().map(|order| (order.service.clone(), order)));
        this.heed(held);
        Ok(this)
    }

    async fn read(&self) -> Result<Vec<BreakerOrder>, StoreError> {
        self.node.store.breaker_orders().await
    }

    fn heed(&mut self, orders: Vec<BreakerOrder>) {
        for order in orders {
            let service = &order.service;
            let is_called = self.services.iter().any(|called| **called == *service.as_str());
            if !is_called || self.heeded.get(service) == Some(&order) {
                continue;
            }
            if order.held_open {
                tracing::warn!(%service, "somebody holds a circuit breaker open: its jobs wait on every node");
                self.resilience.hold(service);
            } else {
                tracing::info!(%service, "somebody has reset a circuit breaker on every node");
                self.resilience.let_go(service);
                self.node.client.wake().work();
            }
            self.heeded.insert(service.clone(), order);
        }
    }
}

impl Upkeep for BreakerOrders {
    const LOOP: Loop = Loop::Breakers;

    async fn look(&mut self, _standing: &Standing) -> Result<Duration, StoreError> {
        let orders = self.read().await?;
        self.heed(orders);
        Ok(spread(self.every))
    }

    async fn wait(&self, wait: Duration) {
        let _ = tokio::time::timeout(wait, self.changed.notified()).await;
    }
}
