use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, ConnectOptions as _, Connection as _};
use ratchet_store_sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

async fn refused(options: SqliteOptions, kind: ErrorKind, saying: &str) -> StoreError {
    let refused = options.open().await.expect_err("this cannot be opened");
    assert_eq!(*refused.kind(), kind, "{refused}");
    assert!(refused.to_string().contains(saying), "{refused}");
    refused
}

#[test]
fn what_cannot_be_opened_is_said_with_the_path_and_what_to_do() {
    super::run(async {
        let dir = TempDir::new().unwrap();
        let missing = dir.path().join("no/such/jobs.db");
        refused(SqliteStore::options(missing), ErrorKind::Invalid, "no/such does not exist; create it first").await;
        refused(SqliteStore::options(dir.path()), ErrorKind::Invalid, "is a directory").await;
        refused(SqliteStore::options(":memory:"), ErrorKind::Invalid, "MemoryStore").await;
        let absent = dir.path().join("absent.db");
        refused(SqliteStore::options(absent).create(false), ErrorKind::Invalid, "absent.db does not exist").await;
        let text = dir.path().join("text.db");
        std::fs::write(&text, "this is a letter, and not a short one: ".repeat(100)).unwrap();
        refused(SqliteStore::options(text), ErrorKind::Invalid, "text.db").await;
        // Root may write everywhere but here.
        refused(SqliteStore::options("/proc/jobs.db"), ErrorKind::Unavailable, "/proc/jobs.db").await;
    });
}

#[test]
fn a_database_of_somebody_else_is_refused_and_left_as_it_was() {
    super::run(async {
        let dir = TempDir::new().unwrap();
        let (empty, foreign) = (dir.path().join("empty.db"), dir.path().join("foreign.db"));
        std::fs::write(&empty, "").unwrap();
        let options = SqliteConnectOptions::new().filename(&foreign).create_if_missing(true);
        let mut conn = options.connect().await.unwrap();
        sqlx::raw_sql("CREATE TABLE theirs (x)").execute(&mut conn).await.unwrap();
        conn.close().await.unwrap();
        for file in [empty, foreign] {
            let before = std::fs::read(&file).unwrap();
            refused(SqliteStore::options(&file).migrate(false), ErrorKind::Invalid, "schema").await;
            assert_eq!(std::fs::read(&file).unwrap(), before, "{}", file.display());
        }
    });
}

#[test]
fn a_file_that_is_no_database_is_called_so() {
    super::run(async {
        let dir = TempDir::new().unwrap();
        let text = dir.path().join("text.db");
        std::fs::write(&text, "this is a letter, and not a short one: ".repeat(100)).unwrap();
        let refused = refused(SqliteStore::options(&text), ErrorKind::Invalid, "not a SQLite database").await;
        assert!(refused.to_string().contains("text.db"), "{refused}");
        assert!(std::fs::read_to_string(&text).unwrap().starts_with("this is a letter"), "it was left as it was");
    });
}
