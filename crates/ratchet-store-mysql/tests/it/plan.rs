use ratchet_core::insight::LaneRange;
use ratchet_core::store::{QueueStore as _, ResourceStore as _};
use ratchet_core::{ClaimRequest, Kind, Pool, QueueName, ResourceLimit};
use ratchet_store_mysql::sqlx::{self, MySqlConnection, Row as _};
use ratchet_store_sql::calls;

use super::database::TestDatabase;

/// Puts `count` waiting jobs in: 300 of 1,000 of a kind that nobody runs, 300 in a paused queue, 100 in the future, 100 that
/// need a permit.
fn fill(count: usize) -> String {
    let digit = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 \
                 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    format!(
        "CREATE TEMPORARY TABLE backlog AS
         SELECT i, UNHEX(LPAD(HEX(i), 32, '0')) AS job_id,
                IF(i % 10 < 3, 'unknown', 'work') AS kind,
                IF(i % 10 BETWEEN 3 AND 5, 'stopped', 'default') AS queue,
                i % 5 AS priority,
                IF(i % 10 = 6, TIMESTAMP'2090-01-01 00:00:00.000000', TIMESTAMP'2001-01-01 00:00:00.000000')
                    + INTERVAL i MICROSECOND AS scheduled_time,
                IF(i % 10 = 7, 'printer', '') AS resource
         FROM (SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d + 100000 * g.d AS i
               FROM {digit} a JOIN {digit} b JOIN {digit} c JOIN {digit} e JOIN {digit} f JOIN {digit} g) n
         WHERE i <= {count} ORDER BY i;
         INSERT INTO scheduler_job (job_id, kind, queue, job_type, priority, payload, max_retries, backoff_policy,
                                    backoff_param_us, created_at)
         SELECT job_id, kind, queue, 'SINGLE', priority, 'null', 3, 'NONE', 0, UTC_TIMESTAMP(6) FROM backlog ORDER BY i;
         INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at,
                                          resource)
         SELECT job_id, 'PENDING', queue, kind, priority, scheduled_time, UTC_TIMESTAMP(6), resource FROM backlog ORDER BY i;
         ANALYZE TABLE scheduler_job; ANALYZE TABLE scheduler_job_queue;"
    )
}

/// Rows that this connection has asked of the storage engine.
pub(super) async fn reads(conn: &mut MySqlConnection) -> i64 {
    let rows = sqlx::query("SHOW SESSION STATUS LIKE 'Handler_read%'").fetch_all(conn).await.unwrap();
    rows.iter().map(|row| row.get_unchecked::<String, _>(1).parse::<i64>().unwrap()).sum()
}

/// The rows that a claim of 50 reads, settling it and claiming the next 50, a claim of 50 among many kinds, and a look at
/// the queues; each undone.
async fn reads_at(backlog: usize) -> [i64; 4] {
    let database = TestDatabase::fresh().await;
    let store = database.store().await;
    let node = super::register(&store).await;
    let stopped = QueueName::new("stopped").unwrap();
    store.pause_queue(&stopped).await.unwrap();
    store.set_resource(&ResourceLimit::new("printer", 0).unwrap()).await.unwrap();
    database.execute(fill(backlog)).await;
    let mut request = super::request(node, &["work"], 50);
    request.pools.push(Pool { queue: stopped, ..request.pools[0].clone() });
    let mut conn = database.connect().await;
    sqlx::raw_sql("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").execute(&mut conn).await.unwrap();
    // What was planned before the table was written to is planned as well afterwards.
    calls::waiting_lanes(&mut ratchet_store_mysql::conn(&mut conn)).await.unwrap();
    turns(&mut conn, &request).await;
    let (claim, turn) = turns(&mut conn, &request).await;
    // As many kinds as make the store look for the lanes that matter first.
    let kinds: Vec<String> = (0..50).map(|number| format!("kind-{number}")).chain(["work".to_owned()]).collect();
    request.pools[0].kinds = kinds.iter().map(|kind| Kind::new(kind).unwrap()).collect();
    let (many_kinds, _) = turns(&mut conn, &request).await;
    let before = reads(&mut conn).await;
    let lanes = calls::waiting_lanes(&mut ratchet_store_mysql::conn(&mut conn)).await.unwrap();
    let ranges: Vec<_> = lanes.iter().map(|lane| LaneRange::of(lane, None)).collect();
    calls::count_waiting(&mut ratchet_store_mysql::conn(&mut conn), &ranges, 20).await.unwrap();
    [claim, turn, many_kinds, reads(&mut conn).await - before]
}

async fn turns(conn: &mut MySqlConnection, request: &ClaimRequest) -> (i64, i64) {
    sqlx::raw_sql("BEGIN").execute(&mut *conn).await.unwrap();
    let before = reads(conn).await;
    let first = calls::settle_and_claim(&mut ratchet_store_mysql::conn(conn), &[], Some(request)).await.unwrap();
    assert_eq!(first.claimed.len(), 50);
    let between = reads(conn).await;
    let settlements: Vec<_> = first.claimed.iter().map(super::success).collect();
    let second =
        calls::settle_and_claim(&mut ratchet_store_mysql::conn(conn), &settlements, Some(request)).await.unwrap();
    assert_eq!((second.settled.len(), second.claimed.len()), (50, 50));
    let after = reads(conn).await;
    sqlx::raw_sql("ROLLBACK").execute(&mut *conn).await.unwrap();
    (between - before, after - between)
}

#[test]
fn a_turn_reads_as_much_at_a_million_waiting_jobs_as_at_a_thousand() {
    super::run(async {
        let few = reads_at(1_000).await;
        let many = reads_at(1_000_000).await;
        println!("rows read of [claim, turn, claim of many kinds, look]: {few:?} at 1,000, {many:?} at 1,000,000");
        for (few, many) in few.into_iter().zip(many) {
            assert!(many <= few * 2, "{many} rows read at 1,000,000, {few} at 1,000");
            assert!(few > 0);
        }
    });
}

/// Lets all jobs wait for a later time: eight of ten put off until 2090, one that was put off once, one that never was.
const DEFER: &str = "UPDATE scheduler_job_queue SET scheduled_time = TIMESTAMP'2089-01-01 00:00:00.000000', \
     deferred = CONV(HEX(job_id), 16, 10) % 10 < 8, deferred_until = CASE CONV(HEX(job_id), 16, 10) % 10 WHEN 8 THEN TIMESTAMP'2001-01-01 00:00:00.000000' \
     WHEN 9 THEN NULL ELSE TIMESTAMP'2090-01-01 00:00:00.000000' + INTERVAL CONV(HEX(job_id), 16, 10) MICROSECOND END; \
     ANALYZE TABLE scheduler_job_queue";

/// The rows that a claim which finds nothing reads, the question for the next due time, and letting ten deferred jobs be
/// claimed, where this many are deferred or waiting for a later time.
async fn reads_at_deferred(count: usize) -> [i64; 3] {
    let database = TestDatabase::fresh().await;
    let store = database.store().await;
    let node = super::register(&store).await;
    database.execute(fill(count)).await;
    database.execute(DEFER).await;
    let request = super::request(node, &["work"], 50);
    let mut conn = database.connect().await;
    sqlx::raw_sql("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").execute(&mut conn).await.unwrap();
    let before = reads(&mut conn).await;
    let turn = calls::settle_and_claim(&mut ratchet_store_mysql::conn(&mut conn), &[], Some(&request)).await.unwrap();
    assert!(turn.claimed.is_empty());
    let between = reads(&mut conn).await;
    calls::next_due(&mut ratchet_store_mysql::conn(&mut conn), &request).await.unwrap().expect("one is next");
    let after = reads(&mut conn).await;
    let due = "UPDATE scheduler_job_queue SET deferred_until = TIMESTAMP'2001-01-01 00:00:00.000000' \
               WHERE deferred ORDER BY job_id LIMIT 10";
    sqlx::raw_sql(due).execute(&mut conn).await.unwrap();
    let promoting = reads(&mut conn).await;
    calls::settle_and_claim(&mut ratchet_store_mysql::conn(&mut conn), &[], Some(&request)).await.unwrap();
    [between - before, after - between, reads(&mut conn).await - promoting]
}

#[test]
fn deferred_jobs_cost_as_much_at_a_hundred_thousand_as_at_a_thousand() {
    super::run(async {
        let few = reads_at_deferred(1_000).await;
        let many = reads_at_deferred(100_000).await;
        println!("rows read of [claim, next due, promotion]: {few:?} at 1,000, {many:?} at 100,000");
        for (few, many) in few.into_iter().zip(many) {
            assert!(many <= few * 2, "{many} rows read at 100,000, {few} at 1,000");
        }
    });
}
