use std::sync::Arc;

use ratchet_core::StoreError;
use ratchet_store_pool::Driver;
use ratchet_store_sql::{Conn, Counters, StoreContext};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};

use crate::conn::Session;
use crate::error::store_error;

/// How the store reaches its server.
#[derive(Debug)]
pub(crate) struct PostgresDriver {
    pub(crate) options: PgConnectOptions,
    pub(crate) pooled: bool,
    pub(crate) context: Arc<StoreContext>,
    pub(crate) counters: Arc<Counters>,
}

impl Driver for PostgresDriver {
    type Connection = PgConnection;

    async fn connect(&self) -> Result<PgConnection, StoreError> {
        self.options.connect().await.map_err(|error| store_error("connecting to PostgreSQL", error))
    }

    fn session<'c>(&'c self, connection: &'c mut PgConnection) -> impl Conn + 'c {
        Session {
            conn: connection,
            context: &self.context,
            counters: &self.counters,
            prepares: !self.pooled,
            callers: false,
        }
    }

    fn begin(&self) -> &'static str {
        // What is read after a lock has to show what its last holder committed, whatever the role or the database is set to.
        // The other settings a connection of one's own has for good; behind a pooler they must end with the transaction. One
        // text is one round trip.
        if self.pooled {
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
             SET LOCAL jit = off; SET LOCAL idle_in_transaction_session_timeout = '10s'"
        } else {
            "BEGIN ISOLATION LEVEL READ COMMITTED"
        }
    }

    fn is_pooled(&self) -> bool {
        self.pooled
    }
}
