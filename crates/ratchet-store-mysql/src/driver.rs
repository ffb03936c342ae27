use std::sync::Arc;

use ratchet_core::StoreError;
use ratchet_store_pool::Driver;
use ratchet_store_sql::{Conn, Counters, StoreContext};
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _, MySqlConnection};

use crate::conn::Session;
use crate::error::store_error;

/// How the store reaches its server.
#[derive(Debug)]
pub(crate) struct MysqlDriver {
    pub(crate) options: MySqlConnectOptions,
    pub(crate) context: Arc<StoreContext>,
    pub(crate) counters: Arc<Counters>,
}

/// Claimers must not lock the gaps between rows, and must see what others have committed since they began. A value that
/// does not fit is an error, and a statement outside of a transaction is committed, whatever the server's configuration says. A machine that vanishes in the midst of a
/// transaction must not keep its locks for hours: MariaDB ends the idle transaction, MySQL the idle connection.
const SESSION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
     SET SESSION autocommit = 1, innodb_lock_wait_timeout = 10, wait_timeout = 60, \
     sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES'); \
     /*M! SET SESSION idle_transaction_timeout = 10 */";

impl Driver for MysqlDriver {
    type Connection = MySqlConnection;

    async fn connect(&self) -> Result<MySqlConnection, StoreError> {
        const DOING: &str = "connecting to MySQL";
        let mut connection = self.options.connect().await.map_err(|error| store_error(DOING, error))?;
        connection.execute(sqlx::raw_sql(SESSION)).await.map_err(|error| store_error(DOING, error))?;
        Ok(connection)
    }

    fn session<'c>(&'c self, connection: &'c mut MySqlConnection) -> impl Conn + 'c {
        Session { conn: connection, context: &self.context, counters: &self.counters, callers: false }
    }
}
