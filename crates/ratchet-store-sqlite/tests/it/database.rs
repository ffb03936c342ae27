//! SQLite's side of what SQL stores share in their tests.

use std::path::Path;
use std::sync::Arc;

use ratchet_store_sql::Dialect;
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{
    AssertSqlSafe, ConnectOptions as _, Executor as _, SqlSafeStr as _, SqliteConnection,
};
use ratchet_store_sqlite::{Sqlite, SqliteStore};
use ratchet_testdb::suite::SqlDatabase;
use tempfile::TempDir;

pub(crate) struct TestDatabase {
    store: SqliteStore,
    dir: TempDir,
}

impl SqlDatabase for TestDatabase {
    type Backend = Sqlite;
    type Connection = SqliteConnection;
    const DIALECT: Dialect = Dialect::Sqlite;

    async fn fresh() -> Self {
        let (store, dir) = super::fresh().await;
        Self { store, dir }
    }

    async fn store(&self) -> SqliteStore {
        self.store.clone()
    }

    fn schema(&self) -> &'static str {
        "main"
    }

    async fn connect(&self) -> SqliteConnection {
        connect(self.dir.path()).await
    }

    async fn prepare(conn: &mut SqliteConnection, text: Arc<str>) -> Result<(), String> {
        conn.prepare(AssertSqlSafe(text).into_sql_str()).await.map(drop).map_err(|error| error.to_string())
    }
}

/// A connection of the driver to the file that [`fresh`](super::fresh) has made in this directory.
pub(crate) async fn connect(dir: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(dir.join("jobs.db")).connect().await.unwrap()
}

ratchet_testdb::sql_suite!(TestDatabase);
