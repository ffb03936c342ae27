//! How queues are: read from the beginnings and ends of indexes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::flow::Edge;
use ratchet_core::insight::{LaneRange, RecentEnd};
use ratchet_core::page::JobFilter;
use ratchet_core::store::{InsightStore, LANES_MAX, WaitingLane};
use ratchet_core::{JobId, JobState, Kind, Priority, QueueName, ResourceName, StoreError};

use crate::cluster::queues::PAUSED;
use crate::flow::edges;
use crate::list::job_index::{Direction, UNARCHIVED};
use crate::store::{Backend, SqlStore};
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;
use crate::work;

pub(crate) const STATEMENTS: &[Stmt] = &[WAITING_LANES, COUNT_WAITING, RECENT_ENDS, COUNT_ENDED, RUNNING_BY_QUEUE];

#[async_trait]
impl<B: Backend> InsightStore for SqlStore<B> {
    async fn waiting_lanes(&self) -> Result<Vec<WaitingLane>, StoreError> {
        self.read(work!([], |conn| waiting_lanes(conn))).await
    }

    async fn count_waiting(&self, ranges: &[LaneRange], most: u64) -> Result<Vec<u64>, StoreError> {
        let ranges: Arc<[LaneRange]> = ranges.into();
        let count = work!([ranges], |conn| count_waiting(conn, &ranges, most));
        self.read(count).await
    }

    async fn recent_ends(&self, state: JobState, limit: usize) -> Result<Vec<RecentEnd>, StoreError> {
        self.read(work!([], |conn| recent_ends(conn, state, limit))).await
    }

    async fn count_ended(&self, state: JobState, most: u64) -> Result<u64, StoreError> {
        self.read(work!([], |conn| count_ended(conn, state, most))).await
    }

    async fn running_by_queue(&self) -> Result<BTreeMap<QueueName, u64>, StoreError> {
        self.read(work!([], |conn| running_by_queue(conn))).await
    }

    async fn paused_queues(&self) -> Result<Vec<QueueName>, StoreError> {
        self.read(work!([], |conn| paused_queues(conn))).await
    }

    async fn edges_to(&self, id: JobId) -> Result<Vec<Edge>, StoreError> {
        self.read(work!([], |conn| edges_to(conn, id))).await
    }
}

// From one lane to the next, as a claim looks for lanes with resources. A plus in SQLite's text means a value and not a column: of two
// columns it compares in a way for which the index is of no use beyond its first part. And it begins at the lane that it comes from, and
// would step through all of it: so it is told to begin after the last time of all.
const WAITING_LANES: Stmt = Stmt::shared(
    "looking for lanes in which jobs wait",
    "WITH RECURSIVE lane (depth, probation, resource, queue, kind, priority, head) AS (\
     SELECT 1, q.probation, q.resource, q.queue, q.kind, q.priority, q.scheduled_time FROM scheduler_job_queue q \
     WHERE q.job_id = (SELECT f.job_id FROM scheduler_job_queue f WHERE f.status = /*state:pending*/ \
     AND f.deferred = /*no*/ \
     ORDER BY f.probation, f.resource, f.queue, f.kind, f.priority, f.scheduled_time, f.job_id LIMIT 1) \
     UNION ALL SELECT l.depth + 1, q.probation, q.resource, q.queue, q.kind, q.priority, q.scheduled_time \
     FROM lane l JOIN scheduler_job_queue q ON q.job_id = (SELECT f.job_id FROM scheduler_job_queue f \
     WHERE f.status = /*state:pending*/ AND f.deferred = /*no*/ \
     AND (f.probation, f.resource, f.queue, f.kind, f.priority, f.scheduled_time) \
     > (+l.probation, +l.resource, +l.queue, +l.kind, +l.priority, 9223372036854775807) \
     ORDER BY f.probation, f.resource, f.queue, f.kind, f.priority, f.scheduled_time, f.job_id LIMIT 1) \
     WHERE l.depth < ?) SELECT probation, resource, queue, kind, priority, head FROM lane",
)
.postgres(
    "WITH RECURSIVE lane (depth, probation, resource, queue, kind, priority, head) AS (\
     (SELECT 1::bigint, f.probation, f.resource, f.queue, f.kind, f.priority, f.scheduled_time \
     FROM scheduler_job_queue f WHERE f.status = /*state:pending*/ AND NOT f.deferred \
     ORDER BY f.probation, f.resource, f.queue, f.kind, f.priority, f.scheduled_time, f.job_id LIMIT 1) \
     UNION ALL SELECT l.depth + 1, n.probation, n.resource, n.queue, n.kind, n.priority, n.scheduled_time \
     FROM lane l CROSS JOIN LATERAL (SELECT f.* FROM scheduler_job_queue f \
     WHERE f.status = /*state:pending*/ AND NOT f.deferred \
     AND (f.probation, f.resource, f.queue, f.kind, f.priority) \
     > (l.probation, l.resource, l.queue, l.kind, l.priority) \
     ORDER BY f.probation, f.resource, f.queue, f.kind, f.priority, f.scheduled_time, f.job_id LIMIT 1) n \
     WHERE l.depth < ?) SELECT probation, resource, queue, kind, priority, head FROM lane",
)
.mysql(
    "SELECT probation, resource, queue, kind, priority, MIN(scheduled_time) AS head \
     FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     GROUP BY status, deferred, probation, resource, queue, kind, priority LIMIT ?",
);

/// The lanes in which jobs wait.
pub async fn waiting_lanes(conn: &mut dyn Conn) -> Result<Vec<WaitingLane>, StoreError> {
    let mut lanes = Vec::new();
    for row in &conn.rows_of_groups(&WAITING_LANES, vec![Value::count(LANES_MAX)]).await? {
        let mut fields = row.fields();
        let probation = fields.bool("probation")?;
        let resource = fields.parsed("resource", |text| match text {
            "" => Ok(None),
            name => ResourceName::new(name).map(Some),
        })?;
        let (queue, kind) = (fields.parsed("queue", QueueName::new)?, fields.parsed("kind", Kind::new)?);
        // One that only a newer version knows: nodes of this version do not claim it either.
        let Some(priority) = Priority::from_level(fields.number("priority")?) else { continue };
        lanes.push(WaitingLane { probation, resource, queue, kind, priority, head: fields.time("head")? });
    }
    Ok(lanes)
}

// Of every range as many are read as are counted.
const COUNT_WAITING: Stmt = Stmt::shared(
    "counting jobs that wait",
    "/*union*/SELECT CAST(? AS INTEGER) AS place, COUNT(*) AS jobs FROM (SELECT 1 FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ AND probation = ? AND resource = ? AND queue = ? \
     AND kind = ? AND priority = ? AND scheduled_time < ? LIMIT ?) AS c/*end*/",
)
.postgres(
    "SELECT l.place AS place, (SELECT COUNT(*) FROM (SELECT 1 FROM scheduler_job_queue q \
     WHERE q.status = /*state:pending*/ AND NOT q.deferred AND q.probation = l.probation AND q.resource = l.resource \
     AND q.queue = l.queue AND q.kind = l.kind AND q.priority = l.priority AND q.scheduled_time < l.before LIMIT l.most) c) AS jobs \
     FROM unnest(?::bigint[], ?::boolean[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::timestamptz[], ?::bigint[]) \
     AS l (place, probation, resource, queue, kind, priority, before, most)",
)
.mysql(
    "/*union*/SELECT ? AS place, COUNT(*) AS jobs FROM (SELECT 1 FROM scheduler_job_queue \
     FORCE INDEX (idx_queue_claim) WHERE status = /*state:pending*/ AND deferred = /*no*/ AND probation = ? \
     AND resource = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time < ? LIMIT ?) AS c/*end*/",
);

/// How many jobs wait in each range.
pub async fn count_waiting(conn: &mut dyn Conn, ranges: &[LaneRange], most: u64) -> Result<Vec<u64>, StoreError> {
    let mut counts = vec![0; ranges.len()];
    let places: Vec<usize> = (0..ranges.len()).collect();
    let bind = |place: &usize, values: &mut Vec<Value>| {
        let LaneRange { probation, resource, queue, kind, priority, before } = &ranges[*place];
        values.extend([
            Value::count(*place),
            (*probation).into(),
            resource.as_ref().map_or("", AsRef::as_ref).into(),
            queue.as_str().into(),
            kind.as_str().into(),
            Value::count(priority.level()),
            before.unwrap_or(FOR_EVER).into(),
            Value::count(most),
        ]);
    };
    for row in &conn.rows_each(&COUNT_WAITING, &[], &places, bind).await? {
        let mut fields = row.fields();
        let place: usize = fields.number("place")?;
        if let Some(count) = counts.get_mut(place) {
            *count = fields.number("jobs")?;
        }
    }
    Ok(counts)
}

/// Later than any job is due, and within what every database can hold: the year 9000.
const FOR_EVER: jiff::Timestamp = jiff::Timestamp::constant(221_845_392_000, 0);

const RECENT_ENDS: Stmt = Stmt::shared(
    "reading what ended last",
    "SELECT job_id, queue, terminated_at, queue_wait_us, execution_duration_us FROM scheduler_job /*by_id*/ \
     WHERE job_id /*any*/",
);

/// Reads the jobs that ended so, of those that were created last.
pub async fn recent_ends(conn: &mut dyn Conn, state: JobState, limit: usize) -> Result<Vec<RecentEnd>, StoreError> {
    let range = JobFilter::default().id_range(None);
    let ids = UNARCHIVED.by_end.ids(conn, Direction::NewestFirst, Some(&state.into()), range, limit).await?;
    let mut ends = Vec::with_capacity(ids.len());
    for row in conn.rows_in(&RECENT_ENDS, &[], &ids).await? {
        let mut fields = row.fields();
        let id = fields.job_id("job_id")?;
        let (queue, at) = (fields.parsed("queue", QueueName::new)?, fields.opt_time("terminated_at")?);
        let (wait, run) = (fields.opt_duration("queue_wait_us")?, fields.opt_duration("execution_duration_us")?);
        // One that was retried meanwhile has not ended.
        ends.extend(at.map(|at| (id, RecentEnd { queue, state, at, times: wait.zip(run) })));
    }
    ends.sort_unstable_by_key(|(id, _)| Reverse(*id));
    Ok(ends.into_iter().map(|(_, end)| end).collect())
}

const COUNT_ENDED: Stmt = Stmt::shared(
    "counting some ended jobs",
    "SELECT COUNT(*) AS jobs FROM (SELECT 1 FROM scheduler_job WHERE terminal_status = ? LIMIT ?) AS c",
);

/// How many jobs ended so.
pub async fn count_ended(conn: &mut dyn Conn, state: JobState, most: u64) -> Result<u64, StoreError> {
    match conn.row(&COUNT_ENDED, vec![state.into(), Value::count(most)]).await? {
        Some(row) => row.fields().number("jobs"),
        None => Ok(0),
    }
}

const RUNNING_BY_QUEUE: Stmt = Stmt::shared(
    "counting running jobs",
    "SELECT queue, COUNT(*) AS jobs FROM scheduler_job_queue WHERE status = /*state:running*/ GROUP BY queue",
);

/// RUNNING jobs by queue.
pub async fn running_by_queue(conn: &mut dyn Conn) -> Result<BTreeMap<QueueName, u64>, StoreError> {
    let rows = conn.rows(&RUNNING_BY_QUEUE, vec![]).await?;
    let count = |row: &Row| {
        let mut fields = row.fields();
        Ok((fields.parsed("queue", QueueName::new)?, fields.number("jobs")?))
    };
    rows.iter().map(count).collect()
}

/// The queues that claims pass by.
pub(crate) async fn paused_queues(conn: &mut dyn Conn) -> Result<Vec<QueueName>, StoreError> {
    conn.rows(&PAUSED, vec![]).await?.iter().map(|row| row.fields().parsed("name", QueueName::new)).collect()
}

/// The edges that end at a job.
pub(crate) async fn edges_to(conn: &mut dyn Conn, id: JobId) -> Result<Vec<Edge>, StoreError> {
    let mut edges = edges::to(conn, &[id]).await?;
    edges.sort_by_key(|edge| edge.order);
    Ok(edges)
}
