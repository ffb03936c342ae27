//! What the merge of lanes reads.

use ratchet_core::claim::{LaneMerge, LaneRead, Pick};
use ratchet_core::{JobId, StoreError};

use crate::claim::lane::BindLane;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[REFILL];

/// The next ids for the room that is left.
pub(crate) async fn pick(conn: &mut dyn Conn, merge: &mut LaneMerge<'_>) -> Result<Vec<JobId>, StoreError> {
    loop {
        match merge.pick() {
            Pick::Jobs(ids) => return Ok(ids),
            Pick::Read(read) => refill(conn, merge, read).await?,
        }
    }
}

async fn refill(conn: &mut dyn Conn, merge: &mut LaneMerge<'_>, read: LaneRead) -> Result<(), StoreError> {
    let LaneRead { lane, after, limit } = read;
    let mut values = Vec::with_capacity(10);
    merge.lane(lane).bind(&mut values);
    values.extend([merge.now().into(), after.0.into(), after.0.into(), after.1.into(), Value::count(limit)]);
    let rows = conn.rows(&REFILL, values).await?;
    let mut jobs = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut fields = row.fields();
        jobs.push((fields.time("scheduled_time")?, fields.job_id("job_id")?));
    }
    let more = jobs.len() == limit;
    merge.feed(lane, jobs, more);
    Ok(())
}

const REFILL: Stmt = Stmt::shared(
    "looking for further jobs to claim",
    "SELECT scheduled_time, job_id FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND resource = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time <= ? AND scheduled_time >= ? \
     AND (scheduled_time, job_id) > (?, ?) ORDER BY scheduled_time, job_id LIMIT ?",
)
.mysql(
    "SELECT scheduled_time, job_id FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND resource = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time <= ? AND scheduled_time >= ? \
     AND (scheduled_time, job_id) > (?, ?) ORDER BY scheduled_time, job_id LIMIT ?",
);
