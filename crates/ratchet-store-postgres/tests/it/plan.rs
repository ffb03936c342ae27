use ratchet_core::insight::LaneRange;
use ratchet_core::store::{QueueStore as _, ResourceStore as _};
use ratchet_core::{ClaimRequest, Pool, QueueName, ResourceLimit};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, PgConnection};
use ratchet_store_sql::calls;

use super::database::TestDatabase;

/// Puts `count` waiting jobs in: 300 of 1,000 of a kind that nobody runs, 300 in a paused queue, 100 in the future, 100 that
/// need a permit.
fn fill(count: usize) -> String {
    format!(
        "CREATE TEMP TABLE backlog AS
         SELECT i, lpad(to_hex(i), 32, '0')::uuid AS job_id,
                CASE WHEN i % 10 < 3 THEN 'unknown' ELSE 'work' END AS kind,
                CASE WHEN i % 10 BETWEEN 3 AND 5 THEN 'stopped' ELSE 'default' END AS queue,
                i % 5 AS priority,
                CASE WHEN i % 10 = 6 THEN timestamptz '2090-01-01' ELSE timestamptz '2001-01-01' END
                    + i * INTERVAL '1 microsecond' AS scheduled_time,
                CASE WHEN i % 10 = 7 THEN 'printer' ELSE '' END AS resource
         FROM generate_series(1, {count}) AS i;
         INSERT INTO scheduler_job (job_id, kind, queue, job_type, priority, payload, max_retries, backoff_policy,
                                    backoff_param_us, created_at)
         SELECT job_id, kind, queue, 'SINGLE', priority, 'null', 3, 'NONE', 0, now() FROM backlog;
         INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at, resource)
         SELECT job_id, 'PENDING', queue, kind, priority, scheduled_time, now(), resource FROM backlog;"
    )
}

const ANALYZE: &str = "ANALYZE scheduler_job; ANALYZE scheduler_job_queue";
const NEVER_ANALYZE: &str = "ALTER TABLE scheduler_job SET (autovacuum_enabled = off); \
     ALTER TABLE scheduler_job_queue SET (autovacuum_enabled = off)";
/// Makes statistics stale: of jobs that ran, when none waited. A queue's statistics are always of another time.
const ALL_RUN: &str = "UPDATE scheduler_job_queue SET status = 'RUNNING'";
const EMPTY: &str = "DELETE FROM scheduler_job; DELETE FROM scheduler_job_queue";

/// Blocks of Ratchet's tables and indexes that this connection has asked for and not yet reported.
pub(super) async fn blocks(conn: &mut PgConnection) -> i64 {
    let sum = "SELECT COALESCE(SUM(pg_stat_get_xact_blocks_fetched(c.oid)), 0)::bigint FROM pg_class c \
               WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'i')";
    sqlx::query_scalar(sum).fetch_one(conn).await.unwrap()
}

/// The blocks that a claim of 50 reads, settling it and claiming the next 50, and a scan of the queues; each undone. With
/// stale statistics, then with fresh ones.
async fn blocks_at(backlog: usize) -> [[i64; 3]; 2] {
    let database = TestDatabase::without_schema().await;
    PostgresStore::options(database.url()).migrate(true).connect().await.unwrap();
    let store = database.store().await;
    let node = super::register(&store).await;
    let stopped = QueueName::new("stopped").unwrap();
    store.pause_queue(&stopped).await.unwrap();
    store.set_resource(&ResourceLimit::new("printer", 0).unwrap()).await.unwrap();
    database.execute(NEVER_ANALYZE).await;
    database.execute(format!("{} {ALL_RUN}; {ANALYZE}; {EMPTY}; DROP TABLE backlog", fill(1_000))).await;
    database.execute(fill(backlog)).await;
    let mut request = super::request(node, &["work"], 50);
    request.pools.push(Pool { queue: stopped, ..request.pools[0].clone() });
    let stale = last_turns(&database, &request).await;
    database.execute(ANALYZE).await;
    [stale, last_turns(&database, &request).await]
}

/// Prepared statements get their final plan after a few runs.
async fn last_turns(database: &TestDatabase, request: &ClaimRequest) -> [i64; 3] {
    let mut conn = PgConnection::connect_like_the_store(database).await;
    let mut last = [0; 3];
    for _ in 0..8 {
        last = turns(&mut conn, request).await;
    }
    last
}

async fn turns(conn: &mut PgConnection, request: &ClaimRequest) -> [i64; 3] {
    sqlx::raw_sql("BEGIN").execute(&mut *conn).await.unwrap();
    let before = blocks(conn).await;
    let first = calls::settle_and_claim(&mut ratchet_store_postgres::conn(conn), &[], Some(request)).await.unwrap();
    assert_eq!(first.claimed.len(), 50);
    let between = blocks(conn).await;
    let settlements: Vec<_> = first.claimed.iter().map(super::success).collect();
    let second =
        calls::settle_and_claim(&mut ratchet_store_postgres::conn(conn), &settlements, Some(request)).await.unwrap();
    assert_eq!((second.settled.len(), second.claimed.len()), (50, 50));
    let after = blocks(conn).await;
    let lanes = calls::waiting_lanes(&mut ratchet_store_postgres::conn(conn)).await.unwrap();
    let ranges: Vec<_> = lanes.iter().map(|lane| LaneRange::of(lane, None)).collect();
    calls::count_waiting(&mut ratchet_store_postgres::conn(conn), &ranges, 20).await.unwrap();
    let looked = blocks(conn).await;
    sqlx::raw_sql("ROLLBACK").execute(&mut *conn).await.unwrap();
    [between - before, after - between, looked - after]
}

pub(super) trait LikeTheStore {
    async fn connect_like_the_store(database: &TestDatabase) -> Self;
}

impl LikeTheStore for PgConnection {
    async fn connect_like_the_store(database: &TestDatabase) -> Self {
        let mut conn = database.connect().await;
        sqlx::raw_sql("SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off")
            .execute(&mut conn)
            .await
            .unwrap();
        conn
    }
}

#[test]
fn a_turn_reads_as_much_at_a_million_waiting_jobs_as_at_a_thousand() {
    super::run(async {
        let (few, many) = (blocks_at(1_000).await, blocks_at(1_000_000).await);
        for (statistics, (few, many)) in ["stale", "fresh"].into_iter().zip(few.into_iter().zip(many)) {
            println!("{statistics} statistics: blocks of [claim, turn, scan]: {few:?} at 1,000, {many:?} at 1,000,000");
            for (few, many) in few.into_iter().zip(many) {
                assert!(many <= few * 2, "{many} blocks read at 1,000,000, {few} at 1,000");
                assert!(few > 0);
            }
        }
    });
}
