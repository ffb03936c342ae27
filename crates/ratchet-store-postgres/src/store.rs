//! The store: every call of the traits, on a connection of the pool.

use std::sync::Arc;
use std::time::Duration;

use ratchet_core::store::{MovableClock, PulseStore, Store};
use ratchet_core::{ClusterCoordinator, StoreError};
use ratchet_store_pool::Pool;
use ratchet_store_sql::{Counts, Dialect, Intent, Transact, Work, migrate, work};

use crate::coordinator::PostgresCoordinator;
use crate::driver::PostgresDriver;
use crate::options::{Hearing, PostgresOptions};

/// A store on a PostgreSQL server. Cloning gives another handle to the same store.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    driver: Arc<PostgresDriver>,
    pool: Arc<Pool<PostgresDriver>>,
    /// How nodes hear of each other's work; `None` behind a pooler without an address to listen at.
    coordinator: Option<Arc<PostgresCoordinator>>,
}

impl PostgresStore {
    /// Opens the database at `url` with every option at its default; its schema must be up to date.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options(url).connect().await
    }

    /// How to open the database at `url`: `postgres://user:password@host:5432/database`.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), ratchet_core::StoreError> {
    /// use ratchet_store_postgres::PostgresStore;
    ///
    /// let store = PostgresStore::options("postgres://app@localhost/app").migrate(true).connections(4).connect().await?;
    /// # drop(store); Ok(()) }
    /// ```
    pub fn options(url: &str) -> PostgresOptions {
        PostgresOptions::new(url)
    }

    pub(crate) fn new(driver: Arc<PostgresDriver>, pool: Pool<PostgresDriver>, hearing: Option<Hearing>) -> Self {
        let pool = Arc::new(pool);
        let coordinator =
            hearing.map(|hearing| Arc::new(PostgresCoordinator::new(hearing.at, &hearing.channel, pool.clone())));
        Self { driver, pool, coordinator }
    }

    /// Makes sure that the database has the schema that this version needs.
    pub(crate) async fn prepare(&self, migrate: bool) -> Result<(), StoreError> {
        if migrate {
            let migrated = work!([], |conn| migrate::migrate_exclusively(conn));
            return self.pool.migrate(Intent::Write, migrated).await.map(|_| ());
        }
        self.transact(Intent::Read, work!([], |conn| migrate::check(conn))).await
    }

    /// How much the store has asked of its database since it was opened.
    pub fn counts(&self) -> Counts {
        self.driver.counters.read()
    }

    /// Waits until the store hears of work on other nodes, for tests.
    #[doc(hidden)]
    pub async fn until_heard(&self) {
        if let Some(coordinator) = &self.coordinator {
            coordinator.hear();
            coordinator.until_heard().await;
        }
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn PulseStore>, StoreError> {
        self.pool.open_pulse().await
    }
}

impl Transact for PostgresStore {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn transact<T: Send + 'static>(&self, intent: Intent, work: Work<T>) -> Result<T, StoreError> {
        self.pool.transact(intent, work).await
    }
}

ratchet_store_sql::implement_store!(PostgresStore);

impl Store for PostgresStore {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        self.coordinator.clone().map(|coordinator| coordinator as Arc<dyn ClusterCoordinator>)
    }
}

impl MovableClock for PostgresStore {
    fn advance_clock(&self, by: Duration) {
        self.driver.texts.advance_clock(by);
    }
}
