use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ratchet_core::store::ClusterStore as _;
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, AssertSqlSafe, ConnectOptions as _};
use ratchet_testdb::history::Sql;
use ratchet_testdb::looks::{assert_alike, looks};

/// The steps of SQLite's machine for each look, where so many jobs have ended and as many wait.
async fn steps_at(count: u64) -> Vec<(String, i64)> {
    let (store, dir) = super::fresh().await;
    let mut conn = SqliteConnectOptions::new().filename(dir.path().join("jobs.db")).connect().await.unwrap();
    let now = store.database_time().await.unwrap();
    let ms = now.as_millisecond();
    for statement in Sql::Sqlite.history(count, ms).chain(Sql::Sqlite.backlog(count, ms)) {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut conn).await.unwrap();
    }
    let steps = Arc::new(AtomicI64::new(0));
    let counted = steps.clone();
    conn.lock_handle().await.unwrap().set_progress_handler(1, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        true
    });
    let mut found = Vec::new();
    for (name, look) in looks(now) {
        sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut conn).await.unwrap();
        steps.store(0, Ordering::Relaxed);
        look.take(&mut ratchet_store_sqlite::conn(&mut conn)).await;
        found.push((name, steps.load(Ordering::Relaxed)));
        sqlx::raw_sql("ROLLBACK").execute(&mut conn).await.unwrap();
    }
    found
}

#[test]
fn looks_take_as_long_of_many_jobs_as_of_few() {
    super::run(async {
        assert_alike("steps", &steps_at(40_000).await, &steps_at(200_000).await);
    });
}
