//! Canceling the children of a batch that was canceled, some at a time.

use ratchet_core::flow::End;
use ratchet_core::store::CanceledChildren;
use ratchet_core::{
    AttemptRecord, Event, Followed, FollowedBy, JobFlags, JobId, JobRecord, JobState, StoreError, transition,
};

use crate::cluster::database_time;
use crate::flow::batch_counts::{self, Tallies};
use crate::flow::follow::{blame, follow};
use crate::job_row::find;
use crate::settle::{Finished, finish, record_attempts};
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[CANCELING_BATCHES, IS_CANCELING, CHILDREN, LOCK_LIVE_CHILDREN, CANCELED_ALL];

const CANCELING_BATCHES: Stmt = Stmt::shared(
    "looking for batches that are being canceled",
    "SELECT batch_id FROM scheduler_batch WHERE canceling = /*yes*/ ORDER BY batch_id LIMIT ?",
);

/// Batches whose children are still to be canceled, the oldest first.
pub(crate) async fn canceling(conn: &mut dyn Conn, limit: usize) -> Result<Vec<JobId>, StoreError> {
    let rows = conn.rows(&CANCELING_BATCHES, vec![Value::count(limit)]).await?;
    rows.iter().map(|row| row.fields().job_id("batch_id")).collect()
}

const IS_CANCELING: Stmt = Stmt::shared(
    "looking whether a batch is being canceled",
    "SELECT batch_id FROM scheduler_batch WHERE batch_id = ? AND canceling = /*yes*/",
);

/// Looks at up to `limit` children of a batch after `after` and cancels those that are live; their rows first, then the
/// batch's, as settling does.
pub(crate) async fn cancel_children(
    conn: &mut dyn Conn,
    id: JobId,
    after: Option<JobId>,
    limit: usize,
) -> Result<CanceledChildren, StoreError> {
    if conn.row(&IS_CANCELING, vec![id.into()]).await?.is_none() {
        return Ok(CanceledChildren::default());
    }
    let after = Value::Id(Some(after.map_or_else(uuid::Uuid::nil, |after| after.0)));
    let rows = conn.rows(&CHILDREN, vec![id.into(), after, Value::count(limit + 1)]).await?;
    let mut ids = Vec::with_capacity(rows.len());
    let mut next = None;
    for row in &rows[..rows.len().min(limit)] {
        let mut fields = row.fields();
        let (child, is_live) = (fields.job_id("job_id")?, fields.opt_id("live_id")?.is_some());
        next = Some(child).filter(|_| rows.len() > limit);
        ids.extend(is_live.then_some(child));
    }
    if conn.dialect().locks_rows() {
        conn.rows_in(&LOCK_LIVE_CHILDREN, &[], &ids).await?;
    }
    // One that is paused after its failure has been counted, and stays.
    let jobs = find(conn, &ids).await?;
    let jobs: Vec<&JobRecord> =
        jobs.iter().filter(|job| transition::next(job.place(), Event::Cancel).is_some()).collect();
    let children = if jobs.is_empty() { Vec::new() } else { cancel(conn, id, &jobs).await? };
    if next.is_none() {
        conn.run(&CANCELED_ALL, vec![id.into()]).await?;
    }
    Ok(CanceledChildren { children, next })
}

async fn cancel(conn: &mut dyn Conn, batch: JobId, jobs: &[&JobRecord]) -> Result<Vec<Followed>, StoreError> {
    let now = database_time(conn).await?;
    let attempts: Vec<AttemptRecord> = jobs.iter().filter_map(|job| job.canceled_attempt(now)).collect();
    let attempts: Vec<&AttemptRecord> = attempts.iter().collect();
    record_attempts(conn, &attempts).await?;
    let mut tallies = Tallies::new();
    let mut finished = Vec::with_capacity(jobs.len());
    let mut followed = Vec::with_capacity(jobs.len());
    for job in jobs {
        let timing = job.canceled_attempt(now).map(|attempt| attempt.timing);
        tallies.entry(batch).or_default().add(JobState::Canceled, timing.map(|timing| timing.duration));
        finished.push(Finished {
            id: job.id,
            state: JobState::Canceled,
            version: job.version + 1,
            error: job.last_error.as_deref(),
            attempts: job.attempts,
            crash_count: job.crash_count,
            scheduled_time: job.scheduled_time,
            timing,
            ended_by: None,
            result: None,
            business_key: job.business_key.as_ref().map(AsRef::as_ref),
        });
        followed.push(Followed::of(job, FollowedBy::Canceled { because: batch }));
    }
    finish(conn, &finished).await?;
    let blamed: Vec<(JobId, JobId)> = jobs.iter().map(|job| (job.id, batch)).collect();
    blame(conn, &blamed).await?;
    let ends = jobs.iter().filter(|job| job.flow.has(JobFlags::DEPENDANTS));
    let ends: Vec<End<'_>> = ends.map(|job| End { id: job.id, state: JobState::Canceled, result: None }).collect();
    if !ends.is_empty() {
        followed.append(&mut follow(conn, &ends).await?);
    }
    followed.append(&mut batch_counts::count(conn, &tallies).await?);
    Ok(followed)
}

// Children are counted, not those of them that live: a portion of a large batch costs the same when nearly all have ended.
const CHILDREN: Stmt = Stmt::shared(
    "looking for children of a batch",
    "SELECT j.job_id AS job_id, q.job_id AS live_id FROM scheduler_job j \
     LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id \
     WHERE j.depends_on = ? AND j.job_id > ? ORDER BY j.job_id LIMIT ?",
)
.mysql(
    "SELECT c.job_id AS job_id, q.job_id AS live_id FROM scheduler_job_child c \
     LEFT JOIN scheduler_job_queue q FORCE INDEX (PRIMARY) ON q.job_id = c.job_id \
     WHERE c.parent_id = ? AND c.job_id > ? ORDER BY c.job_id LIMIT ?",
);

const LOCK_LIVE_CHILDREN: Stmt = Stmt::shared(
    "locking live children of a batch",
    "SELECT job_id FROM scheduler_job_queue /*by_id*/ WHERE job_id /*any*/ ORDER BY job_id /*for_update*/",
);

const CANCELED_ALL: Stmt = Stmt::shared(
    "noting that a batch is canceled with its children",
    "UPDATE scheduler_batch SET canceling = /*no*/ WHERE batch_id = ?",
);
