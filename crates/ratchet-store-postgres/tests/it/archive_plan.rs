use std::time::Duration;

use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::ArchiveRequest;
use ratchet_core::{JobState, Principal, Timestamp};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, PgConnection};
use ratchet_store_sql::{archive, dead_letters, insight, listing};

use super::database::TestDatabase;
use super::plan::{LikeTheStore as _, blocks};

/// Puts `count` ended jobs in: one in a hundred has failed, another one has a principal. As many others are archived.
fn fill(count: usize) -> String {
    let columns = "job_id, kind, queue, job_type, priority, payload, max_retries, backoff_policy, backoff_param_us, \
                   created_at, caller_principal, terminal_status, terminal_error, scheduled_time, terminated_at, \
                   version, total_attempts, crash_count, flow";
    format!(
        "CREATE TEMP TABLE done AS
         SELECT (lpad(to_hex(1600000000000 + i), 12, '0') || '70008000' || lpad(to_hex(i), 12, '0'))::uuid AS job_id,
                CASE WHEN i % 100 = 1 THEN 'ann' END AS principal,
                CASE WHEN i % 100 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END AS status
         FROM generate_series(1, {count}) AS i;
         INSERT INTO scheduler_job ({columns})
         SELECT job_id, 'work', 'default', 'SINGLE', 2, 'null', 3, 'NONE', 0, timestamptz '2020-09-14', principal, status,
                'boom', timestamptz '2020-09-14', timestamptz '2020-09-14', 2, 1, 0, 0 FROM done;
         INSERT INTO scheduler_job_archive ({columns}, archived_at)
         SELECT (left(job_id::text, 24) || 'f' || substr(job_id::text, 26))::uuid, 'work', 'default', 'SINGLE', 2, 'null', 3,
                'NONE', 0, timestamptz '2020-09-14', principal, status, 'boom', timestamptz '2020-09-14',
                timestamptz '2020-09-14', 2, 1, 0, 0, timestamptz '2020-09-15' FROM done;
         ANALYZE scheduler_job; ANALYZE scheduler_job_archive; ANALYZE scheduler_job_queue"
    )
}

/// The blocks that each look reads.
async fn blocks_at(count: usize) -> Vec<(&'static str, i64)> {
    let database = TestDatabase::without_schema().await;
    PostgresStore::options(&database.url()).migrate(true).connect().await.unwrap();
    database.execute(fill(count)).await;
    let mut conn = PgConnection::connect_like_the_store(&database).await;
    let mut found = Vec::new();
    // Prepared statements get their final plan after a few runs.
    for _ in 0..8 {
        found = looks(&mut conn).await;
    }
    found
}

async fn looks(conn: &mut PgConnection) -> Vec<(&'static str, i64)> {
    let all = JobFilter::default();
    let failed = JobFilter { states: vec![JobState::Failed], ..all.clone() };
    let both = JobFilter { archive: ArchiveScope::Both, ..failed.clone() };
    let ann = JobFilter { principal: Some(Principal::new("ann").unwrap()), ..all.clone() };
    let made_until = Some(Timestamp::from_millisecond(1_600_000_001_500).unwrap());
    let made = JobFilter { made_until, ..all.clone() };
    let mut found = Vec::new();
    for (name, filter) in [("all", &all), ("failed", &failed), ("both", &both), ("principal", &ann), ("made", &made)] {
        let before = blocks(conn).await;
        let page = listing::list(&mut ratchet_store_postgres::conn(conn), filter, None, 10).await.unwrap();
        assert_eq!(page.items.len(), 10, "{name}");
        found.push((name, blocks(conn).await - before));
    }
    let before = blocks(conn).await;
    let letters = dead_letters::dead_letters(&mut ratchet_store_postgres::conn(conn), &all, None, 10).await.unwrap();
    assert_eq!(letters.items.len(), 10);
    found.push(("letters", blocks(conn).await - before));
    let before = blocks(conn).await;
    let ends = insight::recent_ends(&mut ratchet_store_postgres::conn(conn), JobState::Failed, 10).await.unwrap();
    let failed = insight::count_ended(&mut ratchet_store_postgres::conn(conn), JobState::Failed, 10).await.unwrap();
    assert_eq!((ends.len(), failed), (10, 10));
    found.push(("ends", blocks(conn).await - before));
    for (name, state) in [("archive failed", JobState::Failed), ("archive succeeded", JobState::Succeeded)] {
        sqlx::raw_sql("BEGIN").execute(&mut *conn).await.unwrap();
        let before = blocks(conn).await;
        let request = ArchiveRequest { state, age: Duration::from_hours(24), after: None, limit: 10 };
        let done = archive::archive(&mut ratchet_store_postgres::conn(conn), &request).await.unwrap();
        assert_eq!(done.moved, 10, "{name}");
        found.push((name, blocks(conn).await - before));
        sqlx::raw_sql("ROLLBACK").execute(&mut *conn).await.unwrap();
    }
    found
}

#[test]
fn lists_and_archiving_read_as_much_of_many_ended_jobs_as_of_few() {
    super::run(async {
        let few = blocks_at(2_000).await;
        let many = blocks_at(200_000).await;
        println!("blocks: {few:?} at 2,000, {many:?} at 200,000");
        for ((name, few), (_, many)) in few.iter().zip(&many) {
            assert!(*few > 0 && *many <= few * 2 + 10, "{name} reads {many} blocks at 200,000, {few} at 2,000");
        }
    });
}
