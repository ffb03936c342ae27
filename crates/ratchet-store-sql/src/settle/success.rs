//! The ordinary end of a job, in one statement where the database can.

use std::collections::HashSet;

use ratchet_core::batch::{BatchCounts, CountedBatch};
use ratchet_core::record::AttemptTiming;
use ratchet_core::settle::{Applied, LiveRow, RowChange};
use ratchet_core::{AttemptRecord, Change, JobId, JobState, JsonText, Settlement, StoreError};

use crate::flow::batch_counts::{self, Tallies};
use crate::waist::conn::Conn;
use crate::waist::dialect::Dialect;
use crate::waist::row::Fields;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[SUCCEED];

/// The settlements that [`succeed`] may be able to apply, by their index: successes without callbacks. Those of jobs with
/// dependants it leaves to the general way.
///
/// None if a job is in the list twice: then somebody has to see which comes first.
pub(crate) fn ordinary(dialect: Dialect, settlements: &[Settlement]) -> Vec<usize> {
    let mut seen = HashSet::with_capacity(settlements.len());
    if !dialect.writes_tables_together() || !settlements.iter().all(|settlement| seen.insert(settlement.fence.job_id)) {
        return Vec::new();
    }
    let is_ordinary = |settlement: &Settlement| {
        matches!(settlement.change, Change::Succeed { .. })
            && settlement.new_jobs.is_empty()
            && settlement.success_in_row().is_some()
    };
    (0..settlements.len()).filter(|index| is_ordinary(&settlements[*index])).collect()
}

/// What a call of [`succeed`] did.
#[derive(Default)]
pub(crate) struct Succeeded {
    /// The jobs that ended.
    pub(crate) ended: HashSet<JobId>,
    /// Children among them that are still to be counted.
    pub(crate) tallies: Tallies,
    /// Batches in which the others were.
    pub(crate) counted: Vec<CountedBatch>,
}

/// Ends the jobs whose fence still matches; children of batches are counted at once if `counts`, or are left to be.
pub(crate) async fn succeed(
    conn: &mut dyn Conn,
    settlements: &[Settlement],
    which: &[usize],
    counts: bool,
) -> Result<Succeeded, StoreError> {
    let mut ends: Vec<(&Settlement, &AttemptRecord, Applied<'_>)> = Vec::with_capacity(which.len());
    for settlement in which.iter().map(|index| &settlements[*index]) {
        // The statement looks whether the fence still matches.
        let applied = settlement.apply(&LiveRow::named_by(settlement.fence));
        if let (Some(attempt), Some(applied)) = (settlement.attempt.as_ref(), applied) {
            ends.push((settlement, attempt, applied));
        }
    }
    // In the order of the keys, so that two who settle some of the same jobs do not wait for each other in a circle.
    ends.sort_unstable_by_key(|(settlement, ..)| settlement.fence.job_id);
    let rows = conn
        .rows_each(&SUCCEED, &[counts.into()], &ends, |(_, attempt, applied), values| {
            let result = match applied.change {
                RowChange::End { result, .. } => result,
                RowChange::Requeue { .. } => None,
            };
            debug_assert_eq!(
                (applied.place.state(), applied.crash_count),
                (JobState::Succeeded, 0),
                "as the text has it"
            );
            let AttemptTiming { started_at, ended_at, duration, queue_wait } = attempt.timing;
            values.extend([
                attempt.job_id.into(),
                Value::count(attempt.version),
                Value::count(applied.attempts.unwrap_or(0)),
                Value::opt_json(result.map(JsonText::as_str)),
                started_at.into(),
                ended_at.into(),
                Value::micros(duration),
                Value::micros(queue_wait),
                attempt.node.into(),
            ]);
        })
        .await?;
    let mut done = Succeeded::default();
    let ran_for = |id: JobId| {
        let found = ends.binary_search_by_key(&id, |(settlement, ..)| settlement.fence.job_id);
        found.ok().map(|index| ends[index].1.timing.duration)
    };
    for row in &rows {
        let mut fields = row.fields();
        let id = fields.job_id("job_id")?;
        let batch = fields.opt_job_id("batch_id")?;
        if let Some(total) = fields.opt_int("total_items")? {
            done.counted.push(counted_of(id, total, &mut fields)?);
            continue;
        }
        done.ended.insert(id);
        if let Some(batch) = batch.filter(|_| !counts) {
            done.tallies.entry(batch).or_default().add(JobState::Succeeded, ran_for(id));
        }
    }
    Ok(done)
}

/// What is needed of a batch to see what follows; how its children ended is not.
fn counted_of(id: JobId, total: i64, fields: &mut Fields<'_>) -> Result<CountedBatch, StoreError> {
    let counts = BatchCounts {
        total: u64::try_from(total).unwrap_or(0),
        succeeded: fields.number("done_items")?,
        sealed: fields.bool("sealed")?,
        ..BatchCounts::default()
    };
    let every = batch_counts::every_of(fields)?;
    let next_progress = fields.opt_int("next_progress")?.and_then(|next| u64::try_from(next).ok());
    Ok(CountedBatch { id, counts, every, next_progress, ended: false })
}

// What the general way does in four statements and four round trips: the row that still matches goes, its end is written,
// its key is free. The row of the job describes the attempt, which has no row of its own.
//
// Rows are found by their keys, one by one, and then by where they are: what the planner is offered leaves it no other way.
// Of a queue that was nearly empty when it was last analyzed it believes that a key costs as much as all of them, and would
// read the whole queue in each turn until somebody analyzes it again. A row that moves between the two is left to the
// general way. The state is compared so that the index of what runs is no way either.
// Children are counted for their batches in the same statement, in the order of these: a busy batch costs a turn no round
// trip more.
const SUCCEED: Stmt = Stmt::only_postgres(
    "writing successes",
    "WITH how AS MATERIALIZED (SELECT ?::boolean AS counts), \
     v AS MATERIALIZED (/*rows:id int int json @job.timing*/ \
     AS v (job_id, version, total_attempts, job_result, /*columns:job.timing*/)), \
     found AS MATERIALIZED (SELECT v.*, place.* FROM v CROSS JOIN LATERAL \
     (SELECT ctid AS place FROM scheduler_job_queue WHERE job_id = v.job_id OFFSET 0) place), \
     gone AS (DELETE FROM scheduler_job_queue q USING found v WHERE q.ctid = v.place AND q.version = v.version \
     AND q.picked_by = v.ended_by AND COALESCE(q.status, '') = /*state:running*/ AND q.flow & /*flags:dependants,batch*/ = 0 \
     RETURNING v.*, /*state:succeeded*/ AS terminal_status, q.last_error AS terminal_error, q.scheduled_time, \
     q.business_key, q.flow), \
     ended AS (UPDATE scheduler_job j SET /*set:job.end gone.*/, version = gone.version + 1, \
     total_attempts = gone.total_attempts, crash_count = 0, /*set:job.timing gone.*/, job_result = gone.job_result, \
     terminated_at = /*now*/ \
     FROM gone WHERE j.job_id = gone.job_id \
     RETURNING j.job_id, CASE WHEN gone.flow & /*flags:batch_child*/ <> 0 THEN j.depends_on END AS batch_id, \
     gone.execution_duration_us AS duration_us), \
     freed AS (DELETE FROM scheduler_business_key_reservation r USING gone \
     WHERE r.business_key = gone.business_key AND r.owner_job_id = gone.job_id), \
     tally AS (SELECT batch_id, count(*) AS items, sum(duration_us)::bigint AS duration_us FROM ended, how \
     WHERE batch_id IS NOT NULL AND how.counts GROUP BY batch_id), \
     locked AS MATERIALIZED (SELECT b.batch_id, tally.items, tally.duration_us FROM scheduler_batch b JOIN tally \
     ON tally.batch_id = b.batch_id ORDER BY b.batch_id FOR UPDATE OF b), \
     counted AS (UPDATE scheduler_batch b SET completed_items = b.completed_items + locked.items, \
     child_execution_us = b.child_execution_us + locked.duration_us, updated_at = /*now*/ \
     FROM locked WHERE b.batch_id = locked.batch_id RETURNING b.*) \
     SELECT job_id, batch_id, NULL::bigint AS total_items, NULL::bigint AS done_items, NULL::boolean AS sealed, \
     NULL::bigint AS progress_every, NULL::bigint AS next_progress FROM ended \
     UNION ALL SELECT batch_id, NULL::uuid, total_items, completed_items + failed_items + canceled_items, sealed, \
     progress_every, next_progress FROM counted",
);
