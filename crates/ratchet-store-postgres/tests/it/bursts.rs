//! What turns read when many jobs come to a queue that was empty for long.

use std::time::Duration;

use ratchet_conformance::success;
use ratchet_core::store::{JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{Claim, NodeId};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, PgConnection};

use super::database::TestDatabase;

const BURST: usize = 30_000;
const TOGETHER: usize = 400;

/// Rows of jobs that all connections have fetched by keys.
async fn rows_read(conn: &mut PgConnection) -> i64 {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let read = "SELECT SUM(idx_tup_read)::bigint FROM pg_stat_user_indexes \
                WHERE indexrelname IN ('scheduler_job_queue_pkey', 'scheduler_job_pkey')";
    sqlx::query_scalar(read).fetch_one(conn).await.unwrap()
}

async fn submit(store: &PostgresStore, numbers: std::ops::Range<usize>) {
    // Scattered, as ids from many nodes are a little.
    let scattered = |number: usize| (number as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    let jobs = numbers.map(|number| super::job(scattered(number))).collect();
    store.submit(&[SubmitUnit::of(jobs)]).await.unwrap();
}

/// Settles what was claimed, and claims.
async fn turn(store: &PostgresStore, node: NodeId, claimed: &[Claim]) -> Vec<Claim> {
    let settlements: Vec<_> = claimed.iter().map(success).collect();
    store.settle_and_claim(&settlements, Some(&super::request(node, &["work"], TOGETHER))).await.unwrap().claimed
}

/// The server keeps plans that it made when there was nothing.
#[test]
fn a_burst_is_not_met_with_plans_for_an_empty_queue() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let store = PostgresStore::options(database.url()).migrate(true).connect().await.unwrap();
        let node = super::register(&store).await;
        let mut watcher = database.connect().await;
        sqlx::raw_sql("VACUUM ANALYZE").execute(&mut watcher).await.unwrap();
        let mut claimed = Vec::new();
        for number in (1..=40).step_by(2) {
            submit(&store, number..number + 2).await;
            claimed = turn(&store, node, &claimed).await;
        }
        for first in (1_000..1_000 + BURST).step_by(1_000) {
            submit(&store, first..first + 1_000).await;
        }
        let before = rows_read(&mut watcher).await;
        for _ in 0..3 {
            // Connections tell what they did at most once a second.
            tokio::time::sleep(Duration::from_millis(1_100)).await;
            claimed = turn(&store, node, &claimed).await;
            assert_eq!(claimed.len(), TOGETHER);
        }
        let read = rows_read(&mut watcher).await - before;
        assert!(read < 20_000, "three turns have read {read} rows of {BURST} jobs");
    });
}
