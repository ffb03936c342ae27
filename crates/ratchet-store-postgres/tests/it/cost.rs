//! What a child of a batch costs beside a job that belongs to nothing.

use ratchet_core::batch::{BATCH_KIND, NewBatch, tie_child};
use ratchet_core::store::{BatchStore as _, JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{JobId, JobSpec, JsonText, Kind, NewJob, NodeId, Settlement};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, PgConnection, Row as _};
use uuid::Uuid;

use super::database::TestDatabase;
use super::{job, register, request, success};

const JOBS: u128 = 2_000;
const CHUNK: usize = 500;
const TOGETHER: usize = 100;
const ROUNDS_MAX: u128 = 12;

/// Statements and bytes of WAL.
#[derive(Debug, Clone, Copy)]
struct Cost {
    statements: f64,
    wal: f64,
}

#[test]
fn a_child_costs_about_as_much_as_a_plain_job() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let store = database.store().await;
        let mut conn = database.connect().await;
        let node = register(&store).await;
        // Warm, then the cheapest of some rounds: others write to the server too, and pages are written in full now and
        // then. Both only ever add, so that more rounds come nearer to what it costs; a quiet server needs few.
        let mut plain = Vec::new();
        let mut child = Vec::new();
        let least = |costs: &[Cost], of: fn(&Cost) -> f64| costs.iter().skip(1).map(of).fold(f64::MAX, f64::min);
        let (mut statements, mut wal) = ([0.0; 2], [0.0; 2]);
        for round in 0..ROUNDS_MAX {
            plain.push(cost(&store, &mut conn, node, (2 * round) * JOBS, false).await);
            child.push(cost(&store, &mut conn, node, (2 * round + 1) * JOBS, true).await);
            statements = [least(&plain, |cost| cost.statements), least(&child, |cost| cost.statements)];
            wal = [least(&plain, |cost| cost.wal), least(&child, |cost| cost.wal)];
            if round >= 3 && wal[1] <= 1.3 * wal[0] {
                break;
            }
        }
        println!("statements per plain job {:.4}, per child {:.4}", statements[0], statements[1]);
        println!("bytes of WAL per plain job {:.0}, per child {:.0}", wal[0], wal[1]);
        assert!(statements[1] <= 1.3 * statements[0], "{statements:?}");
        assert!(wal[1] <= 1.3 * wal[0], "{wal:?}");
    });
}

/// Submits jobs, a chunk at a time, and settles and claims them, a hundred in a turn.
async fn cost(store: &PostgresStore, conn: &mut PgConnection, node: NodeId, from: u128, in_batch: bool) -> Cost {
    let parent = NewJob::new(
        JobId(Uuid::from_u128(from + (1 << 64))),
        JobSpec::new(Kind::new(BATCH_KIND).unwrap(), JsonText::null()),
    );
    let batch = NewBatch { id: parent.id, sealed: false, hook: None };
    let id = batch.id;
    let (statements, wal) = (store.counts().statements, wal_position(conn).await);
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
    }
    let mut ended: Vec<Settlement> = Vec::new();
    loop {
        let turn = store.turn(&ended, Some(&request(node, &["work"], TOGETHER))).await.unwrap();
        if turn.claimed.is_empty() {
            break;
        }
        ended = turn.claimed.iter().map(success).collect();
    }
    if in_batch {
        store.seal_batch(id).await.unwrap();
        let batch = store.find_batches(&[id]).await.unwrap().remove(0);
        assert_eq!((batch.counts.total, batch.counts.succeeded), (2_000, 2_000));
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let each = |amount: u64| amount as f64 / JOBS as f64;
    Cost { statements: each(store.counts().statements - statements), wal: each(wal_position(conn).await - wal) }
}

async fn wal_position(conn: &mut PgConnection) -> u64 {
    let position = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint AS position";
    let row = sqlx::query(position).fetch_one(conn).await.unwrap();
    u64::try_from(row.get::<i64, _>("position")).unwrap()
}
