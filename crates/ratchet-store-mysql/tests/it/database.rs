//! The server's side of what SQL stores share in their tests.

use std::str::FromStr as _;
use std::sync::Arc;

use ratchet_store_mysql::sqlx::mysql::MySqlConnectOptions;
use ratchet_store_mysql::sqlx::{
    self, AssertSqlSafe, ConnectOptions as _, Executor as _, MySqlConnection, SqlSafeStr as _,
};
use ratchet_store_mysql::{Mysql, MysqlStore};
use ratchet_store_sql::{Conn, Dialect};
pub(crate) use ratchet_testdb::suite::url_of;
use ratchet_testdb::suite::{ServerDatabase, TestServer};

pub(crate) type TestDatabase = ServerDatabase<MysqlServer>;

pub(crate) struct MysqlServer;

impl TestServer for MysqlServer {
    type Backend = Mysql;
    type Connection = MySqlConnection;
    const DIALECT: Dialect = Dialect::Mysql;
    const BEGIN: &'static str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN";
    const TAKING: &'static str = "locking jobs to claim";

    fn url() -> String {
        ratchet_testdb::mysql_url().unwrap()
    }

    async fn migrated(url: &str) -> MysqlStore {
        MysqlStore::options(url).migrate(true).connect().await.unwrap()
    }

    async fn connect(url: &str) -> MySqlConnection {
        MySqlConnectOptions::from_str(url).unwrap().disable_statement_logging().connect().await.unwrap()
    }

    async fn execute(conn: &mut MySqlConnection, script: String) {
        sqlx::raw_sql(AssertSqlSafe(script)).execute(conn).await.unwrap();
    }

    async fn prepare(conn: &mut MySqlConnection, text: Arc<str>) -> Result<(), String> {
        conn.prepare(AssertSqlSafe(text).into_sql_str()).await.map(drop).map_err(|error| error.to_string())
    }

    async fn log_position(conn: &mut MySqlConnection) -> u64 {
        let position = "SELECT CAST(variable_value AS UNSIGNED) FROM information_schema.global_status \
                        WHERE variable_name = 'innodb_lsn_current'";
        sqlx::query_scalar(position).fetch_one(conn).await.unwrap()
    }

    fn waist(conn: &mut MySqlConnection) -> impl Conn {
        ratchet_store_mysql::conn(conn)
    }
}

ratchet_testdb::server_suite!(MysqlServer);
