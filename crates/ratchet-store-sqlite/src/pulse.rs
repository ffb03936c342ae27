use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::node::NodeRegistration;
use ratchet_core::store::PulseStore;
use ratchet_core::{NodeId, StoreError};
use ratchet_store_sql::{Texts, cluster};
use sqlx::SqliteConnection;

use crate::conn::{Counters, Session};

/// A connection for heartbeats alone.
pub(crate) struct SqlitePulse {
    conn: SqliteConnection,
    texts: Arc<Texts>,
    counters: Arc<Counters>,
}

impl SqlitePulse {
    pub(crate) fn new(conn: SqliteConnection, texts: Arc<Texts>, counters: Arc<Counters>) -> Self {
        Self { conn, texts, counters }
    }

    fn session(&mut self) -> Session<'_> {
        Session { conn: &mut self.conn, texts: &self.texts, counters: &self.counters }
    }
}

// Each is one statement, and so its own transaction.
#[async_trait]
impl PulseStore for SqlitePulse {
    async fn beat(&mut self, node: NodeId) -> Result<bool, StoreError> {
        cluster::beat(&mut self.session(), node).await
    }

    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError> {
        cluster::register(&mut self.session(), node).await
    }
}
