//! What a child of a batch costs beside a job that belongs to nothing.

use std::path::{Path, PathBuf};

use ratchet_conformance::cost::{self, Belonging, Spent, compare, of_a_round};
use ratchet_conformance::{Fixture, Harness};
use ratchet_store_sqlite::sqlx::{self, SqliteConnection};

use super::database::connect;
use super::fresh;

const ROUNDS: u32 = 3;

#[test]
fn a_child_costs_about_as_much_as_a_plain_job() {
    super::run(async {
        let (store, dir) = fresh().await;
        let mut log = Log::of(dir.path()).await;
        let harness = Harness::new(Fixture::new(store.clone(), dir)).await;
        let mut log_bytes = 0;
        let mut spent = async || {
            log_bytes += log.empty().await;
            Spent { statements: store.counts().statements, log_bytes }
        };
        // Whole pages are logged, and which ones depends on how the trees have grown: the sum of some rounds, of which the
        // first, on empty tables, does not count.
        let mut sums = [Spent::default(); 2];
        for round in 0..=ROUNDS {
            for (belonging, sum) in [Belonging::Plain, Belonging::Child].into_iter().zip(&mut sums) {
                let cost = cost::sum(&of_a_round(&harness, belonging, &mut spent).await);
                if round > 0 {
                    *sum = *sum + cost;
                }
            }
        }
        compare(sums[0], sums[1], ROUNDS);
    });
}

/// The write-ahead log, emptied before it is so long that it would begin anew by itself.
struct Log {
    path: PathBuf,
    conn: SqliteConnection,
}

impl Log {
    async fn of(dir: &Path) -> Self {
        Self { path: dir.join("jobs.db-wal"), conn: connect(dir).await }
    }

    /// Empties it; says how long it was.
    async fn empty(&mut self) -> u64 {
        let length = std::fs::metadata(&self.path).unwrap().len();
        let done: (i64, i64, i64) =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut self.conn).await.unwrap();
        assert_eq!(done.0, 0, "nobody else is at work");
        length
    }
}
