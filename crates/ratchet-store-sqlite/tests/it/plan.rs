use std::path::Path;
use std::sync::atomic::Ordering;

use ratchet_conformance::success;
use ratchet_core::store::{QueueStore as _, ResourceStore as _, TurnStore as _};
use ratchet_core::{QueueName, ResourceLimit};
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, AssertSqlSafe, ConnectOptions as _};

/// Puts `count` waiting jobs in: 300 of 1,000 of a kind that nobody runs, 300 in a paused queue, 100 in the future; 100 of
/// the others need a permit.
async fn fill(dir: &Path, count: usize) {
    let mut conn = SqliteConnectOptions::new().filename(dir.join("jobs.db")).connect().await.unwrap();
    let script = format!(
        "BEGIN IMMEDIATE;
         CREATE TEMP TABLE backlog AS
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
         SELECT i, CAST(printf('%016d', i) AS BLOB) AS job_id,
                CASE WHEN i % 10 < 3 THEN 'unknown' ELSE 'work' END AS kind,
                CASE WHEN i % 10 BETWEEN 3 AND 5 THEN 'stopped' ELSE 'default' END AS queue,
                i % 5 AS priority,
                CASE WHEN i % 10 = 6 THEN 4000000000000000 ELSE 1000000000000000 + i END AS scheduled_time,
                CASE WHEN i % 10 = 7 THEN 'printer' ELSE '' END AS resource
         FROM n;
         INSERT INTO scheduler_job (job_id, kind, queue, job_type, priority, payload, max_retries, backoff_policy,
                                    backoff_param_us, created_at)
         SELECT job_id, kind, queue, 'SINGLE', priority, 'null', 3, 'NONE', 0, 0 FROM backlog;
         INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at, resource)
         SELECT job_id, 'PENDING', queue, kind, priority, scheduled_time, 0, resource FROM backlog;
         COMMIT;"
    );
    sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut conn).await.unwrap();
}

/// The steps of SQLite's machine for a claim of 50, and for settling it and claiming the next 50.
async fn steps_at(backlog: usize) -> (u64, u64) {
    let (store, dir) = super::fresh().await;
    let node = super::register(&store).await;
    store.set_resource(&ResourceLimit::new("printer", 0).unwrap()).await.unwrap();
    store.pause_queue(&QueueName::new("stopped").unwrap()).await.unwrap();
    fill(dir.path(), backlog).await;
    let mut request = super::request(node, &["work"], 50);
    request.pools.push(ratchet_core::Pool { queue: QueueName::new("stopped").unwrap(), ..request.pools[0].clone() });
    let steps = store.backend().count_vm_steps().await.unwrap();
    let first = store.settle_and_claim(&[], Some(&request)).await.unwrap();
    assert_eq!(first.claimed.len(), 50);
    let claim = steps.swap(0, Ordering::Relaxed);
    let settlements: Vec<_> = first.claimed.iter().map(success).collect();
    let second = store.settle_and_claim(&settlements, Some(&request)).await.unwrap();
    assert_eq!((second.settled.len(), second.claimed.len()), (50, 50));
    store.next_due(&request).await.unwrap();
    (claim, steps.load(Ordering::Relaxed))
}

#[test]
fn a_turn_costs_the_same_at_a_million_waiting_jobs_as_at_a_thousand() {
    super::run(async {
        let few = steps_at(1_000).await;
        let many = steps_at(1_000_000).await;
        println!("steps of (claim, turn): {few:?} at 1,000, {many:?} at 1,000,000");
        assert!(many.0 <= few.0 * 2, "a claim takes {} steps at 1,000,000, {} at 1,000", many.0, few.0);
        assert!(many.1 <= few.1 * 2, "a turn takes {} steps at 1,000,000, {} at 1,000", many.1, few.1);
        assert!(few.0 > 0);
    });
}
