//! Counting the ends of children for their batches, and what follows when the last one ends.

use std::collections::BTreeMap;

use ratchet_core::batch::{BatchCounts, ProgressEvery, Tally};
use ratchet_core::{Batch, Followed, JobId, NewJob, StoreError};

use crate::flow::batches;
use crate::flow::follow;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::row::Fields;
use crate::waist::stmt::Stmt;
use crate::waist::value::{Value, micros};

pub(crate) const STATEMENTS: &[Stmt] = &[LOCK_BATCHES, COUNT, MOVE_THRESHOLDS];

/// Ends of children, by their batch.
pub(crate) type Tallies = BTreeMap<JobId, Tally>;

/// A batch in which something was just counted.
pub(crate) struct Counted {
    pub(crate) id: JobId,
    pub(crate) counts: BatchCounts,
    every: Option<ProgressEvery>,
    next: Option<u64>,
    pub(crate) ended: bool,
}

impl Counted {
    /// From how often a batch tells of its progress, as it is stored, and the next threshold.
    pub(crate) fn new(id: JobId, counts: BatchCounts, every: Option<i64>, next: Option<i64>) -> Self {
        let every = every.and_then(ProgressEvery::from_number);
        Self { id, counts, every, next: next.and_then(|next| u64::try_from(next).ok()), ended: false }
    }

    fn of(fields: &mut Fields<'_>) -> Result<Self, StoreError> {
        let id = fields.job_id("batch_id")?;
        let counts = batches::counts_of(fields)?;
        let (every, next) = (fields.opt_int("progress_every")?, fields.opt_int("next_progress")?);
        let ended = fields.opt_time("completed_at")?.is_some();
        Ok(Self { ended, ..Self::new(id, counts, every, next) })
    }

    /// The threshold that was passed, and how far it is to the next.
    fn passed(&self) -> Option<(u64, u64)> {
        let every = self.every?;
        Some((every.passed(self.next?, &self.counts)?, every.step()))
    }
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
        batch.counts.add(tallies.get(&batch.id).unwrap_or(&Tally::default()));
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
pub(crate) async fn lock(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<Counted>, StoreError> {
    let rows = conn.rows_in(&LOCK_BATCHES, &[], ids).await?;
    rows.iter().map(|row| Counted::of(&mut row.fields())).collect()
}

const LOCK_BATCHES: Stmt = Stmt::shared(
    "locking batches",
    concat!(
        "SELECT batch_id, ",
        batches::count_columns!(),
        ", progress_every, next_progress, completed_at \
         FROM scheduler_batch /*by_id*/ WHERE batch_id /*any*/ ORDER BY batch_id /*for_update*/"
    ),
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
pub(crate) async fn after_counting(conn: &mut dyn Conn, counted: &[Counted]) -> Result<Vec<Followed>, StoreError> {
    let passed: BTreeMap<JobId, (u64, u64)> =
        counted.iter().filter_map(|batch| Some((batch.id, batch.passed()?))).collect();
    if !passed.is_empty() {
        tell(conn, &passed).await?;
    }
    let complete: Vec<JobId> =
        counted.iter().filter(|batch| batch.counts.is_complete()).map(|batch| batch.id).collect();
    follow::let_go(conn, &complete).await
}

/// Submits the jobs that tell of thresholds. The rows are locked, so that each is told of by one.
async fn tell(conn: &mut dyn Conn, passed: &BTreeMap<JobId, (u64, u64)>) -> Result<(), StoreError> {
    let moved: Vec<(&JobId, &(u64, u64))> = passed.iter().collect();
    conn.run_each(&MOVE_THRESHOLDS, &moved, |(id, (threshold, step)), values| {
        values.extend([(**id).into(), Value::count(threshold.saturating_add(*step))]);
    })
    .await?;
    let ids: Vec<JobId> = passed.keys().copied().collect();
    let batches: Vec<Batch> = batches::find(conn, &ids).await?;
    let job = |batch: &Batch| passed.get(&batch.id).and_then(|(threshold, _)| batch.progress_job(*threshold));
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
