//! Connecting.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_pool::{ConnectionPool, PoolLimits};
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_store_sql::{Counters, Dialect, StoreContext};
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

use crate::driver::PostgresDriver;
use crate::store::{Postgres, PostgresStore};

const DOING: &str = "opening a PostgreSQL store";
const CHANNEL_DEFAULT: &str = "ratchet_wakeup";
/// PostgreSQL cuts longer names.
const CHANNEL_BYTES_MAX: usize = 63;

/// How a store is opened; from [`PostgresStore::options`].
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    url: String,
    migrate: bool,
    steps: &'static [Migration],
    pooled: bool,
    listen_url: Option<String>,
    channel: String,
    wakeups: bool,
    limits: PoolLimits,
}

impl PostgresOptions {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            migrate: false,
            steps: migrate::migrations(Dialect::Postgres),
            pooled: false,
            listen_url: None,
            channel: CHANNEL_DEFAULT.to_owned(),
            wakeups: true,
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

    /// Whether there is a transaction pooler, such as pgbouncer, between here and the server; no unless told otherwise.
    ///
    /// Nothing then depends on which server connection a transaction gets: no prepared statement is kept. Nodes hear of
    /// each other's work only if [`listen_url`](Self::listen_url) gives them a way around the pooler.
    #[must_use]
    pub fn pooled(mut self, pooled: bool) -> Self {
        self.pooled = pooled;
        self
    }

    /// Where nodes listen for each other's work: the server itself, if the store's URL is that of a pooler. The store's
    /// own URL unless told otherwise.
    #[must_use]
    pub fn listen_url(mut self, url: impl Into<String>) -> Self {
        self.listen_url = Some(url.into());
        self
    }

    /// The channel on which nodes hear of each other's work; `ratchet_wakeup` unless told otherwise. Installations that
    /// share a database in schemas of their own are kept apart by it.
    #[must_use]
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = channel.into();
        self
    }

    /// Whether nodes tell each other of new work by LISTEN and NOTIFY; yes unless told otherwise. Without it they find
    /// the work of others by polling, or through another coordinator.
    #[must_use]
    pub fn wakeups(mut self, wakeups: bool) -> Self {
        self.wakeups = wakeups;
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
    pub async fn connect(self) -> Result<PostgresStore, StoreError> {
        self.open_backend().await.map(PostgresStore::new)
    }

    pub(crate) async fn open_backend(self) -> Result<Postgres, StoreError> {
        let options = connect_options(&self.url, self.pooled)?;
        let hearing = self.hearing()?;
        let at = format!("{}:{}", options.get_host(), options.get_port());
        let opened = async {
            let (context, counters) = (Arc::new(StoreContext::new(Dialect::Postgres)), Arc::new(Counters::default()));
            let driver = PostgresDriver { options, pooled: self.pooled, context, counters: counters.clone() };
            let driver = Arc::new(driver);
            let pool = ConnectionPool::new("ratchet-postgres", driver.clone(), self.limits, counters)?;
            let server = Postgres::new(driver, pool, hearing);
            server.prepare(self.migrate, self.steps).await?;
            Ok(server)
        };
        opened.await.map_err(|error: StoreError| error.while_doing(DOING, at))
    }

    /// Where and on which channel nodes hear of each other's work, if they do.
    fn hearing(&self) -> Result<Option<Hearing>, StoreError> {
        if self.channel.is_empty() || self.channel.len() > CHANNEL_BYTES_MAX || self.channel.contains('\0') {
            let problem = format!("the channel's name has {} bytes; use 1 to {CHANNEL_BYTES_MAX}", self.channel.len());
            return Err(StoreError::new(ErrorKind::Invalid, DOING, problem));
        }
        let url = match &self.listen_url {
            _ if !self.wakeups => return Ok(None),
            Some(url) => url,
            None if self.pooled => return Ok(None),
            None => &self.url,
        };
        Ok(Some(Hearing { at: connect_options(url, false)?, channel: self.channel.clone() }))
    }
}

/// Where and on which channel nodes hear of each other's work.
pub(crate) struct Hearing {
    pub(crate) at: PgConnectOptions,
    pub(crate) channel: String,
}

fn connect_options(url: &str, pooled: bool) -> Result<PgConnectOptions, StoreError> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        let problem = "the URL must begin with postgres://, as in postgres://user:password@host:5432/database";
        return Err(StoreError::new(ErrorKind::Invalid, DOING, problem));
    }
    let options = PgConnectOptions::from_str(url).map_err(|error| {
        // The URL itself stays out of the text: it may hold a password.
        let problem = "the URL cannot be read; write postgres://user:password@host:5432/database";
        StoreError::new(ErrorKind::Invalid, DOING, problem).with_source(error)
    })?;
    let options = options.disable_statement_logging().statement_cache_capacity(512);
    let options = if options.get_application_name().is_none() { options.application_name("ratchet") } else { options };
    if pooled {
        return Ok(options);
    }
    // The planner must not read a whole table because it was small when statistics were taken, and compiling a
    // statement that runs for a millisecond never pays. A machine that vanishes in the midst of a transaction must not
    // keep its locks until TCP gives up.
    Ok(options.options([
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("jit", "off"),
        ("idle_in_transaction_session_timeout", "10s"),
    ]))
}
