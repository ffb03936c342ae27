//! The store: every call of the traits, on a connection of the pool.

use std::sync::Arc;
use std::time::Duration;

use ratchet_core::StoreError;
use ratchet_core::store::{MovableClock, PulseStore, Store};
use ratchet_store_pool::Pool;
use ratchet_store_sql::{Counts, Dialect, Intent, Transact, Work, migrate, server, work};

use crate::driver::MysqlDriver;
use crate::options::MysqlOptions;

/// A store on a MySQL or MariaDB server. Cloning gives another handle to the same store.
#[derive(Debug, Clone)]
pub struct MysqlStore {
    driver: Arc<MysqlDriver>,
    pool: Arc<Pool<MysqlDriver>>,
}

impl MysqlStore {
    /// Opens the database at `url` with every option at its default; its schema must be up to date.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::options(url).connect().await
    }

    /// How to open the database at `url`: `mysql://user:password@host:3306/database`.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), ratchet_core::StoreError> {
    /// use ratchet_store_mysql::MysqlStore;
    ///
    /// let store = MysqlStore::options("mysql://app@localhost/app").migrate(true).connections(4).connect().await?;
    /// # drop(store); Ok(()) }
    /// ```
    pub fn options(url: &str) -> MysqlOptions {
        MysqlOptions::new(url)
    }

    pub(crate) fn new(driver: Arc<MysqlDriver>, pool: Pool<MysqlDriver>) -> Self {
        Self { driver, pool: Arc::new(pool) }
    }

    /// Makes sure that the database has the schema that this version needs.
    pub(crate) async fn prepare(&self, migrate: bool) -> Result<(), StoreError> {
        if self.transact(Intent::Read, work!([], |conn| server::is_mariadb(conn))).await? {
            self.driver.texts.found_mariadb();
        }
        if migrate {
            // DDL commits by itself here, so there is no transaction to put it in; the lock belongs to the connection.
            let migrated = work!([], |conn| migrate::migrate_exclusively(conn));
            return self.pool.migrate(Intent::Statement, migrated).await.map(|_| ());
        }
        self.transact(Intent::Read, work!([], |conn| migrate::check(conn))).await
    }

    /// How much the store has asked of its database since it was opened.
    pub fn counts(&self) -> Counts {
        self.driver.counters.read()
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn PulseStore>, StoreError> {
        self.pool.open_pulse().await
    }
}

impl Transact for MysqlStore {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    async fn transact<T: Send + 'static>(&self, intent: Intent, work: Work<T>) -> Result<T, StoreError> {
        self.pool.transact(intent, work).await
    }
}

ratchet_store_sql::implement_store!(MysqlStore);

impl Store for MysqlStore {
    fn name(&self) -> &'static str {
        "mysql"
    }
}

impl MovableClock for MysqlStore {
    fn advance_clock(&self, by: Duration) {
        self.driver.texts.advance_clock(by);
    }
}
