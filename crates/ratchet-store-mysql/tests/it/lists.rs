use ratchet_core::store::ClusterStore as _;
use ratchet_store_mysql::sqlx;
use ratchet_testdb::history::Sql;
use ratchet_testdb::looks::{assert_alike, looks};

use super::database::TestDatabase;
use super::plan::reads;

/// The rows that each look reads, where so many jobs have ended and as many wait.
async fn reads_at(count: u64) -> Vec<(String, i64)> {
    let database = TestDatabase::fresh().await;
    let now = database.store().await.database_time().await.unwrap();
    let ms = now.as_millisecond();
    for statement in Sql::Mariadb.history(count, ms).chain(Sql::Mariadb.backlog(count, ms)) {
        database.execute(statement).await;
    }
    let mut conn = database.connect().await;
    let mut found = Vec::new();
    for (name, look) in looks(now) {
        sqlx::raw_sql("BEGIN").execute(&mut conn).await.unwrap();
        let before = reads(&mut conn).await;
        look.take(&mut ratchet_store_mysql::conn(&mut conn)).await;
        found.push((name, reads(&mut conn).await - before));
        sqlx::raw_sql("ROLLBACK").execute(&mut conn).await.unwrap();
    }
    found
}

#[test]
fn looks_read_as_much_of_many_jobs_as_of_few() {
    super::run(async {
        assert_alike("rows", &reads_at(40_000).await, &reads_at(200_000).await);
    });
}
