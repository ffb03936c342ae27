//! Connecting.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_pool::{Pool, PoolLimits};
use ratchet_store_sql::{Counters, Dialect, Texts};
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

use crate::driver::PostgresDriver;
use crate::store::PostgresStore;

const DOING: &str = "opening a PostgreSQL store";

/// How a store is opened; from [`PostgresStore::options`].
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    url: String,
    migrate: bool,
    pooled: bool,
    limits: PoolLimits,
}

impl PostgresOptions {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.to_owned(), migrate: false, pooled: false, limits: PoolLimits::default() }
    }

    /// Whether the schema is brought up to date; no unless told otherwise. A schema that lacks something is refused if
    /// not. Any number of nodes may do it at once.
    #[must_use]
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Whether there is a transaction pooler, such as pgbouncer, between here and the server; no unless told otherwise.
    ///
    /// Nothing then depends on which server connection a transaction gets: no prepared statement is kept.
    #[must_use]
    pub fn pooled(mut self, pooled: bool) -> Self {
        self.pooled = pooled;
        self
    }

    /// Most connections at once; eight unless told otherwise. A node uses one or two more: for its heartbeat, and to
    /// hear of work on other nodes.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.limits.connections = connections.max(1);
        self
    }

    /// How long opening a connection may take; ten seconds unless told otherwise.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.limits.connect = timeout;
        self
    }

    /// How long a transaction may take before its connection is closed; 25 seconds unless told otherwise.
    #[must_use]
    pub fn transaction_timeout(mut self, timeout: Duration) -> Self {
        self.limits.transaction = timeout;
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the URL, the database or its schema cannot be used,
    /// [`Unavailable`](ErrorKind::Unavailable) if the server cannot be reached at the moment. The text names the server
    /// and says what to do.
    pub async fn connect(self) -> Result<PostgresStore, StoreError> {
        let options = self.connect_options()?;
        let at = format!("{}:{}", options.get_host(), options.get_port());
        let opened = async {
            let (texts, counters) = (Arc::new(Texts::new(Dialect::Postgres)), Arc::new(Counters::default()));
            let driver = PostgresDriver { options, pooled: self.pooled, texts, counters: counters.clone() };
            let driver = Arc::new(driver);
            let pool = Pool::new("ratchet-postgres", driver.clone(), self.limits, counters)?;
            let store = PostgresStore::new(driver, pool);
            store.prepare(self.migrate).await?;
            Ok(store)
        };
        opened.await.map_err(|error: StoreError| {
            StoreError::new(error.kind().clone(), DOING, format!("{at}: {error}")).with_source(error)
        })
    }

    fn connect_options(&self) -> Result<PgConnectOptions, StoreError> {
        if !self.url.starts_with("postgres://") && !self.url.starts_with("postgresql://") {
            let problem = "the URL must begin with postgres://, as in postgres://user:password@host:5432/database";
            return Err(StoreError::new(ErrorKind::Invalid, DOING, problem));
        }
        let options = PgConnectOptions::from_str(&self.url).map_err(|error| {
            // The URL itself stays out of the text: it may hold a password.
            let problem = "the URL cannot be read; write postgres://user:password@host:5432/database";
            StoreError::new(ErrorKind::Invalid, DOING, problem).with_source(error)
        })?;
        let options = options.disable_statement_logging().statement_cache_capacity(512);
        let options =
            if options.get_application_name().is_none() { options.application_name("ratchet") } else { options };
        if self.pooled {
            return Ok(options);
        }
        // The planner must not read a whole table because it was small when statistics were taken, and compiling a
        // statement that runs for a millisecond never pays.
        Ok(options.options([("enable_seqscan", "off"), ("jit", "off")]))
    }
}
