//! When there is something to claim next.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, StoreError, clock};

use crate::claim::lane::{BindLane, Lane};
use crate::claim::limited_lanes::{self, LimitedLane};
use crate::claim::scan_start::Sort;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[NEXT_DUE, NEXT_DEFERRED, PAUSED_QUEUES];

/// How many deferred jobs are looked at for the next due time.
const DEFERRED_MAX: usize = 256;

/// How long until the next job that this request could claim becomes due; zero if one is due already.
pub async fn next_due(conn: &mut dyn Conn, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
    let mut paused = HashSet::new();
    let (mut now, mut limited_wait) = (Timestamp::MIN, false);
    for row in conn.rows(&PAUSED_QUEUES, vec![]).await? {
        let mut fields = row.fields();
        now = fields.time("now")?;
        limited_wait = fields.bool("limited_wait")?;
        paused.extend(fields.opt_text("paused")?.map(str::to_owned));
    }
    let mut wanted = Lane::all(request, false);
    if request.probation {
        wanted.append(&mut Lane::all(request, true));
    }
    wanted.retain(|lane| !paused.contains(lane.queue));
    let mut next = next_deferred(conn, request, &paused).await?;
    // What may stand before a mark is found by a look from the start, which must not be later because of this.
    let has_marks = conn.texts().dialect().scans_dead_entries();
    let marks = has_marks.then(|| conn.texts().marks().begin(Sort::Ordinary, &wanted, Instant::now())).flatten();
    let places: Vec<usize> = (0..wanted.len()).collect();
    let bind = |place: &usize, values: &mut Vec<Value>| {
        wanted[*place].bind(values);
        if has_marks {
            values.push(Value::opt_time(marks.as_ref().and_then(|marks| marks[*place])));
        }
    };
    for row in conn.rows_each(&NEXT_DUE, &[], &places, bind).await? {
        let due = row.fields().time("scheduled_time")?;
        next = Some(next.map_or(due, |next| next.min(due)));
    }
    if limited_wait {
        let mut limited = limited_lanes::waiting(conn, request, false).await?;
        if request.probation {
            limited.append(&mut limited_lanes::waiting(conn, request, true).await?);
        }
        next = next.into_iter().chain(limited.iter().map(LimitedLane::due)).min();
    }
    let wait = next.map(|next| clock::elapsed(now, next));
    let all = has_marks.then(|| conn.texts().marks().looks_at_all_in(Sort::Ordinary, Instant::now())).flatten();
    Ok(wait.into_iter().chain(all).min())
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
        let takes = |pool: &ratchet_core::Pool| pool.free > 0 && pool.takes(queue, kind);
        if (!probation || request.probation) && !paused.contains(queue) && request.pools.iter().any(takes) {
            return Ok(Some(until));
        }
        last = Some(until);
    }
    // Looking again too early costs a poll; reading all of them would cost more with every job that is deferred.
    Ok(last.filter(|_| rows.len() == DEFERRED_MAX))
}

/// Whether jobs wait that need permits, on probation or not: each a range of the claim index.
macro_rules! paused_queues {
    ($claim:literal) => {
        concat!(
            "SELECT /*now*/ AS now, EXISTS (SELECT 1 FROM scheduler_job_queue ",
            $claim,
            " WHERE status = /*state:pending*/ AND deferred = /*no*/ AND probation = /*no*/ AND resource > '') \
             OR EXISTS (SELECT 1 FROM scheduler_job_queue ",
            $claim,
            " WHERE status = /*state:pending*/ AND deferred = /*no*/ AND probation = /*yes*/ AND resource > '') \
             AS limited_wait, p.name AS paused FROM (SELECT 1) one LEFT JOIN scheduler_queue p ON p.paused = /*yes*/"
        )
    };
}

/// One row, and another one for each further queue that is paused.
const PAUSED_QUEUES: Stmt = Stmt::shared("looking for paused queues", paused_queues!(""))
    // On a small table it would rather read all that waits.
    .mysql(paused_queues!("FORCE INDEX (idx_queue_claim)"));

const NEXT_DUE: Stmt = Stmt::shared(
    "looking for the next due job",
    "/*union*/SELECT * FROM (SELECT scheduled_time FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND resource = ? AND queue = ? AND kind = ? AND priority = ? ORDER BY scheduled_time LIMIT 1) AS h/*end*/",
)
.postgres(
    "SELECT h.scheduled_time AS scheduled_time FROM unnest(?::boolean[], ?::text[], ?::text[], ?::text[], ?::bigint[], \
     ?::timestamptz[]) AS l (probation, resource, queue, kind, priority, mark) \
     CROSS JOIN LATERAL (SELECT q.scheduled_time FROM scheduler_job_queue q \
     WHERE q.status = /*state:pending*/ AND q.deferred = /*no*/ AND q.probation = l.probation AND q.resource = l.resource AND q.queue = l.queue \
     AND q.kind = l.kind AND q.priority = l.priority AND q.scheduled_time >= COALESCE(l.mark, '-infinity') \
     ORDER BY q.scheduled_time LIMIT 1) h",
)
.mysql(
    "/*union*/(SELECT scheduled_time FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND resource = ? AND queue = ? AND kind = ? AND priority = ? ORDER BY scheduled_time LIMIT 1)/*end*/",
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

#[cfg(test)]
mod tests {
    use ratchet_core::NodeId;
    use ratchet_core::claim::Boost;

    use super::*;
    use crate::waist::conn::tests::{Scale, at_once};

    /// Another node may have let a deferred job be claimed, at its old place: before the marks of this one.
    #[test]
    fn what_stands_before_a_mark_waits_no_longer_than_until_the_next_look_from_the_start() {
        let mut conn = Scale::new(Dialect::Postgres);
        let (marks, now) = (conn.texts().marks(), Instant::now());
        marks.taken(1_000);
        for _ in 0..3 {
            marks.looked_at_all(Sort::Ordinary, &[], Timestamp::UNIX_EPOCH, (now, now + Duration::from_millis(30)));
        }
        let node = NodeId(uuid::Uuid::nil());
        let request = ClaimRequest { node, pools: Vec::new(), limit: 1, probation: false, boost: Boost::default() };
        let wait = at_once(next_due(&mut conn, &request)).unwrap().expect("there is a look from the start");
        assert!(wait <= Duration::from_millis(300), "{wait:?}");
    }
}
