use std::time::Duration;

use ratchet_core::JobState;
use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::{ArchiveRequest, ClusterStore as _};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, PgConnection};
use ratchet_store_sql::{archive, dead_letters, insight, listing};
use ratchet_testdb::history::{self, Sql};

use super::database::TestDatabase;
use super::plan::{LikeTheStore as _, blocks};

/// The blocks that each look reads, where so many jobs have ended and as many wait.
async fn blocks_at(count: u64) -> Vec<(String, i64)> {
    let database = TestDatabase::without_schema().await;
    let store = PostgresStore::options(&database.url()).migrate(true).connect().await.unwrap();
    let now = store.database_time().await.unwrap().as_millisecond();
    for statement in Sql::Postgres.history(count, now).chain(Sql::Postgres.backlog(count, now)) {
        database.execute(statement).await;
    }
    let mut conn = PgConnection::connect_like_the_store(&database).await;
    let mut found = Vec::new();
    // A prepared statement is planned for its values at first; after a few runs it may get one plan for all values.
    for mode in ["force_custom_plan", "force_generic_plan"] {
        sqlx::query("SELECT set_config('plan_cache_mode', $1, FALSE)").bind(mode).execute(&mut conn).await.unwrap();
        let looks = looks(&mut conn).await;
        found.extend(looks.into_iter().map(|(name, blocks)| (format!("{name} ({mode})"), blocks)));
    }
    found
}

async fn looks(conn: &mut PgConnection) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    // What it has read is told elsewhere when a transaction ends.
    sqlx::raw_sql("BEGIN").execute(&mut *conn).await.unwrap();
    for (name, filter) in history::lists() {
        for (scope, archive) in [("", ArchiveScope::Live), (", archive too", ArchiveScope::Both)] {
            let before = blocks(conn).await;
            let filter = JobFilter { archive, ..filter.clone() };
            listing::list(&mut ratchet_store_postgres::conn(conn), &filter, None, 10).await.unwrap();
            found.push((format!("{name}{scope}"), blocks(conn).await - before));
        }
    }
    let all = JobFilter::default();
    let before = blocks(conn).await;
    let letters = dead_letters::dead_letters(&mut ratchet_store_postgres::conn(conn), &all, None, 10).await.unwrap();
    assert_eq!(letters.items.len(), 10);
    found.push(("letters".to_owned(), blocks(conn).await - before));
    let before = blocks(conn).await;
    let ends = insight::recent_ends(&mut ratchet_store_postgres::conn(conn), JobState::Failed, 10).await.unwrap();
    assert_eq!(ends.len(), 10);
    found.push(("ends".to_owned(), blocks(conn).await - before));
    let before = blocks(conn).await;
    let failed = insight::count_ended(&mut ratchet_store_postgres::conn(conn), JobState::Failed, 10).await.unwrap();
    assert_eq!(failed, 10);
    found.push(("ended".to_owned(), blocks(conn).await - before));
    sqlx::raw_sql("ROLLBACK").execute(&mut *conn).await.unwrap();
    for (name, state) in [("archive failed", JobState::Failed), ("archive succeeded", JobState::Succeeded)] {
        sqlx::raw_sql("BEGIN").execute(&mut *conn).await.unwrap();
        let before = blocks(conn).await;
        let request = ArchiveRequest { state, age: Duration::from_hours(24), after: None, limit: 10, only: None };
        let done = archive::archive(&mut ratchet_store_postgres::conn(conn), &request).await.unwrap();
        assert_eq!(done.moved, 10, "{name}");
        found.push((name.to_owned(), blocks(conn).await - before));
        sqlx::raw_sql("ROLLBACK").execute(&mut *conn).await.unwrap();
    }
    found
}

#[test]
fn lists_and_archiving_read_as_much_of_many_jobs_as_of_few() {
    super::run(async {
        let few = blocks_at(40_000).await;
        let many = blocks_at(200_000).await;
        for ((name, few), (_, many)) in few.iter().zip(&many) {
            println!("{name}: {few} blocks at 40,000, {many} at 200,000");
        }
        for ((name, few), (_, many)) in few.iter().zip(&many) {
            // Of five times as many. A little more is read where the fewer ones were all looked at.
            assert!(*few > 0 && *many <= few * 3, "{name} reads {many} blocks at 200,000, {few} at 40,000");
        }
    });
}
