use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::node::{NodeRegistration, NodeVitals};
use ratchet_core::store::HeartbeatStore;
use ratchet_core::{NodeId, StoreError, Timestamp};
use ratchet_store_sql::{Counters, StoreContext, heartbeat};
use sqlx::SqliteConnection;

use crate::conn::Session;

/// A connection for heartbeats alone.
pub(crate) struct SqliteHeartbeat {
    conn: SqliteConnection,
    context: Arc<StoreContext>,
    counters: Arc<Counters>,
}

impl SqliteHeartbeat {
    pub(crate) fn new(conn: SqliteConnection, context: Arc<StoreContext>, counters: Arc<Counters>) -> Self {
        Self { conn, context, counters }
    }

    fn session(&mut self) -> Session<'_> {
        Session { conn: &mut self.conn, context: &self.context, counters: &self.counters }
    }
}

// Each statement is its own transaction. Registering needs no more: of its two, the second is for a lost reply.
#[async_trait]
impl HeartbeatStore for SqliteHeartbeat {
    async fn beat(&mut self, node: NodeId, vitals: NodeVitals) -> Result<bool, StoreError> {
        heartbeat::beat(&mut self.session(), node, &vitals).await
    }

    async fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        heartbeat::database_time(&mut self.session()).await
    }

    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError> {
        heartbeat::register(&mut self.session(), node).await
    }
}
