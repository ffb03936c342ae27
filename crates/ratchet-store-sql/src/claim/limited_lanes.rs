//! The lanes in which jobs wait that need a permit.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, StoreError, clock};

use crate::claim::lane::Lane;
use crate::claim::permits::permits_out;
use crate::waist::conn::Conn;
use crate::waist::dialect::Dialect;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[LANES, LIMITS_OF];

/// Most lanes of jobs with resources that one claim looks at.
const LANES_MAX: usize = 1_000;

/// A lane in which jobs wait that need a permit.
pub(crate) struct LimitedLane<'a> {
    pub(crate) lane: Lane<'a>,
    /// When its first job is due.
    pub(crate) head: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) limit: Option<Limit>,
}

/// A limit, as it was when nobody had locked it.
#[derive(Clone, Copy)]
pub(crate) struct Limit {
    is_reached: bool,
    retry_delay: Duration,
}

impl LimitedLane<'_> {
    /// Whether its first job is due, and there seems to be a permit for it.
    pub(crate) fn is_open(&self) -> bool {
        self.head <= self.now && self.limit.is_none_or(|limit| !limit.is_reached)
    }

    /// When it is worth looking: when its first job is due, but not before permits may be left.
    pub(crate) fn due(&self) -> Timestamp {
        match self.limit {
            Some(Limit { is_reached: true, retry_delay }) => self.head.max(clock::later(self.now, retry_delay)),
            _ => self.head,
        }
    }
}

/// The lanes that a request asks for in which jobs wait that need a permit, but for those of paused queues.
pub(crate) async fn waiting<'a>(
    conn: &mut dyn Conn,
    request: &'a ClaimRequest,
    probation: bool,
) -> Result<Vec<LimitedLane<'a>>, StoreError> {
    let asked = Lane::all(request, probation);
    let (now, found) = found(conn, &asked, probation).await?;
    let names: BTreeSet<&str> = found.iter().map(|(lane, _)| &*lane.resource).collect();
    let limits = limits_of(conn, &names.into_iter().collect::<Vec<_>>()).await?;
    let limited = |(lane, head): (Lane<'a>, Timestamp)| LimitedLane {
        limit: limits.get(&*lane.resource).copied(),
        lane,
        head,
        now,
    };
    Ok(found.into_iter().map(limited).collect())
}

/// The time, and lanes with the time of their first job.
type Found<'a> = (Timestamp, Vec<(Lane<'a>, Timestamp)>);

async fn found<'a>(conn: &mut dyn Conn, asked: &[Lane<'a>], probation: bool) -> Result<Found<'a>, StoreError> {
    let (mut at, mut found) = (Timestamp::MIN, Vec::new());
    let first_and_next: Vec<Value> = match conn.dialect() {
        Dialect::Sqlite | Dialect::Postgres => vec![probation.into(), probation.into()],
        Dialect::Mysql | Dialect::Mariadb => vec![probation.into()],
    };
    let values = first_and_next.into_iter().chain([Value::count(LANES_MAX)]).collect();
    for row in &conn.rows_of_groups(&LANES, values).await? {
        let mut fields = row.fields();
        let (now, resource) = (fields.time("now")?, fields.text("resource")?);
        let (queue, kind, level) = (fields.text("queue")?, fields.text("kind")?, fields.number::<u8>("priority")?);
        at = now;
        let same = |lane: &&Lane<'_>| lane.queue == queue && lane.kind == kind && lane.priority.level() == level;
        if let Some(lane) = asked.iter().find(same) {
            found.push((lane.needing(resource.to_owned()), fields.time("head")?));
        }
    }
    Ok((at, found))
}

// From one lane to the next by the claim index: each costs a look into the index, however many jobs it holds. PostgreSQL is
// told to look for the next lane for each one; SQLite is told how to jump, as in `insight`.
const LANES: Stmt = Stmt::shared(
    "looking for jobs that need permits",
    "WITH RECURSIVE lane (depth, resource, queue, kind, priority, head) AS (\
     SELECT 1, q.resource, q.queue, q.kind, q.priority, q.scheduled_time FROM scheduler_job_queue q \
     WHERE q.job_id = (SELECT f.job_id FROM scheduler_job_queue f WHERE f.status = /*state:pending*/ \
     AND f.deferred = /*no*/ AND f.probation = ? AND f.resource > '' \
     ORDER BY f.resource, f.queue, f.kind, f.priority, f.scheduled_time, f.job_id LIMIT 1) \
     UNION ALL SELECT l.depth + 1, q.resource, q.queue, q.kind, q.priority, q.scheduled_time \
     FROM lane l JOIN scheduler_job_queue q ON q.job_id = (SELECT f.job_id FROM scheduler_job_queue f \
     WHERE f.status = /*state:pending*/ AND f.deferred = /*no*/ AND f.probation = ? \
     AND (f.resource, f.queue, f.kind, f.priority, f.scheduled_time) \
     > (+l.resource, +l.queue, +l.kind, +l.priority, 9223372036854775807) \
     ORDER BY f.resource, f.queue, f.kind, f.priority, f.scheduled_time, f.job_id LIMIT 1) WHERE l.depth < ?) \
     SELECT /*now*/ AS now, resource, queue, kind, priority, head FROM lane \
     WHERE NOT EXISTS (SELECT 1 FROM scheduler_queue p WHERE p.name = lane.queue AND p.paused = /*yes*/)",
)
.postgres(
    "WITH RECURSIVE lane (depth, resource, queue, kind, priority, head) AS (\
     (SELECT 1::bigint, f.resource, f.queue, f.kind, f.priority, f.scheduled_time FROM scheduler_job_queue f \
     WHERE f.status = /*state:pending*/ AND NOT f.deferred AND f.probation = ? AND f.resource > '' \
     ORDER BY f.resource, f.queue, f.kind, f.priority, f.scheduled_time, f.job_id LIMIT 1) \
     UNION ALL SELECT l.depth + 1, n.resource, n.queue, n.kind, n.priority, n.scheduled_time \
     FROM lane l CROSS JOIN LATERAL (SELECT f.* FROM scheduler_job_queue f \
     WHERE f.status = /*state:pending*/ AND NOT f.deferred AND f.probation = ? \
     AND (f.resource, f.queue, f.kind, f.priority) > (l.resource, l.queue, l.kind, l.priority) \
     ORDER BY f.resource, f.queue, f.kind, f.priority, f.scheduled_time, f.job_id LIMIT 1) n WHERE l.depth < ?) \
     SELECT /*now*/ AS now, resource, queue, kind, priority, head FROM lane \
     WHERE NOT EXISTS (SELECT 1 FROM scheduler_queue p WHERE p.name = lane.queue AND p.paused = /*yes*/)",
)
// MySQL finds what is next in an index only after a constant, so there the groups are the lanes: it jumps from one to the next.
.mysql(
    "SELECT /*now*/ AS now, lane.resource AS resource, lane.queue AS queue, lane.kind AS kind, lane.priority AS priority, \
     lane.head AS head FROM (SELECT resource, queue, kind, priority, MIN(scheduled_time) AS head \
     FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND resource > '' \
     GROUP BY status, deferred, probation, resource, queue, kind, priority LIMIT ?) lane \
     WHERE NOT EXISTS (SELECT 1 FROM scheduler_queue p WHERE p.name = lane.queue AND p.paused = /*yes*/)",
);

/// The limits of resources; those without one are left out.
async fn limits_of(conn: &mut dyn Conn, names: &[&str]) -> Result<HashMap<String, Limit>, StoreError> {
    let mut limits = HashMap::new();
    for row in &conn.rows_in(&LIMITS_OF, &[], names).await? {
        let mut fields = row.fields();
        let (name, max) = (fields.text("resource_name")?.to_owned(), fields.int("max_concurrent")?);
        let (retry_delay, in_use) = (fields.duration("retry_delay_us")?, fields.int("in_use")?);
        limits.insert(name, Limit { is_reached: in_use >= max, retry_delay });
    }
    Ok(limits)
}

const LIMITS_OF: Stmt = Stmt::shared(
    "reading limits of resources that jobs wait for",
    concat!(
        "SELECT r.resource_name AS resource_name, r.max_concurrent AS max_concurrent, \
         r.retry_delay_us AS retry_delay_us, (SELECT COUNT(*)",
        permits_out!(),
        "AND p.resource_name = r.resource_name) AS in_use \
         FROM scheduler_resource_limit r WHERE r.resource_name /*any*/"
    ),
);
