use ratchet_conformance::upgrade;
use ratchet_core::store::ClusterStore as _;
use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, AssertSqlSafe};
use ratchet_store_sql::{Dialect, migrate};

use super::database::TestDatabase;

/// What the catalogue says: every column with its type, every index with its definition, every table's settings.
async fn schema(database: &TestDatabase) -> Vec<String> {
    let mut conn = database.connect().await;
    let columns = "SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || \
                   COALESCE(column_default, '') FROM information_schema.columns WHERE table_schema = 'public' \
                   UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
                   UNION ALL SELECT relname || ' ' || COALESCE(array_to_string(reloptions, ','), '') FROM pg_class \
                   WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1";
    sqlx::query_scalar(AssertSqlSafe(columns)).fetch_all(&mut conn).await.unwrap()
}

async fn refused(database: &TestDatabase) -> StoreError {
    let refused = PostgresStore::options(&database.url()).migrate(true).connect().await;
    let refused = refused.expect_err("such a schema is refused");
    assert_eq!(*refused.kind(), ErrorKind::Invalid, "{refused}");
    refused
}

#[test]
fn migrations_and_clean_install_give_the_same_schema() {
    super::run(async {
        let migrated = TestDatabase::without_schema().await;
        PostgresStore::options(&migrated.url()).migrate(true).connect().await.unwrap();
        let clean = TestDatabase::without_schema().await;
        clean.execute(migrate::clean_install(Dialect::Postgres)).await;
        assert_eq!(schema(&migrated).await, schema(&clean).await);
        PostgresStore::connect(&clean.url()).await.expect("a clean install needs no migration");
    });
}

#[test]
fn eight_at_once_migrate_once() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let opened = (0..8).map(|_| tokio::spawn(PostgresStore::options(&database.url()).migrate(true).connect()));
        for opened in futures_util::future::join_all(opened).await {
            opened.unwrap().unwrap().database_time().await.unwrap();
        }
    });
}

#[test]
fn a_schema_that_lacks_something_is_refused_if_it_may_not_be_migrated() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let refused = PostgresStore::connect(&database.url()).await.unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("run the migrations first"), "{refused}");
    });
}

#[test]
fn a_schema_of_another_making_is_refused() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        PostgresStore::options(&database.url()).migrate(true).connect().await.unwrap();
        database.execute("UPDATE ratchet_schema_version SET checksum = 'abc'").await;
        assert!(refused(&database).await.to_string().contains("checksum abc"));
        database.execute("UPDATE ratchet_schema_version SET dirty = TRUE").await;
        assert!(refused(&database).await.to_string().contains("not finished"));
        database.execute("INSERT INTO ratchet_schema_version VALUES (99, 'later', 'x', now(), FALSE)").await;
        assert!(refused(&database).await.to_string().contains("use a newer program"));
    });
}

#[test]
fn a_step_that_breaks_off_leaves_nothing() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        // In the way of the last table but one.
        database.execute("CREATE TABLE scheduler_lock (mine integer)").await;
        refused(&database).await;
        database.execute("DROP TABLE scheduler_lock").await;
        PostgresStore::options(&database.url()).migrate(true).connect().await.unwrap();
    });
}

#[test]
fn what_cannot_be_reached_is_named() {
    super::run(async {
        let check = async |url: &str, kind: ErrorKind, text: &str| {
            let refused = PostgresStore::connect(url).await.unwrap_err();
            assert_eq!(*refused.kind(), kind, "{refused}");
            assert!(refused.to_string().contains(text), "{refused}");
            assert!(!format!("{refused:?}").contains("s3cret"), "{refused:?}");
        };
        check("jobs.db", ErrorKind::Invalid, "must begin with postgres://").await;
        check("mysql://u@h/d", ErrorKind::Invalid, "must begin with postgres://").await;
        check("postgres://u:s3cret@h:port/d", ErrorKind::Invalid, "the URL cannot be read").await;
        check("postgres://u:s3cret@127.0.0.1:1/d", ErrorKind::Unavailable, "127.0.0.1:1").await;
        let server = ratchet_testdb::postgres_url().unwrap();
        check(&super::database::url_of(&server, "nowhere"), ErrorKind::Invalid, "create it first").await;
        let options = PostgresStore::options(&server).channel("");
        assert!(options.connect().await.unwrap_err().to_string().contains("channel"));
    });
}

#[test]
fn a_migration_waits_longer_for_another_than_a_transaction_may_take() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let mut other = database.connect().await;
        sqlx::raw_sql("BEGIN; SELECT pg_advisory_xact_lock(7236824)").execute(&mut other).await.unwrap();
        let limit = std::time::Duration::from_millis(100);
        let opening = PostgresStore::options(&database.url()).migrate(true).transaction_timeout(limit).connect();
        let mut opening = std::pin::pin!(opening);
        let waited = tokio::time::timeout(limit * 5, &mut opening).await;
        assert!(waited.is_err(), "it waits: {waited:?}");
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
        opening.await.unwrap();
    });
}

#[test]
fn lines_that_had_rows_of_their_own_are_kept() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        PostgresStore::options(&database.url()).migrate(true).connect().await.unwrap();
        let before = "DROP TABLE scheduler_job_log; DELETE FROM ratchet_schema_version WHERE version = 10";
        database.execute(before).await;
        database.execute(migrate::migrations(Dialect::Postgres)[5].sql).await;
        let id = upgrade::JOB.to_string();
        let lines = format!(
            "INSERT INTO scheduler_job_log VALUES \
             ('{id}', 3, 1, 2, 3, '{id}', '2023-11-14 22:13:20.123456Z', 'two\nlines', NULL), \
             ('{id}', 3, 2, 2, 5, '{id}', '2023-11-14 22:13:20.123456Z', 'rich', '{{\"a\": \"b\"}}')"
        );
        database.execute(lines).await;
        let store = PostgresStore::options(&database.url()).migrate(true).connect().await.unwrap();
        upgrade::assert_lines_are_there(&store).await;
    });
}
