use ratchet_core::Timestamp;
use ratchet_core::store::ClusterStore as _;
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, PgConnection};
use ratchet_testdb::history::Sql;
use ratchet_testdb::looks::{assert_alike, looks};

use super::database::TestDatabase;
use super::plan::{LikeTheStore as _, blocks};

/// The blocks that each look reads, where so many jobs have ended and as many wait.
async fn blocks_at(count: u64) -> Vec<(String, i64)> {
    let database = TestDatabase::without_schema().await;
    let store = PostgresStore::options(database.url()).migrate(true).connect().await.unwrap();
    let now = store.database_time().await.unwrap();
    let ms = now.as_millisecond();
    for statement in Sql::Postgres.history(count, ms).chain(Sql::Postgres.backlog(count, ms)) {
        database.execute(statement).await;
    }
    let mut conn = PgConnection::connect_like_the_store(&database).await;
    let mut found = Vec::new();
    // A prepared statement is planned for its values at first; after a few runs it may get one plan for all values.
    for mode in ["force_custom_plan", "force_generic_plan"] {
        sqlx::query("SELECT set_config('plan_cache_mode', $1, FALSE)").bind(mode).execute(&mut conn).await.unwrap();
        let taken = taken(&mut conn, now).await;
        found.extend(taken.into_iter().map(|(name, blocks)| (format!("{name} ({mode})"), blocks)));
    }
    found
}

async fn taken(conn: &mut PgConnection, now: Timestamp) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    for (name, look) in looks(now) {
        // What it has read is told elsewhere when a transaction ends.
        sqlx::raw_sql("BEGIN").execute(&mut *conn).await.unwrap();
        let before = blocks(conn).await;
        look.take(&mut ratchet_store_postgres::conn(conn)).await;
        found.push((name, blocks(conn).await - before));
        sqlx::raw_sql("ROLLBACK").execute(&mut *conn).await.unwrap();
    }
    found
}

#[test]
fn looks_read_as_much_of_many_jobs_as_of_few() {
    super::run(async {
        assert_alike("blocks", &blocks_at(40_000).await, &blocks_at(200_000).await);
    });
}
