use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::ClusterStore as _;
use ratchet_store_sql::listing;
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, AssertSqlSafe, ConnectOptions as _};
use ratchet_testdb::history::{self, Sql};

/// The steps of SQLite's machine for each list, where so many jobs have ended and as many wait.
async fn steps_at(count: u64) -> Vec<(String, u64)> {
    let (store, dir) = super::fresh().await;
    let mut conn = SqliteConnectOptions::new().filename(dir.path().join("jobs.db")).connect().await.unwrap();
    let now = store.database_time().await.unwrap().as_millisecond();
    for statement in Sql::Sqlite.history(count, now).chain(Sql::Sqlite.backlog(count, now)) {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut conn).await.unwrap();
    }
    let steps = Arc::new(AtomicU64::new(0));
    let counted = steps.clone();
    conn.lock_handle().await.unwrap().set_progress_handler(1, move || {
        counted.fetch_add(1, Ordering::Relaxed);
        true
    });
    let mut found = Vec::new();
    for (name, filter) in history::lists() {
        for (scope, archive) in [("", ArchiveScope::Live), (", archive too", ArchiveScope::Both)] {
            steps.store(0, Ordering::Relaxed);
            let filter = JobFilter { archive, ..filter.clone() };
            listing::list(&mut ratchet_store_sqlite::conn(&mut conn), &filter, None, 10).await.unwrap();
            found.push((format!("{name}{scope}"), steps.load(Ordering::Relaxed)));
        }
    }
    found
}

#[test]
fn lists_take_as_long_of_many_jobs_as_of_few() {
    super::run(async {
        let few = steps_at(40_000).await;
        let many = steps_at(200_000).await;
        for ((name, few), (_, many)) in few.iter().zip(&many) {
            println!("{name}: {few} steps at 40,000, {many} at 200,000");
        }
        for ((name, few), (_, many)) in few.iter().zip(&many) {
            // Of five times as many. A little more is read where the fewer ones were all looked at.
            assert!(*few > 0 && *many <= few * 3, "{name} takes {many} steps at 200,000, {few} at 40,000");
        }
    });
}
