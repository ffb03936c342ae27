//! The database: each transaction on a connection of the pool.

use std::sync::Arc;

use ratchet_core::store::HeartbeatStore;
use ratchet_core::{ClusterCoordinator, StoreError};
use ratchet_store_pool::ConnectionPool;
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_store_sql::{Backend, Counts, Intent, SqlStore, StoreContext, Work, work};

use crate::coordinator::PostgresCoordinator;
use crate::driver::PostgresDriver;
use crate::options::{Hearing, PostgresOptions};

/// A store on a PostgreSQL server. Cloning gives another handle to the same store.
///
/// ```no_run
/// # async fn example() -> Result<(), ratchet_core::StoreError> {
/// use ratchet_store_postgres::PostgresStore;
///
/// let store = PostgresStore::options("postgres://app@localhost/app").migrate(true).connections(4).connect().await?;
/// # drop(store); Ok(()) }
/// ```
pub type PostgresStore = SqlStore<Postgres>;

/// The database beneath a [`PostgresStore`]: a server and the connections to it.
#[derive(Debug, Clone)]
pub struct Postgres {
    driver: Arc<PostgresDriver>,
    pool: Arc<ConnectionPool<PostgresDriver>>,
    /// How nodes hear of each other's work; `None` behind a pooler without an address to listen at.
    coordinator: Option<Arc<PostgresCoordinator>>,
}

impl Postgres {
    pub(crate) fn new(
        driver: Arc<PostgresDriver>,
        pool: ConnectionPool<PostgresDriver>,
        hearing: Option<Hearing>,
    ) -> Self {
        let pool = Arc::new(pool);
        let coordinator =
            hearing.map(|hearing| Arc::new(PostgresCoordinator::new(hearing.at, &hearing.channel, pool.clone())));
        Self { driver, pool, coordinator }
    }

    /// Makes sure that the database has the schema that these steps make.
    pub(crate) async fn prepare(&self, migrate: bool, steps: &'static [Migration]) -> Result<(), StoreError> {
        if migrate {
            let migrated = work!([steps], |conn| migrate::migrate_exclusively(conn, steps));
            return self.pool.migrate(Intent::Write, migrated).await.map(|_| ());
        }
        self.transact(Intent::Read, work!([steps], |conn| migrate::check(conn, steps))).await
    }

    /// Waits until the store hears of work on other nodes, for tests.
    #[doc(hidden)]
    pub async fn until_heard(&self) {
        if let Some(coordinator) = &self.coordinator {
            coordinator.hear();
            coordinator.until_heard().await;
        }
    }
}

impl Backend for Postgres {
    const NAME: &'static str = "postgres";

    type Address = str;
    type Options = PostgresOptions;

    fn options(url: &str) -> PostgresOptions {
        PostgresOptions::new(url)
    }

    async fn open(options: PostgresOptions) -> Result<Self, StoreError> {
        options.open_backend().await
    }

    fn context(&self) -> &StoreContext {
        &self.driver.context
    }

    fn counts(&self) -> Counts {
        self.driver.counters.read()
    }

    async fn transact<T: Send + 'static>(&self, intent: Intent, work: Work<T>) -> Result<T, StoreError> {
        self.pool.transact(intent, work).await
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError> {
        self.pool.open_heartbeat().await
    }

    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        self.coordinator.clone().map(|coordinator| coordinator as Arc<dyn ClusterCoordinator>)
    }
}
