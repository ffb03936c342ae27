//! What a child of a batch costs beside a job that belongs to nothing.

use ratchet_conformance::cost::{self, Spent};
use ratchet_conformance::{Bench, Fixture};
use ratchet_store_postgres::sqlx::{self, PgConnection, Row as _};

use super::database::TestDatabase;

#[test]
fn a_child_costs_about_as_much_as_a_plain_job() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let store = database.store().await;
        let mut conn = database.connect().await;
        let bench = Bench::new(Fixture::new(store.clone(), database)).await;
        let spent = async || Spent { statements: store.counts().statements, log_bytes: log_position(&mut conn).await };
        cost::a_child_costs_about_as_much_as_a_plain_job(&bench, spent).await;
    });
}

#[test]
fn dead_children_are_retried_together() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let store = database.store().await;
        let bench = Bench::new(Fixture::new(store.clone(), database)).await;
        cost::dead_children_are_retried_together(&bench, || store.counts().statements).await;
    });
}

async fn log_position(conn: &mut PgConnection) -> u64 {
    let position = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS position";
    let row = sqlx::query(position).fetch_one(conn).await.unwrap();
    u64::try_from(row.get::<i64, _>("position")).unwrap()
}
