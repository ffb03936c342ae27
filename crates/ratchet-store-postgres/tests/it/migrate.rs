use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, AssertSqlSafe};
use ratchet_store_sql::Dialect;
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_testdb::migrations::Target;

use super::database::TestDatabase;

ratchet_testdb::migration_tests!(super::run, Unprepared);

/// A database without tables.
struct Unprepared(TestDatabase);

impl Target for Unprepared {
    const ROLLS_BACK: bool = true;

    async fn empty() -> Self {
        Self(TestDatabase::without_schema().await)
    }

    async fn open(&self, migrate: bool, steps: &'static [Migration]) -> Result<(), StoreError> {
        PostgresStore::options(self.0.url()).migrate(migrate).steps(steps).connect().await.map(drop)
    }

    async fn execute(&self, sql: &str) {
        self.0.execute(sql).await;
    }

    async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.0.connect().await).await.unwrap()
    }
}

/// The lines of the catalog: every column with its type, every index with its definition, every table's settings.
async fn schema(database: &TestDatabase) -> Vec<String> {
    let mut conn = database.connect().await;
    let columns = "SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || \
                   COALESCE(column_default, '') FROM information_schema.columns WHERE table_schema = 'public' \
                   UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
                   UNION ALL SELECT relname || ' ' || COALESCE(array_to_string(reloptions, ','), '') FROM pg_class \
                   WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1";
    sqlx::query_scalar(AssertSqlSafe(columns)).fetch_all(&mut conn).await.unwrap()
}

#[test]
fn migrations_and_clean_install_give_the_same_schema() {
    super::run(async {
        let migrated = TestDatabase::without_schema().await;
        PostgresStore::options(migrated.url()).migrate(true).connect().await.unwrap();
        let clean = TestDatabase::without_schema().await;
        clean.execute(migrate::clean_install(Dialect::Postgres)).await;
        assert_eq!(schema(&migrated).await, schema(&clean).await);
        PostgresStore::connect(&clean.url()).await.expect("a clean install needs no migration");
    });
}

#[test]
fn a_database_without_a_schema_is_refused_if_it_may_not_be_migrated() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let refused = PostgresStore::connect(&database.url()).await.unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("run the migrations first"), "{refused}");
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
        let opening = PostgresStore::options(database.url()).migrate(true).transaction_timeout(limit).connect();
        let mut opening = std::pin::pin!(opening);
        let waited = tokio::time::timeout(limit * 5, &mut opening).await;
        assert!(waited.is_err(), "it waits: {waited:?}");
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
        opening.await.unwrap();
    });
}
