use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::node::{NodeRegistration, NodeVitals};
use ratchet_core::store::HeartbeatStore;
use ratchet_core::{NodeId, StoreError, Timestamp};
use ratchet_store_sql::{Work, heartbeat, work};

use crate::driver::Driver;
use crate::pool::run_in_transaction;

/// A connection for heartbeats alone. After an error the engine opens another one.
pub(crate) struct ServerHeartbeat<D: Driver> {
    driver: Arc<D>,
    connection: D::Connection,
}

impl<D: Driver> ServerHeartbeat<D> {
    pub(crate) fn new(driver: Arc<D>, connection: D::Connection) -> Self {
        Self { driver, connection }
    }

    async fn run<T>(&mut self, work: Work<T>) -> Result<T, StoreError> {
        if !self.driver.is_pooled() {
            return work(&mut self.driver.session(&mut self.connection)).await;
        }
        run_in_transaction(&*self.driver, &mut self.connection, &work).await.map_err(|failed| failed.error)
    }
}

// Each statement is its own transaction. Registering needs no more: of its two, the second is for a lost reply.
#[async_trait]
impl<D: Driver> HeartbeatStore for ServerHeartbeat<D> {
    async fn beat(&mut self, node: NodeId, vitals: NodeVitals) -> Result<bool, StoreError> {
        self.run(work!([vitals], |conn| heartbeat::beat(conn, node, &vitals))).await
    }

    async fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        self.run(work!([], |conn| heartbeat::database_time(conn))).await
    }

    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError> {
        let node = node.clone();
        self.run(work!([node], |conn| heartbeat::register(conn, &node))).await
    }
}
