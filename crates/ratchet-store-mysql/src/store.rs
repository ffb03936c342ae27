//! The database: each transaction on a connection of the pool.

use std::sync::Arc;

use ratchet_core::StoreError;
use ratchet_core::store::HeartbeatStore;
use ratchet_store_pool::ConnectionPool;
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_store_sql::{Backend, Counts, Intent, SqlStore, StoreContext, Work, server, work};

use crate::driver::MysqlDriver;
use crate::options::MysqlOptions;

/// A store on a MySQL or MariaDB server. Cloning gives another handle to the same store.
///
/// ```no_run
/// # async fn example() -> Result<(), ratchet_core::StoreError> {
/// use ratchet_store_mysql::MysqlStore;
///
/// let store = MysqlStore::options("mysql://app@localhost/app").migrate(true).connections(4).connect().await?;
/// # drop(store); Ok(()) }
/// ```
pub type MysqlStore = SqlStore<Mysql>;

/// The database beneath a [`MysqlStore`]: a server and the connections to it.
#[derive(Debug, Clone)]
pub struct Mysql {
    driver: Arc<MysqlDriver>,
    pool: Arc<ConnectionPool<MysqlDriver>>,
}

impl Mysql {
    pub(crate) fn new(driver: Arc<MysqlDriver>, pool: ConnectionPool<MysqlDriver>) -> Self {
        Self { driver, pool: Arc::new(pool) }
    }

    /// Makes sure that the database has the schema that these steps make.
    pub(crate) async fn prepare(&self, migrate: bool, steps: &'static [Migration]) -> Result<(), StoreError> {
        let server = self.transact(Intent::Read, work!([], |conn| server::identify(conn))).await?;
        self.driver.context.identify(server);
        if migrate {
            // DDL commits by itself here, so there is no transaction to put it in; the lock belongs to the connection.
            let migrated = work!([steps], |conn| migrate::migrate_exclusively(conn, steps));
            return self.pool.migrate(Intent::Statement, migrated).await.map(|_| ());
        }
        self.transact(Intent::Read, work!([steps], |conn| migrate::check(conn, steps))).await
    }
}

impl Backend for Mysql {
    const NAME: &'static str = "mysql";

    type Address = str;
    type Options = MysqlOptions;

    fn options(url: &str) -> MysqlOptions {
        MysqlOptions::new(url)
    }

    async fn open(options: MysqlOptions) -> Result<Self, StoreError> {
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
}
