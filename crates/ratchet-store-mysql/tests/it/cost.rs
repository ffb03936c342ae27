//! What a child of a batch costs beside a job that belongs to nothing.

use ratchet_core::batch::{BATCH_KIND, NewBatch, tie_child};
use ratchet_core::store::{BatchStore as _, JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{JobId, JobSpec, JsonText, Kind, NewJob, NodeId, Settlement};
use ratchet_store_mysql::MysqlStore;
use ratchet_store_mysql::sqlx::{self, MySqlConnection, Row as _};
use uuid::Uuid;

use super::database::TestDatabase;
use super::{job, register, request, success};

const JOBS: u128 = 2_000;
const CHUNK: usize = 500;
const TOGETHER: usize = 100;
const ROUNDS_MAX: u128 = 12;

/// Statements and bytes of redo log.
#[derive(Debug, Clone, Copy)]
struct Cost {
    statements: f64,
    log: f64,
}

#[test]
fn a_child_costs_about_as_much_as_a_plain_job() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let store = database.store().await;
        let mut conn = database.connect().await;
        let node = register(&store).await;
        // Warm, then the cheapest of some rounds: others write to the server too, and it purges what was deleted. Both only
        // ever add, so that more rounds come nearer to what it costs; a quiet server needs few.
        let mut plain = Vec::new();
        let mut child = Vec::new();
        let least = |costs: &[Cost], of: fn(&Cost) -> f64| costs.iter().skip(1).map(of).fold(f64::MAX, f64::min);
        let (mut statements, mut log) = ([0.0; 2], [0.0; 2]);
        for round in 0..ROUNDS_MAX {
            plain.push(cost(&store, &mut conn, node, (2 * round) * JOBS, false).await);
            child.push(cost(&store, &mut conn, node, (2 * round + 1) * JOBS, true).await);
            statements = [least(&plain, |cost| cost.statements), least(&child, |cost| cost.statements)];
            log = [least(&plain, |cost| cost.log), least(&child, |cost| cost.log)];
            if round >= 3 && log[1] <= 1.3 * log[0] {
                break;
            }
        }
        println!("statements per plain job {:.4}, per child {:.4}", statements[0], statements[1]);
        println!("bytes of redo log per plain job {:.0}, per child {:.0}", log[0], log[1]);
        assert!(statements[1] <= 1.3 * statements[0], "{statements:?}");
        assert!(log[1] <= 1.3 * log[0], "{log:?}");
    });
}

/// Submits jobs, a chunk at a time, and settles and claims them, a hundred in a turn.
async fn cost(store: &MysqlStore, conn: &mut MySqlConnection, node: NodeId, from: u128, in_batch: bool) -> Cost {
    let parent = NewJob::new(
        JobId(Uuid::from_u128(from + (1 << 64))),
        JobSpec::new(Kind::new(BATCH_KIND).unwrap(), JsonText::null()),
    );
    let batch = NewBatch { id: parent.id, sealed: false, hook: None };
    let id = batch.id;
    let (statements, log) = (store.counts().statements, log_position(conn).await);
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
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let each = |amount: u64| amount as f64 / JOBS as f64;
    let cost =
        Cost { statements: each(store.counts().statements - statements), log: each(log_position(conn).await - log) };
    if in_batch {
        let batch = store.find_batches(&[id]).await.unwrap().remove(0);
        assert_eq!((batch.counts.total, batch.counts.succeeded), (2_000, 2_000));
    }
    cost
}

async fn log_position(conn: &mut MySqlConnection) -> u64 {
    let position = "SELECT CAST(variable_value AS UNSIGNED) AS position FROM information_schema.global_status \
                    WHERE variable_name = 'innodb_lsn_current'";
    let row = sqlx::query(position).fetch_one(conn).await.unwrap();
    row.get::<u64, _>("position")
}
