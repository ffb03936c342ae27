//! The server's side of what SQL stores share in their tests.

use std::str::FromStr as _;
use std::sync::Arc;

use ratchet_store_postgres::sqlx::postgres::PgConnectOptions;
use ratchet_store_postgres::sqlx::{
    self, AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection, SqlSafeStr as _,
};
use ratchet_store_postgres::{Postgres, PostgresStore};
use ratchet_store_sql::{Conn, Dialect};
pub(crate) use ratchet_testdb::suite::url_of;
use ratchet_testdb::suite::{ServerDatabase, TestServer};

pub(crate) type TestDatabase = ServerDatabase<PostgresServer>;

pub(crate) struct PostgresServer;

impl TestServer for PostgresServer {
    type Backend = Postgres;
    type Connection = PgConnection;
    const DIALECT: Dialect = Dialect::Postgres;
    const BEGIN: &'static str = "BEGIN";
    const TAKING: &'static str = "claiming and reading jobs";

    fn url() -> String {
        ratchet_testdb::postgres_url().unwrap()
    }

    async fn migrated(url: &str) -> PostgresStore {
        PostgresStore::options(url).migrate(true).connect().await.unwrap()
    }

    async fn connect(url: &str) -> PgConnection {
        PgConnectOptions::from_str(url).unwrap().disable_statement_logging().connect().await.unwrap()
    }

    async fn execute(conn: &mut PgConnection, script: String) {
        sqlx::raw_sql(AssertSqlSafe(script)).execute(conn).await.unwrap();
    }

    async fn prepare(conn: &mut PgConnection, text: Arc<str>) -> Result<(), String> {
        let Err(error) = conn.prepare(AssertSqlSafe(text).into_sql_str()).await else { return Ok(()) };
        // Of a value that is only compared with NULL the type comes with the value.
        let is_undecided = error
            .as_database_error()
            .and_then(ratchet_store_postgres::sqlx::error::DatabaseError::code)
            .is_some_and(|code| code == "42P18");
        if is_undecided { Ok(()) } else { Err(error.to_string()) }
    }

    async fn log_position(conn: &mut PgConnection) -> u64 {
        let position = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
        let position: i64 = sqlx::query_scalar(position).fetch_one(conn).await.unwrap();
        u64::try_from(position).unwrap()
    }

    fn waist(conn: &mut PgConnection) -> impl Conn {
        ratchet_store_postgres::conn(conn)
    }
}

ratchet_testdb::server_suite!(PostgresServer);
