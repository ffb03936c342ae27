//! The ordinary end of a job, in one statement where the database can.

use std::collections::HashSet;

use ratchet_core::transition::{self, Place};
use ratchet_core::{AttemptRecord, Change, Flow, JobId, JobState, JsonText, Settlement, StoreError};

use crate::conn::Conn;
use crate::dialect::Dialect;
use crate::stmt::Stmt;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[SUCCEED];

/// The settlements that [`succeed`] may be able to apply, by their index: successes without callbacks. Those of jobs with
/// dependants it leaves to the general way.
///
/// None if a job is in the list twice: then somebody has to see which comes first.
pub(crate) fn ordinary(dialect: Dialect, settlements: &[Settlement]) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(settlements.len());
    if dialect != Dialect::Postgres || !settlements.iter().all(|settlement| seen.insert(settlement.fence.job_id)) {
        return Vec::new();
    }
    let is_ordinary = |settlement: &Settlement| {
        matches!(settlement.change, Change::Succeed { .. })
            && settlement.new_jobs.is_empty()
            && record(settlement).is_some()
    };
    (0..settlements.len()).filter(|index| is_ordinary(&settlements[*index])).collect()
}

/// The record of the attempt that the fence names.
fn record(settlement: &Settlement) -> Option<&AttemptRecord> {
    let fence = settlement.fence;
    let names = |attempt: &&AttemptRecord| {
        (attempt.job_id, attempt.version, attempt.node) == (fence.job_id, fence.version, fence.node)
    };
    settlement.attempt.as_ref().filter(names)
}

/// Ends the jobs whose fence still matches; says which these were.
pub(crate) async fn succeed(
    conn: &mut dyn Conn,
    settlements: &[Settlement],
    which: &[usize],
) -> Result<HashSet<JobId>, StoreError> {
    let mut ends: Vec<(&Settlement, &AttemptRecord, JobState)> = Vec::with_capacity(which.len());
    for settlement in which.iter().map(|index| &settlements[*index]) {
        let to = Place::of(JobState::Running, None).and_then(|from| transition::next(from, settlement.change.event()));
        if let (Some(attempt), Some(to)) = (record(settlement), to) {
            ends.push((settlement, attempt, to.state()));
        }
    }
    // In the order of the keys, so that two who settle some of the same jobs do not wait for each other in a circle.
    ends.sort_unstable_by_key(|(settlement, ..)| settlement.fence.job_id);
    let rows = conn
        .rows_each(&SUCCEED, &[], &ends, |(settlement, attempt, to), values| {
            let (attempts, result) = match &settlement.change {
                Change::Succeed { attempts, result } => (*attempts, result.as_ref()),
                _ => (0, None),
            };
            values.extend([
                settlement.fence.job_id.into(),
                Value::count(settlement.fence.version),
                settlement.fence.node.into(),
                (*to).into(),
                Value::count(attempts),
                Value::count(settlement.change.crash_count(0)),
                Value::opt_json(result.map(JsonText::as_str)),
                Value::count(attempt.attempt),
                attempt.status.as_str().into(),
                attempt.timing.started_at.into(),
                attempt.timing.ended_at.into(),
                Value::micros(attempt.timing.duration),
                Value::micros(attempt.timing.queue_wait),
            ]);
        })
        .await?;
    rows.iter().map(|row| row.fields().job_id("job_id")).collect()
}

// What the general way does in four statements and four round trips: the row that still matches goes, its end is written,
// its key is free, its attempt is recorded. The state is compared so that the planner does not think of the index of what
// runs: rows are found by their keys.
const _: () = assert!(Flow::DEPENDANTS.bits() == 1, "the statement below spells the flag");

const SUCCEED: Stmt = Stmt::only_postgres(
    "writing successes",
    "WITH v AS MATERIALIZED (SELECT * FROM unnest(?::uuid[], ?::bigint[], ?::uuid[], ?::text[], ?::bigint[], \
     ?::bigint[], ?::jsonb[], ?::bigint[], ?::text[], ?::timestamptz[], ?::timestamptz[], ?::bigint[], ?::bigint[]) \
     AS v (job_id, version, node_id, state, attempts, crash_count, result, attempt, status, started_at, ended_at, \
     duration_us, queue_wait_us)), \
     gone AS (DELETE FROM scheduler_job_queue q USING v WHERE q.job_id = v.job_id AND q.version = v.version \
     AND q.picked_by = v.node_id AND COALESCE(q.status, '') = /*state:running*/ AND q.flow & 1 = 0 \
     RETURNING v.*, q.last_error, q.scheduled_time, q.business_key), \
     ended AS (UPDATE scheduler_job j SET terminal_status = gone.state, version = gone.version + 1, \
     terminal_error = gone.last_error, total_attempts = gone.attempts, crash_count = gone.crash_count, \
     scheduled_time = gone.scheduled_time, terminated_at = /*now*/, execution_start_time = gone.started_at, \
     execution_end_time = gone.ended_at, execution_duration_us = gone.duration_us, \
     queue_wait_us = gone.queue_wait_us, job_result = gone.result FROM gone WHERE j.job_id = gone.job_id), \
     freed AS (DELETE FROM scheduler_business_key_reservation r USING gone \
     WHERE r.business_key = gone.business_key AND r.owner_job_id = gone.job_id), \
     recorded AS (INSERT INTO scheduler_job_execution (job_id, version, attempt, node_id, status, started_at, ended_at, \
     duration_us, queue_wait_us) SELECT job_id, version, attempt, node_id, status, started_at, ended_at, duration_us, \
     queue_wait_us FROM gone) \
     SELECT job_id FROM gone",
);
