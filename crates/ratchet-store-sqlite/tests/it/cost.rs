//! What a child of a batch costs beside a job that belongs to nothing.

use std::path::{Path, PathBuf};

use ratchet_conformance::success;
use ratchet_core::batch::{BATCH_KIND, NewBatch, tie_child};
use ratchet_core::store::{BatchStore as _, JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{JobId, JobSpec, JsonText, Kind, NewJob, NodeId, Settlement};
use ratchet_store_sqlite::SqliteStore;
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, ConnectOptions as _, SqliteConnection};
use uuid::Uuid;

use super::{fresh, register, request};

const JOBS: u128 = 2_000;
const CHUNK: usize = 500;
const TOGETHER: usize = 100;
const ROUNDS: u32 = 3;

/// Statements and bytes of WAL.
#[derive(Debug, Clone, Copy)]
struct Cost {
    statements: f64,
    wal: f64,
}

#[test]
fn a_child_costs_about_as_much_as_a_plain_job() {
    super::run(async {
        let (store, dir) = fresh().await;
        let mut log = Log::of(dir.path()).await;
        let node = register(&store).await;
        // Whole pages are logged, and which ones depends on how the trees have grown: the mean of some rounds, of which
        // the first, on empty tables, does not count.
        let mut sums = [Cost { statements: 0.0, wal: 0.0 }; 2];
        for round in 0..=ROUNDS {
            for (in_batch, sum) in [false, true].into_iter().zip(&mut sums) {
                let from = u128::from(2 * round + u32::from(in_batch)) * JOBS;
                let cost = cost(&store, &mut log, node, from, in_batch).await;
                if round > 0 {
                    *sum = Cost { statements: sum.statements + cost.statements, wal: sum.wal + cost.wal };
                }
            }
        }
        let [plain, child] = sums;
        let mean = |sum: f64| sum / f64::from(ROUNDS);
        println!("statements per plain job {:.4}, per child {:.4}", mean(plain.statements), mean(child.statements));
        println!("bytes of WAL per plain job {:.0}, per child {:.0}", mean(plain.wal), mean(child.wal));
        assert!(child.statements <= 1.3 * plain.statements, "{sums:?}");
        assert!(child.wal <= 1.3 * plain.wal, "{sums:?}");
    });
}

/// Ids in the order of time, as the engine makes them: where they come to lie decides how many pages change.
fn job(number: u128) -> NewJob {
    super::job((number << 64) | 1)
}

/// Submits jobs, a chunk at a time, and settles and claims them, a hundred in a turn.
async fn cost(store: &SqliteStore, log: &mut Log, node: NodeId, from: u128, in_batch: bool) -> Cost {
    let parent =
        NewJob::new(JobId(Uuid::from_u128(from << 64)), JobSpec::new(Kind::new(BATCH_KIND).unwrap(), JsonText::null()));
    let batch = NewBatch { id: parent.id, sealed: false, hook: None };
    let id = batch.id;
    let statements = store.counts().statements;
    log.empty().await;
    let mut wal = 0;
    if in_batch {
        let unit = SubmitUnit::of(vec![parent]).with_batch(batch, Vec::new()).unwrap();
        store.submit(&[unit]).await.unwrap().remove(0).unwrap();
    }
    let mut jobs: Vec<NewJob> = (from + 1..=from + JOBS).map(job).collect();
    for chunk in jobs.chunks_mut(CHUNK) {
        if in_batch {
            for child in chunk.iter_mut() {
                tie_child(id, child).unwrap();
            }
            store.extend_batch(id, chunk).await.unwrap();
        } else {
            store.submit(&[SubmitUnit::of(chunk.to_vec())]).await.unwrap().remove(0).unwrap();
        }
        wal += log.empty().await;
    }
    let mut ended: Vec<Settlement> = Vec::new();
    loop {
        let turn = store.turn(&ended, Some(&request(node, &["work"], TOGETHER))).await.unwrap();
        wal += log.empty().await;
        if turn.claimed.is_empty() {
            break;
        }
        ended = turn.claimed.iter().map(success).collect();
    }
    if in_batch {
        store.seal_batch(id).await.unwrap();
        wal += log.empty().await;
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let each = |amount: u64| amount as f64 / JOBS as f64;
    let cost = Cost { statements: each(store.counts().statements - statements), wal: each(wal) };
    if in_batch {
        let batch = store.find_batches(&[id]).await.unwrap().remove(0);
        assert_eq!((batch.counts.total, batch.counts.succeeded), (2_000, 2_000));
    }
    cost
}

/// The write-ahead log, emptied before it is so long that it would begin anew by itself.
struct Log {
    path: PathBuf,
    conn: SqliteConnection,
}

impl Log {
    async fn of(dir: &Path) -> Self {
        let conn = SqliteConnectOptions::new().filename(dir.join("jobs.db")).connect().await.unwrap();
        Self { path: dir.join("jobs.db-wal"), conn }
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
