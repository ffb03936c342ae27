use std::path::{Path, PathBuf};

use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_sql::Dialect;
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_store_sqlite::SqliteStore;
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, AssertSqlSafe, ConnectOptions as _, SqliteConnection};
use ratchet_testdb::migrations::Target;
use tempfile::TempDir;

ratchet_testdb::migration_tests!(super::run, Directory);

/// A directory of a test's own, with one file.
struct Directory(TempDir);

impl Directory {
    fn file(&self) -> PathBuf {
        self.0.path().join("jobs.db")
    }
}

impl Target for Directory {
    const ROLLS_BACK: bool = true;

    async fn empty() -> Self {
        Self(TempDir::new().unwrap())
    }

    async fn open(&self, migrate: bool, steps: &'static [Migration]) -> Result<(), StoreError> {
        SqliteStore::options(self.file()).migrate(migrate).steps(steps).open().await.map(drop)
    }

    async fn execute(&self, sql: &str) {
        execute(&self.file(), sql).await;
    }

    async fn count(&self, sql: &str) -> i64 {
        let mut conn = connect(&self.file()).await;
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut conn).await.unwrap()
    }
}

/// The lines of `sqlite_master`, one per table or index.
async fn schema(path: &Path) -> Vec<String> {
    let found: Vec<(String,)> =
        sqlx::query_as("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
            .fetch_all(&mut connect(path).await)
            .await
            .unwrap();
    found.into_iter().map(|(sql,)| sql).collect()
}

async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

async fn execute(path: &Path, script: &str) {
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut connect(path).await).await.unwrap();
}

#[test]
fn migrations_and_clean_install_give_the_same_schema() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let clean = dir.path().join("clean.db");
        execute(&clean, &migrate::clean_install(Dialect::Sqlite)).await;
        assert_eq!(schema(&dir.path().join("jobs.db")).await, schema(&clean).await);
        SqliteStore::options(&clean).migrate(false).open().await.expect("a clean install needs no migration");
    });
}

#[test]
fn opening_again_changes_nothing() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let path = dir.path().join("jobs.db");
        let before = schema(&path).await;
        SqliteStore::open(&path).await.unwrap();
        SqliteStore::options(&path).migrate(false).create(false).open().await.unwrap();
        assert_eq!(schema(&path).await, before);
    });
}

#[test]
fn a_refusal_names_the_file() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let path = dir.path().join("jobs.db");
        execute(&path, "UPDATE ratchet_schema_version SET checksum = 'abc'").await;
        let refused = SqliteStore::open(&path).await.unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::Invalid, "{refused}");
        assert!(refused.to_string().contains("checksum abc"), "{refused}");
        assert!(refused.to_string().contains(&path.display().to_string()), "{refused}");
    });
}

#[test]
fn a_file_without_a_schema_is_refused_if_it_may_not_be_migrated() {
    super::run(async {
        let dir = TempDir::new().unwrap();
        let refused = SqliteStore::options(dir.path().join("jobs.db")).migrate(false).open().await.unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("run the migrations first"), "{refused}");
    });
}
