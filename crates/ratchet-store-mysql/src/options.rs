//! Connecting.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_pool::{ConnectionPool, PoolLimits};
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_store_sql::{Counters, Dialect, StoreContext};
use sqlx::ConnectOptions as _;
use sqlx::mysql::MySqlConnectOptions;

use crate::driver::MysqlDriver;
use crate::store::{Mysql, MysqlStore};

const DOING: &str = "opening a MySQL store";
/// Prepared statements of a connection. A server has room for 16,382 of all its connections together; a busy node needs
/// about sixty, and some two hundred while the lengths of its lists differ from turn to turn.
const STATEMENTS_KEPT: usize = 256;

/// How a store is opened; from [`MysqlStore::options`].
#[derive(Debug, Clone)]
pub struct MysqlOptions {
    url: String,
    migrate: bool,
    steps: &'static [Migration],
    limits: PoolLimits,
}

impl MysqlOptions {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            migrate: false,
            steps: migrate::migrations(Dialect::Mysql),
            limits: PoolLimits::default(),
        }
    }

    /// Whether the schema is brought up to date; no unless told otherwise. A schema that lacks something is refused if
    /// not. Any number of nodes may do it at once.
    #[must_use]
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Sets other steps than those of this version's schema, for tests of migrating.
    #[doc(hidden)]
    #[must_use]
    pub fn steps(mut self, steps: &'static [Migration]) -> Self {
        self.steps = steps;
        self
    }

    /// Most connections at once; eight unless told otherwise. A node uses one more for its heartbeat.
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

    /// How long a transaction may take before its connection is closed; 25 seconds unless told otherwise. Migrating may take
    /// ten minutes.
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
    pub async fn connect(self) -> Result<MysqlStore, StoreError> {
        self.open_backend().await.map(MysqlStore::new)
    }

    pub(crate) async fn open_backend(self) -> Result<Mysql, StoreError> {
        let options = self.connect_options()?;
        let at = format!("{}:{}", options.get_host(), options.get_port());
        let opened = async {
            let (context, counters) = (Arc::new(StoreContext::new(Dialect::Mysql)), Arc::new(Counters::default()));
            let driver = MysqlDriver { options, context, counters: counters.clone() };
            let driver = Arc::new(driver);
            let pool = ConnectionPool::new("ratchet-mysql", driver.clone(), self.limits, counters)?;
            let server = Mysql::new(driver, pool);
            server.prepare(self.migrate, self.steps).await?;
            Ok(server)
        };
        opened.await.map_err(|error: StoreError| error.while_doing(DOING, at))
    }

    fn connect_options(&self) -> Result<MySqlConnectOptions, StoreError> {
        if !self.url.starts_with("mysql://") && !self.url.starts_with("mariadb://") {
            let problem = "the URL must begin with mysql://, as in mysql://user:password@host:3306/database";
            return Err(StoreError::new(ErrorKind::Invalid, DOING, problem));
        }
        let options = MySqlConnectOptions::from_str(&self.url).map_err(|error| {
            // The URL itself stays out of the text: it may hold a password.
            let problem = "the URL cannot be read; write mysql://user:password@host:3306/database";
            StoreError::new(ErrorKind::Invalid, DOING, problem).with_source(error)
        })?;
        Ok(options.disable_statement_logging().statement_cache_capacity(STATEMENTS_KEPT))
    }
}
