//! Reads of claims while an old snapshot is open, so that the index entries of jobs that they took cannot be cleared away.

use std::collections::HashSet;
use std::time::Duration;

use ratchet_conformance::success;
use ratchet_core::store::{JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, PgConnection};

use crate::database::TestDatabase;

const JOBS: usize = 40_000;
const TOGETHER: usize = 50;

/// Entries of the claim index that all connections have read.
async fn entries_read(conn: &mut PgConnection) -> usize {
    // Connections tell what they did at most once a second.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'idx_queue_claim'";
    let read: i64 = sqlx::query_scalar(read).fetch_one(conn).await.unwrap();
    usize::try_from(read).unwrap()
}

#[test]
fn claims_do_not_step_over_all_that_a_held_snapshot_keeps() {
    crate::run(async {
        let database = TestDatabase::without_schema().await;
        let store = PostgresStore::options(database.url()).migrate(true).connect().await.unwrap();
        let node = crate::register(&store).await;
        for first in (1..=JOBS).step_by(1_000) {
            let jobs = (first..first + 1_000).map(|number| crate::job(number as u128)).collect();
            store.submit(&[SubmitUnit::of(jobs)]).await.unwrap();
        }
        let (mut holder, mut watcher) = (database.connect().await, database.connect().await);
        sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT COUNT(*) FROM scheduler_node")
            .execute(&mut holder)
            .await
            .unwrap();

        let request = crate::request(node, &["work"], TOGETHER);
        let before = entries_read(&mut watcher).await;
        let (mut taken, mut settlements) = (HashSet::new(), Vec::new());
        loop {
            let turn = store.settle_and_claim(&settlements, Some(&request)).await.unwrap();
            assert_eq!(turn.settled.len(), settlements.len());
            settlements = turn.claimed.iter().map(success).collect();
            assert!(turn.claimed.iter().all(|claim| taken.insert(claim.job.id)), "each job is taken once");
            if turn.claimed.is_empty() && taken.len() == JOBS {
                break;
            }
        }
        let read = entries_read(&mut watcher).await - before;
        sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
        // From the start, each claim steps over what all before it took.
        let all = JOBS / TOGETHER * JOBS / 2;
        println!("{read} entries read; from the start it would be {all}");
        // When to look from the start is a matter of time, so that a busy machine looks more often; mostly it is a quarter.
        assert!(read < all / 4 * 3, "{read} entries of the index read, of {all} that claims from the start would");
    });
}
