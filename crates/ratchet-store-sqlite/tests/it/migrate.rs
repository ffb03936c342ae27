use std::path::Path;

use ratchet_conformance::upgrade;
use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_sql::{Dialect, migrate};
use ratchet_store_sqlite::SqliteStore;
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, AssertSqlSafe, ConnectOptions as _};
use tempfile::TempDir;

/// What `sqlite_master` says, in one line per table or index.
async fn schema(path: &Path) -> Vec<String> {
    let mut conn = SqliteConnectOptions::new().filename(path).connect().await.unwrap();
    let found: Vec<(String,)> =
        sqlx::query_as("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
            .fetch_all(&mut conn)
            .await
            .unwrap();
    let normal = |sql: String| sql.split_whitespace().collect::<String>().replace("IFNOTEXISTS", "");
    found.into_iter().map(|(sql,)| normal(sql)).collect()
}

async fn execute(path: &Path, script: &str) {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut conn = options.connect().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut conn).await.unwrap();
}

async fn refused(path: &Path) -> StoreError {
    let refused = SqliteStore::open(path).await.expect_err("such a schema is refused");
    assert_eq!(*refused.kind(), ErrorKind::Invalid, "{refused}");
    assert!(refused.to_string().contains(&path.display().to_string()), "{refused}");
    refused
}

#[test]
fn migrations_and_clean_install_give_the_same_schema() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let clean = dir.path().join("clean.db");
        execute(&clean, migrate::clean_install(Dialect::Sqlite)).await;
        assert_eq!(schema(&dir.path().join("jobs.db")).await, schema(&clean).await);
        SqliteStore::options(&clean).migrate(false).open().await.expect("a clean install needs no migration");
    });
}

#[test]
fn migrations_are_numbered_without_gaps() {
    for (index, migration) in migrate::migrations(Dialect::Sqlite).iter().enumerate() {
        assert_eq!(migration.version as usize, index + 1);
    }
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
fn eight_at_once_migrate_once() {
    super::run(async {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("jobs.db");
        let opened = (0..8).map(|_| tokio::spawn(SqliteStore::options(&path).open()));
        for opened in futures_util::future::join_all(opened).await {
            opened.unwrap().unwrap();
        }
    });
}

#[test]
fn a_changed_script_is_refused() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let path = dir.path().join("jobs.db");
        execute(&path, "UPDATE ratchet_schema_version SET checksum = 'abc'").await;
        assert!(refused(&path).await.to_string().contains("checksum abc"));
    });
}

#[test]
fn a_newer_schema_is_refused() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let path = dir.path().join("jobs.db");
        execute(&path, "INSERT INTO ratchet_schema_version VALUES (99, 'later', 'x', 0, 0)").await;
        assert!(refused(&path).await.to_string().contains("use a newer program"));
    });
}

#[test]
fn a_gap_and_a_half_applied_step_are_refused() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let path = dir.path().join("jobs.db");
        execute(&path, "UPDATE ratchet_schema_version SET dirty = 1").await;
        assert!(refused(&path).await.to_string().contains("not finished"));
        execute(&path, "UPDATE ratchet_schema_version SET version = 0 WHERE version = 1").await;
        assert!(refused(&path).await.to_string().contains("left out"));
    });
}

#[test]
fn a_schema_that_lacks_something_is_refused_if_it_may_not_be_migrated() {
    super::run(async {
        let dir = TempDir::new().unwrap();
        let refused = SqliteStore::options(dir.path().join("jobs.db")).migrate(false).open().await.unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("run the migrations first"), "{refused}");
    });
}

#[test]
fn lines_that_had_rows_of_their_own_are_kept() {
    super::run(async {
        let (store, dir) = super::fresh().await;
        drop(store);
        let path = dir.path().join("jobs.db");
        execute(&path, "DROP TABLE scheduler_job_log; DELETE FROM ratchet_schema_version WHERE version = 10").await;
        execute(&path, migrate::migrations(Dialect::Sqlite)[6].sql).await;
        let id = format!("X'{}'", upgrade::JOB.0.simple());
        let lines = format!(
            "INSERT INTO scheduler_job_log VALUES \
             ({id}, 3, 1, 2, 3, {id}, 1700000000123456, 'two\nlines', NULL), \
             ({id}, 3, 2, 2, 5, {id}, 1700000000123456, 'rich', '{{\"a\": \"b\"}}')"
        );
        execute(&path, &lines).await;
        let store = SqliteStore::open(&path).await.unwrap();
        upgrade::assert_lines_are_there(&store).await;
    });
}
