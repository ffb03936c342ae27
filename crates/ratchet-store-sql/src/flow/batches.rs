//! The rows of batches: storing them, letting them grow, reading them.

use jiff::Timestamp;
use ratchet_core::batch::{BatchCounts, CountPlan, CountedBatch, NewBatch, ProgressEvery, ProgressHook};
use ratchet_core::page::{JobCursor, Page, check_limit};
use ratchet_core::store::{SubmitUnit, Submitted};
use ratchet_core::{Batch, ErrorKind, Followed, JobId, JobSpec, JobState, NewJob, StoreError};
use uuid::Uuid;

use crate::flow::batch_counts;
use crate::flow::follow;
use crate::job_row::json_of;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::row::{Fields, Row};
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[
    STORE_BATCHES,
    WAITS_FOR_CHILDREN,
    LOCK_BATCH,
    GROW,
    SEAL,
    FIND_BATCHES,
    LIST_BATCHES,
    UNCOUNT_FAILURES,
    CLOSE_BATCHES,
    CLOSE_CANCELED_BATCHES,
    DELETE_BATCH,
];

const STORE_BATCHES: Stmt = Stmt::shared(
    "storing batches",
    "INSERT INTO scheduler_batch (batch_id, total_items, sealed, progress_hook, progress_every, next_progress, \
     created_at, updated_at) /*rows:id int bool json int int time time*/",
);

/// Stores the rows of batches whose jobs, `stored`, were just stored.
pub(crate) async fn store(
    conn: &mut dyn Conn,
    batches: &[&NewBatch],
    stored: &[&NewJob],
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut rows = Vec::with_capacity(batches.len());
    for batch in batches {
        let hook = batch.hook.as_ref().map_or(Ok(Value::Json(None)), |hook| json_of(&hook.spec))?;
        let total = SubmitUnit::count_children(batch.id, stored.iter().copied());
        rows.push((Batch::stored(batch, total, now), hook));
    }
    conn.run_each(&STORE_BATCHES, &rows, |(batch, hook), values| {
        let every = batch.hook.as_ref().map(|hook| hook.every);
        values.extend([batch.id.into(), Value::count(batch.counts.total), batch.counts.sealed.into(), hook.clone()]);
        values.extend([Value::Int(every.map(ProgressEvery::to_number)), Value::opt_count(batch.next_progress)]);
        values.extend([now.into(), now.into()]);
    })
    .await?;
    // A batch without children is through at once.
    let counted: Vec<CountedBatch> = rows.iter().map(|(batch, _)| CountedBatch::of(batch)).collect();
    follow::let_go(conn, &CountPlan::after(&counted).complete).await?;
    Ok(())
}

const DOING_EXTEND: &str = "adding children to a batch";

/// Adds children on the assumption that every id and every key is free; a [`Conflict`](ErrorKind::Conflict) if one is not.
pub(crate) async fn extend_in_bulk(
    conn: &mut dyn Conn,
    id: JobId,
    children: &[NewJob],
) -> Result<Vec<Submitted>, StoreError> {
    let jobs: Vec<&NewJob> = children.iter().collect();
    if !submit::insert(conn, &jobs, &[], &[]).await? {
        return Err(StoreError::new(ErrorKind::Conflict, DOING_EXTEND, "an id or a key is taken"));
    }
    grow(conn, id, children.len(), children.len()).await?;
    Ok(children.iter().map(|child| Submitted::Created(child.id)).collect())
}

/// Adds those children that are not there yet, and counts them alone.
pub(crate) async fn extend_carefully(
    conn: &mut dyn Conn,
    id: JobId,
    children: &[NewJob],
) -> Result<Vec<Submitted>, StoreError> {
    let (mut outcomes, stored) = submit::submit_and_count(conn, &[SubmitUnit::of(children.to_vec())]).await?;
    let submitted = outcomes.pop().unwrap_or_else(|| Ok(Vec::new()))?;
    grow(conn, id, stored, children.len()).await?;
    Ok(submitted)
}

/// Adds to the number of children; refused if the batch takes none. After the children, so that whoever ends other
/// children of the batch, and frees a key by it, is not waited for with the batch's row locked.
async fn grow(conn: &mut dyn Conn, id: JobId, stored: usize, asked: usize) -> Result<(), StoreError> {
    let batch = batch_counts::lock(conn, &[id]).await?.pop();
    let mut batch = batch.ok_or_else(|| StoreError::new(ErrorKind::NotFound, DOING_EXTEND, no_batch(id)))?;
    let refused = |problem| StoreError::new(ErrorKind::Conflict, DOING_EXTEND, format!("batch {id}: {problem}"));
    if batch.grow(stored, asked).map_err(refused)? {
        conn.run(&GROW, vec![Value::count(stored), id.into()]).await?;
    }
    Ok(())
}

fn no_batch(id: JobId) -> String {
    format!("there is no batch {id}")
}

const GROW: Stmt = Stmt::shared(
    "counting new children of a batch",
    "UPDATE scheduler_batch SET total_items = total_items + ? WHERE batch_id = ?",
);

/// Says that no further children will come.
pub(crate) async fn seal(conn: &mut dyn Conn, id: JobId) -> Result<Vec<Followed>, StoreError> {
    let batch = batch_counts::lock(conn, &[id]).await?.pop();
    let mut batch = batch.ok_or_else(|| StoreError::new(ErrorKind::NotFound, SEAL.doing(), no_batch(id)))?;
    let refused = |problem| StoreError::new(ErrorKind::Conflict, SEAL.doing(), format!("batch {id}: {problem}"));
    if !batch.seal().map_err(refused)? {
        return Ok(Vec::new());
    }
    conn.run(&SEAL, vec![id.into()]).await?;
    batch_counts::after_counting(conn, &[batch]).await
}

const SEAL: Stmt = Stmt::shared(
    "sealing a batch",
    "UPDATE scheduler_batch SET sealed = /*yes*/, updated_at = /*now*/ WHERE batch_id = ?",
);

/// Reads the columns `/*columns:batch.counts*/`.
pub(crate) fn counts_of(fields: &mut Fields<'_>) -> Result<BatchCounts, StoreError> {
    Ok(BatchCounts {
        total: fields.number("total_items")?,
        succeeded: fields.number("completed_items")?,
        failed: fields.number("failed_items")?,
        canceled: fields.number("canceled_items")?,
        child_execution: fields.duration("child_execution_us")?,
        sealed: fields.bool("sealed")?,
    })
}

/// A batch and where the job stands that stands for it, read by [`batch_of`].
macro_rules! batches {
    ($which:literal) => {
        concat!(
            "SELECT b.batch_id AS batch_id, COALESCE(q.status, j.terminal_status) AS state, /*columns:batch.counts*/, \
             canceling, progress_hook, progress_every, next_progress, b.created_at AS created_at, \
             b.updated_at AS updated_at, completed_at FROM scheduler_batch b \
             JOIN scheduler_job j ON j.job_id = b.batch_id LEFT JOIN scheduler_job_queue q ON q.job_id = b.batch_id WHERE ",
            $which
        )
    };
}

fn batch_of(row: &Row) -> Result<Batch, StoreError> {
    let mut fields = row.fields();
    let id = fields.job_id("batch_id")?;
    let state: JobState = fields.state("state")?;
    let counts = counts_of(&mut fields)?;
    let canceling = fields.bool("canceling")?;
    let spec: Option<JobSpec> = fields.opt_parsed("progress_hook", serde_json::from_str)?;
    let every = batch_counts::every_of(&mut fields)?;
    let next_progress = fields.opt_int("next_progress")?.and_then(|next| u64::try_from(next).ok());
    Ok(Batch {
        id,
        state,
        counts,
        canceling,
        hook: spec.zip(every).map(|(spec, every)| ProgressHook { spec, every }),
        next_progress,
        created_at: fields.time("created_at")?,
        updated_at: fields.time("updated_at")?,
        completed_at: fields.opt_time("completed_at")?,
    })
}

const FIND_BATCHES: Stmt = Stmt::shared("reading batches", batches!("b.batch_id /*any*/"));

/// Reads batches by id, in the order of the ids; unknown ids are left out.
pub(crate) async fn find(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<Batch>, StoreError> {
    let rows = conn.rows_in(&FIND_BATCHES, &[], ids).await?;
    let mut found = rows.iter().map(batch_of).collect::<Result<Vec<_>, _>>()?;
    found.sort_by_key(|batch| ids.iter().position(|id| *id == batch.id));
    Ok(found)
}

const LIST_BATCHES: Stmt = Stmt::shared("listing batches", batches!("b.batch_id < ? ORDER BY b.batch_id DESC LIMIT ?"));

/// A page of batches, newest first.
pub(crate) async fn list(
    conn: &mut dyn Conn,
    after: Option<JobCursor>,
    limit: usize,
) -> Result<Page<Batch>, StoreError> {
    check_limit(limit).map_err(|error| StoreError::refused(LIST_BATCHES.doing(), error))?;
    // Without a cursor the page begins after an id that is higher than all.
    let before = after.map_or_else(|| Value::Id(Some(Uuid::max())), |cursor| cursor.0.into());
    let rows = conn.rows(&LIST_BATCHES, vec![before, Value::count(limit + 1)]).await?;
    let mut items = rows.iter().map(batch_of).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|batch| JobCursor(batch.id));
    Ok(Page { items, next })
}

/// Locks the batch that a job stands for and waits for, if it does, before the job itself: whoever counts the last child
/// takes them in this order.
///
/// Once the job waits no more nobody counts, and whoever ends it takes the job first. So this looks before it locks. If the
/// job is released, claimed and ended between the two, the database may have to choose one, which is tried again.
pub(crate) async fn lock_first(conn: &mut dyn Conn, id: JobId) -> Result<(), StoreError> {
    if conn.dialect().locks_rows() && conn.row(&WAITS_FOR_CHILDREN, vec![id.into()]).await?.is_some() {
        conn.row(&LOCK_BATCH, vec![id.into()]).await?;
    }
    Ok(())
}

const WAITS_FOR_CHILDREN: Stmt = Stmt::shared(
    "looking whether a job waits for a batch",
    "SELECT b.batch_id AS batch_id FROM scheduler_batch b JOIN scheduler_job_queue q ON q.job_id = b.batch_id \
     WHERE b.batch_id = ? AND q.status = /*state:waiting*/",
);

const LOCK_BATCH: Stmt = Stmt::shared(
    "locking a batch before its job",
    "SELECT batch_id FROM scheduler_batch WHERE batch_id = ? /*for_update*/",
);

/// Takes back the failures of so many children that are retried; refused when their batch is over.
pub(crate) async fn uncount_failures(conn: &mut dyn Conn, batch: JobId, count: u64) -> Result<(), StoreError> {
    let refused = |problem| StoreError::new(ErrorKind::Conflict, "retrying a child of a batch", problem);
    let counted = batch_counts::lock(conn, &[batch]).await?.pop();
    counted.ok_or_else(|| refused(CountedBatch::over(batch)))?.uncount(count).map_err(refused)?;
    conn.run(&UNCOUNT_FAILURES, vec![Value::count(count), batch.into()]).await?;
    Ok(())
}

const UNCOUNT_FAILURES: Stmt = Stmt::shared(
    "taking back failures of a batch",
    "UPDATE scheduler_batch SET failed_items = failed_items - ? WHERE batch_id = ?",
);

/// Notes that the jobs that stand for batches have ended; of those that were canceled the children are to be, too.
pub(crate) async fn close(conn: &mut dyn Conn, ended: &[(JobId, JobState)]) -> Result<(), StoreError> {
    let of = |canceled: bool| -> Vec<JobId> {
        ended.iter().filter(|(_, state)| (*state == JobState::Canceled) == canceled).map(|(id, _)| *id).collect()
    };
    conn.run_in(&CLOSE_BATCHES, &[], &of(false)).await?;
    conn.run_in(&CLOSE_CANCELED_BATCHES, &[], &of(true)).await?;
    Ok(())
}

const CLOSE_BATCHES: Stmt = Stmt::shared(
    "noting the ends of batches",
    "UPDATE scheduler_batch SET completed_at = COALESCE(completed_at, /*now*/) WHERE batch_id /*any*/",
);

const CLOSE_CANCELED_BATCHES: Stmt = Stmt::shared(
    "noting that batches were canceled",
    "UPDATE scheduler_batch SET completed_at = COALESCE(completed_at, /*now*/), canceling = /*yes*/ \
     WHERE batch_id /*any*/",
);

/// Deletes the row of a batch with the job that stands for it.
pub(crate) async fn delete(conn: &mut dyn Conn, id: JobId) -> Result<(), StoreError> {
    conn.run(&DELETE_BATCH, vec![id.into()]).await?;
    Ok(())
}

const DELETE_BATCH: Stmt = Stmt::shared("deleting a batch", "DELETE FROM scheduler_batch WHERE batch_id = ?");
