//! When there is something to claim next.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, StoreError, clock};

use crate::claim::lane::Lane;
use crate::claim::limited_lanes::{self, LimitedLane};
use crate::claim::scan_start::LaneClass;
use crate::claim::{Reach, look_from};
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[NEXT_DEFERRED];

/// How many deferred jobs are looked at for the next due time.
const DEFERRED_MAX: usize = 256;

/// How long until the next job that this request could claim becomes due; zero if one is due already.
pub async fn next_due(conn: &mut dyn Conn, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
    let mut wanted = Lane::all(request, false);
    if request.probation {
        wanted.append(&mut Lane::all(request, true));
    }
    let wait = if wanted.is_empty() { None } else { next_in(conn, request, &mut wanted).await? };
    // A job before a resume point is found by a look from the start, which must not be later because of this.
    let has_resume_points = conn.dialect().scans_dead_entries();
    let all = has_resume_points
        .then(|| conn.context().resume_points().looks_at_all_in(LaneClass::Ordinary, Instant::now()))
        .flatten();
    Ok(wait.into_iter().chain(all).min())
}

/// The same, of what these lanes hold and of deferred jobs and those that need permits.
async fn next_in(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    wanted: &mut [Lane<'_>],
) -> Result<Option<Duration>, StoreError> {
    let has_resume_points = conn.dialect().scans_dead_entries();
    let resume_points = has_resume_points
        .then(|| conn.context().resume_points().begin(LaneClass::Ordinary, wanted, Instant::now()))
        .flatten();
    let gate = look_from(conn, request, Reach::First, wanted, resume_points.as_deref()).await?;
    let first = wanted.iter().filter_map(Lane::first).map(|(due, _)| due);
    let mut next = first.chain(next_deferred(conn, request).await?).min();
    for (waits, probation) in [(gate.limited_wait, false), (gate.probation_waits && request.probation, true)] {
        if waits {
            let limited = limited_lanes::waiting(conn, request, probation).await?;
            next = next.into_iter().chain(limited.iter().map(LimitedLane::due)).min();
        }
    }
    Ok(next.map(|next| clock::elapsed(gate.now, next)))
}

/// The first of the deferred jobs that the request could claim, or a time before it if there are very many others.
async fn next_deferred(conn: &mut dyn Conn, request: &ClaimRequest) -> Result<Option<Timestamp>, StoreError> {
    let rows = conn.rows(&NEXT_DEFERRED, vec![Value::count(DEFERRED_MAX)]).await?;
    let mut last = None;
    for row in &rows {
        let mut fields = row.fields();
        let until = fields.time("deferred_until")?;
        let (queue, kind, probation) = (fields.text("queue")?, fields.text("kind")?, fields.bool("probation")?);
        let takes = |pool: &ratchet_core::Pool| pool.free > 0 && pool.takes(queue, kind);
        if (!probation || request.probation) && !fields.bool("paused")? && request.pools.iter().any(takes) {
            return Ok(Some(until));
        }
        last = Some(until);
    }
    // Looking again too early costs a poll; reading all of them would cost more with every job that is deferred.
    Ok(last.filter(|_| rows.len() == DEFERRED_MAX))
}

/// Deferred jobs in the order of their times; `$index` names the index to use where the database has to be told.
macro_rules! deferred {
    ($index:literal) => {
        concat!(
            "SELECT q.deferred_until AS deferred_until, q.queue AS queue, q.kind AS kind, q.probation AS probation, \
             EXISTS (SELECT 1 FROM scheduler_queue p WHERE p.name = q.queue AND p.paused = /*yes*/) AS paused \
             FROM scheduler_job_queue q ",
            $index,
            " WHERE q.status = /*state:pending*/ AND q.deferred = /*yes*/ ORDER BY q.deferred_until LIMIT ?"
        )
    };
}

const NEXT_DEFERRED: Stmt = Stmt::shared("looking for the next deferred job", deferred!(""))
    // On a small table it would rather sort.
    .mysql(deferred!("FORCE INDEX (idx_queue_deferred)"));

#[cfg(test)]
mod tests {
    use crate::waist::dialect::Dialect;
    use ratchet_core::NodeId;
    use ratchet_core::claim::Boost;

    use super::*;
    use crate::waist::conn::tests::{Scale, at_once};

    /// Another node may have made a deferred job claimable at its old place: before this node's resume points.
    #[test]
    fn what_stands_before_a_resume_point_waits_no_longer_than_until_the_next_look_from_the_start() {
        let mut conn = Scale::new(Dialect::Postgres);
        let (resume_points, now) = (conn.context().resume_points(), Instant::now());
        resume_points.taken(1_000);
        for _ in 0..3 {
            resume_points.looked_at_all(
                LaneClass::Ordinary,
                &[],
                Timestamp::UNIX_EPOCH,
                (now, now + Duration::from_millis(30)),
            );
        }
        let node = NodeId(uuid::Uuid::nil());
        let request = ClaimRequest { node, pools: Vec::new(), limit: 1, probation: false, boost: Boost::default() };
        let wait = at_once(next_due(&mut conn, &request)).unwrap().expect("there is a look from the start");
        assert!(wait <= Duration::from_millis(300), "{wait:?}");
    }
}
