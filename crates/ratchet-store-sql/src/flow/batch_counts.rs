//! Counting the ends of children for their batches, and what follows when the last one ends.

use std::collections::BTreeMap;

pub(crate) use ratchet_core::batch::Tallies;
use ratchet_core::batch::{CountPlan, CountedBatch, ProgressEvery, Tally, Threshold};
use ratchet_core::{Batch, Followed, JobId, NewJob, StoreError};

use crate::flow::batches;
use crate::flow::follow;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::row::Fields;
use crate::waist::stmt::Stmt;
use crate::waist::value::{Value, micros};

pub(crate) const STATEMENTS: &[Stmt] = &[LOCK_BATCHES, COUNT, MOVE_THRESHOLDS];

fn counted_of(fields: &mut Fields<'_>) -> Result<CountedBatch, StoreError> {
    Ok(CountedBatch {
        id: fields.job_id("batch_id")?,
        counts: batches::counts_of(fields)?,
        every: every_of(fields)?,
        next_progress: fields.opt_int("next_progress")?.and_then(|next| u64::try_from(next).ok()),
        ended: fields.opt_time("completed_at")?.is_some(),
    })
}

/// The distance between the thresholds of a batch, as it is stored.
pub(crate) fn every_of(fields: &mut Fields<'_>) -> Result<Option<ProgressEvery>, StoreError> {
    Ok(fields.opt_int("progress_every")?.and_then(ProgressEvery::from_number))
}

/// Adds ends of children to their batches and does what follows, in the transaction that writes these ends.
///
/// Called after the children's rows were written, and as late as can be: the row of a busy batch stays locked until the
/// commit. The number of statements does not depend on how many children ended.
pub(crate) async fn count(conn: &mut dyn Conn, tallies: &Tallies) -> Result<Vec<Followed>, StoreError> {
    if tallies.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<JobId> = tallies.keys().copied().collect();
    let mut counted = lock(conn, &ids).await?;
    for batch in &mut counted {
        batch.count(tallies.get(&batch.id).unwrap_or(&Tally::default()));
    }
    let tallies: Vec<(&JobId, &Tally)> = tallies.iter().collect();
    conn.run_each(&COUNT, &tallies, |(id, tally), values| {
        values.extend([
            (**id).into(),
            Value::count(tally.succeeded),
            Value::count(tally.failed),
            Value::count(tally.canceled),
            Value::Int(Some(micros(tally.execution))),
        ]);
    })
    .await?;
    after_counting(conn, &counted).await
}

/// Locks the rows of batches, in the order of their ids, so that two who count for some of the same do not wait for each
/// other in a circle.
pub(crate) async fn lock(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<CountedBatch>, StoreError> {
    let rows = conn.rows_in(&LOCK_BATCHES, &[], ids).await?;
    rows.iter().map(|row| counted_of(&mut row.fields())).collect()
}

const LOCK_BATCHES: Stmt = Stmt::shared(
    "locking batches",
    "SELECT batch_id, /*columns:batch.counts*/, progress_every, next_progress, completed_at \
     FROM scheduler_batch /*by_id*/ WHERE batch_id /*any*/ ORDER BY batch_id /*for_update*/",
);

const COUNT: Stmt = Stmt::shared(
    "counting the ends of children",
    "WITH v (batch_id, succeeded, failed, canceled, execution_us) AS (/*rows:id int int int int*/) \
     UPDATE scheduler_batch SET completed_items = completed_items + v.succeeded, failed_items = failed_items + v.failed, \
     canceled_items = canceled_items + v.canceled, child_execution_us = child_execution_us + v.execution_us, \
     updated_at = /*now*/ FROM v WHERE scheduler_batch.batch_id = v.batch_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS batch_id, ? AS succeeded, ? AS failed, ? AS canceled, \
     ? AS execution_us/*end*/) v STRAIGHT_JOIN scheduler_batch b FORCE INDEX (PRIMARY) ON b.batch_id = v.batch_id \
     SET b.completed_items = b.completed_items + v.succeeded, b.failed_items = b.failed_items + v.failed, \
     b.canceled_items = b.canceled_items + v.canceled, b.child_execution_us = b.child_execution_us + v.execution_us, \
     b.updated_at = /*now*/",
);

/// Tells of thresholds that were passed, and releases the jobs that stand for batches that are complete.
///
/// Most often there is nothing to do, and no statement.
pub(crate) async fn after_counting(conn: &mut dyn Conn, counted: &[CountedBatch]) -> Result<Vec<Followed>, StoreError> {
    let plan = CountPlan::after(counted);
    if !plan.thresholds.is_empty() {
        tell(conn, &plan.thresholds).await?;
    }
    follow::let_go(conn, &plan.complete).await
}

/// Submits the jobs that tell of thresholds. The rows are locked, so that each is told of by one.
async fn tell(conn: &mut dyn Conn, passed: &BTreeMap<JobId, Threshold>) -> Result<(), StoreError> {
    let moved: Vec<(&JobId, &Threshold)> = passed.iter().collect();
    conn.run_each(&MOVE_THRESHOLDS, &moved, |(id, threshold), values| {
        values.extend([(**id).into(), Value::count(threshold.next)]);
    })
    .await?;
    let ids: Vec<JobId> = passed.keys().copied().collect();
    let batches: Vec<Batch> = batches::find(conn, &ids).await?;
    let job = |batch: &Batch| passed.get(&batch.id).and_then(|threshold| batch.progress_job(threshold.reached));
    let jobs: Vec<NewJob> = batches.iter().filter_map(job).collect();
    let jobs: Vec<&NewJob> = jobs.iter().collect();
    if jobs.is_empty() { Ok(()) } else { submit::submit_following(conn, &jobs).await }
}

const MOVE_THRESHOLDS: Stmt = Stmt::shared(
    "setting the next thresholds of batches",
    "WITH v (batch_id, next_progress) AS (/*rows:id int*/) UPDATE scheduler_batch SET next_progress = v.next_progress \
     FROM v WHERE scheduler_batch.batch_id = v.batch_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS batch_id, ? AS next_progress/*end*/) v \
     STRAIGHT_JOIN scheduler_batch b FORCE INDEX (PRIMARY) ON b.batch_id = v.batch_id \
     SET b.next_progress = v.next_progress",
);
