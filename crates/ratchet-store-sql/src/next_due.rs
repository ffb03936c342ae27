//! When there is something to claim next.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, StoreError, clock};

use crate::conn::Conn;
use crate::lane::{Lane, lanes};
use crate::stmt::Stmt;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[NEXT_DUE, NEXT_DEFERRED, PAUSED_QUEUES];

/// How many deferred jobs are looked at for the next due time.
const DEFERRED_MAX: usize = 256;

/// How long until the next job that this request could claim becomes due; zero if one is due already.
pub async fn next_due(conn: &mut dyn Conn, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
    let mut paused = HashSet::new();
    let mut now = Timestamp::MIN;
    for row in conn.rows(&PAUSED_QUEUES, vec![]).await? {
        let mut fields = row.fields();
        now = fields.time("now")?;
        paused.extend(fields.opt_text("paused")?.map(str::to_owned));
    }
    let mut wanted = lanes(request, false);
    if request.probation {
        wanted.append(&mut lanes(request, true));
    }
    wanted.retain(|lane| !paused.contains(lane.queue));
    let mut next = next_deferred(conn, request, &paused).await?;
    for row in conn.rows_each(&NEXT_DUE, &[], &wanted, Lane::bind).await? {
        let due = row.fields().time("scheduled_time")?;
        next = Some(next.map_or(due, |next| next.min(due)));
    }
    Ok(next.map(|next| clock::elapsed(now, next)))
}

/// The first of the deferred jobs that the request could claim, or a time before it if there are very many others.
async fn next_deferred(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    paused: &HashSet<String>,
) -> Result<Option<Timestamp>, StoreError> {
    let rows = conn.rows(&NEXT_DEFERRED, vec![Value::count(DEFERRED_MAX)]).await?;
    let mut last = None;
    for row in &rows {
        let mut fields = row.fields();
        let until = fields.time("deferred_until")?;
        let (queue, kind, probation) = (fields.text("queue")?, fields.text("kind")?, fields.bool("probation")?);
        let takes = |pool: &ratchet_core::Pool| {
            pool.free > 0 && pool.queue.as_str() == queue && pool.kinds.iter().any(|k| k.as_str() == kind)
        };
        if (!probation || request.probation) && !paused.contains(queue) && request.pools.iter().any(takes) {
            return Ok(Some(until));
        }
        last = Some(until);
    }
    // Looking again too early costs a poll; reading all of them would cost more with every job that is deferred.
    Ok(last.filter(|_| rows.len() == DEFERRED_MAX))
}

/// One row, and another one for each further queue that is paused.
const PAUSED_QUEUES: Stmt = Stmt::shared(
    "looking for paused queues",
    "SELECT /*now*/ AS now, p.name AS paused FROM (SELECT 1) one LEFT JOIN scheduler_queue p ON p.paused = /*yes*/",
);

const NEXT_DUE: Stmt = Stmt::shared(
    "looking for the next due job",
    "/*union*/SELECT * FROM (SELECT scheduled_time FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND queue = ? AND kind = ? AND priority = ? ORDER BY scheduled_time LIMIT 1) AS h/*end*/",
)
.postgres(
    "SELECT h.scheduled_time AS scheduled_time FROM unnest(?::boolean[], ?::text[], ?::text[], ?::bigint[]) \
     AS l (probation, queue, kind, priority) \
     CROSS JOIN LATERAL (SELECT q.scheduled_time FROM scheduler_job_queue q \
     WHERE q.status = /*state:pending*/ AND q.deferred = /*no*/ AND q.probation = l.probation AND q.queue = l.queue \
     AND q.kind = l.kind AND q.priority = l.priority ORDER BY q.scheduled_time LIMIT 1) h",
)
.mysql(
    "/*union*/(SELECT scheduled_time FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND queue = ? AND kind = ? AND priority = ? ORDER BY scheduled_time LIMIT 1)/*end*/",
);

const NEXT_DEFERRED: Stmt = Stmt::shared(
    "looking for the next deferred job",
    "SELECT deferred_until, queue, kind, probation FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = /*yes*/ ORDER BY deferred_until LIMIT ?",
)
// On a small table it would rather sort.
.mysql(
    "SELECT deferred_until, queue, kind, probation FROM scheduler_job_queue FORCE INDEX (idx_queue_deferred) \
     WHERE status = /*state:pending*/ AND deferred = /*yes*/ ORDER BY deferred_until LIMIT ?",
);
