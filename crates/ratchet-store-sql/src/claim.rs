//! Taking jobs to run them.
//!
//! A lane is what the claim index keeps together: (probation, queue, kind, priority). Within a lane the oldest job comes
//! first and has the highest boost, so a claim is the merge of the lanes' beginnings, and it is exact. Lanes that nobody
//! asks for (unknown kinds, paused queues) are never read.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::{Claim, ClaimRequest, ErrorKind, JobId, NodeId, Priority, StoreError, clock};

use crate::conn::Conn;
use crate::list;
use crate::read;
use crate::stmt::Stmt;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[GATE, PROMOTE, HEADS, REFILL, TAKE, PARK, NEXT_DUE, NEXT_DEFERRED, PAUSED_QUEUES];

/// Most lanes of one statement; a compound SELECT of SQLite has at most 500 parts, and a longer text saves little.
const LANES_MAX: usize = 128;
/// Up to this many lanes each is read as far as the whole claim could need; of more, each is read a little at first.
const LANES_FEW: usize = 8;
/// Most deferred jobs that become claimable in one claim.
const PROMOTE_MAX: usize = 1_000;
/// How long a job that this version cannot read is put off.
const PARK_FOR: Duration = Duration::from_mins(10);
/// How many deferred jobs are looked at for the next due time.
const DEFERRED_MAX: usize = 256;

/// Takes jobs for the room there is.
///
/// Writes nothing if there is nothing to take.
pub async fn claim(conn: &mut dyn Conn, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
    let gate = Gate::read(conn, request.node).await?;
    if gate.deferred_due {
        conn.run(&PROMOTE, vec![gate.now.into(), Value::count(PROMOTE_MAX)]).await?;
    }
    let mut lanes = lanes(request, &gate.paused, request.probation && gate.probation_waits);
    read_heads(conn, request, &mut lanes, gate.now).await?;
    let ids = merge(conn, request, &mut lanes, gate.now).await?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    // Rows are written in the order of their keys, so that claimers who lock rows do not wait for each other in a circle.
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    let taken = conn.run_in(&TAKE, &[request.node.into()], &sorted).await?;
    if taken < ids.len() as u64 {
        let problem = "another node took some of the same jobs at this moment; claim again";
        return Err(StoreError::new(ErrorKind::Transient, TAKE.doing(), problem));
    }
    let claimed = read::claimed(conn, request.node, &ids).await?;
    if claimed.len() < ids.len() {
        let read: HashSet<JobId> = claimed.iter().map(|claim| claim.fence.job_id).collect();
        let unreadable: Vec<JobId> = ids.into_iter().filter(|id| !read.contains(id)).collect();
        conn.run_in(&PARK, &[Value::micros(PARK_FOR)], &unreadable).await?;
    }
    Ok(claimed)
}

/// How long until the next job that this request could claim becomes due; zero if one is due already.
pub async fn next_due(conn: &mut dyn Conn, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
    let mut paused = HashSet::new();
    let mut now = Timestamp::MIN;
    for row in conn.rows(&PAUSED_QUEUES, vec![]).await? {
        let mut fields = row.fields();
        now = fields.time("now")?;
        paused.extend(fields.opt_text("paused")?.map(str::to_owned));
    }
    let lanes = lanes(request, &paused, request.probation);
    let mut next = next_deferred(conn, request, &paused).await?;
    for chunk in lanes.chunks(LANES_MAX) {
        let count = list::padded_len(chunk.len());
        let mut values = Vec::with_capacity(count * 4);
        for lane in chunk {
            lane.bind(&mut values);
        }
        (chunk.len()..count).for_each(|_| bind_no_lane(&mut values));
        let text = conn.texts().render(&NEXT_DUE, count);
        for row in conn.fetch(NEXT_DUE.doing(), text, values).await? {
            let due = row.fields().time("scheduled_time")?;
            next = Some(next.map_or(due, |next| next.min(due)));
        }
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

// Back to waiting, out of the way of the others: a newer node may read it, and a person can see it.
const PARK: Stmt = Stmt::shared(
    "putting unreadable jobs off",
    "UPDATE scheduler_job_queue SET status = /*state:pending*/, version = version + 1, picked_by = NULL, \
     picked_at = NULL, deferred = 1, deferred_until = /*now*/ + ?, updated_at = /*now*/ \
     WHERE status = /*state:running*/ AND job_id IN (/*each*/?/*end*/)",
);

/// One row, and another one for each further queue that is paused.
const GATE: Stmt = Stmt::shared(
    "looking whether the node may claim",
    "SELECT /*now*/ AS now, \
     EXISTS (SELECT 1 FROM scheduler_node WHERE node_id = ? AND dead_at IS NULL) AS alive, \
     EXISTS (SELECT 1 FROM scheduler_job_queue WHERE status = /*state:pending*/ AND deferred = 1 \
             AND deferred_until <= /*now*/) AS deferred_due, \
     EXISTS (SELECT 1 FROM scheduler_job_queue WHERE status = /*state:pending*/ AND probation = 1 \
             AND deferred = 0) AS probation_waits, \
     p.name AS paused \
     FROM (SELECT 1) one LEFT JOIN scheduler_queue p ON p.paused = 1",
);

struct Gate {
    now: Timestamp,
    deferred_due: bool,
    probation_waits: bool,
    paused: HashSet<String>,
}

impl Gate {
    async fn read(conn: &mut dyn Conn, node: NodeId) -> Result<Self, StoreError> {
        let rows = conn.rows(&GATE, vec![node.into()]).await?;
        let mut gate =
            Self { now: Timestamp::MIN, deferred_due: false, probation_waits: false, paused: HashSet::new() };
        let mut alive = false;
        for row in &rows {
            let mut fields = row.fields();
            gate.now = fields.time("now")?;
            alive = fields.bool("alive")?;
            gate.deferred_due = fields.bool("deferred_due")?;
            // A job that becomes claimable in this very claim may be one on probation.
            gate.probation_waits = fields.bool("probation_waits")? || gate.deferred_due;
            gate.paused.extend(fields.opt_text("paused")?.map(str::to_owned));
        }
        if alive {
            return Ok(gate);
        }
        let problem = format!("node {node} is not registered or was declared dead; register as a new incarnation");
        Err(StoreError::new(ErrorKind::Conflict, "claiming jobs", problem))
    }
}

// A job that was put off keeps its time, and with it its place in the order.
const PROMOTE: Stmt = Stmt::shared(
    "letting deferred jobs be claimed",
    "UPDATE scheduler_job_queue SET deferred = 0 WHERE job_id IN (\
     SELECT job_id FROM scheduler_job_queue WHERE status = /*state:pending*/ AND deferred = 1 \
     AND deferred_until <= ? ORDER BY deferred_until LIMIT ?)",
);

/// A lane of the claim index, as far as it has been read.
struct Lane<'a> {
    pool: usize,
    probation: bool,
    queue: &'a str,
    kind: &'a str,
    priority: Priority,
    read: VecDeque<(Timestamp, JobId)>,
    /// Whether there may be more than what was read.
    more: bool,
}

impl Lane<'_> {
    fn bind(&self, values: &mut Vec<Value>) {
        values.extend([
            Value::from(self.probation),
            self.queue.into(),
            self.kind.into(),
            Value::count(self.priority.level()),
        ]);
    }
}

/// A lane without jobs: no kind and no queue is empty text.
fn bind_no_lane(values: &mut Vec<Value>) {
    values.extend([Value::from(false), "".into(), "".into(), Value::count(0)]);
}

fn lanes<'a>(request: &'a ClaimRequest, paused: &HashSet<String>, probation: bool) -> Vec<Lane<'a>> {
    let mut lanes = Vec::new();
    for (pool_index, pool) in request.pools.iter().enumerate() {
        if pool.free == 0 || paused.contains(pool.queue.as_str()) {
            continue;
        }
        for kind in pool.kinds.iter() {
            for priority in Priority::ALL {
                for on_probation in [false, true] {
                    if on_probation && !probation {
                        continue;
                    }
                    lanes.push(Lane {
                        pool: pool_index,
                        probation: on_probation,
                        queue: pool.queue.as_str(),
                        kind: kind.as_str(),
                        priority,
                        read: VecDeque::new(),
                        more: false,
                    });
                }
            }
        }
    }
    lanes
}

const HEADS: Stmt = Stmt::shared(
    "looking for jobs to claim",
    "/*union*/SELECT * FROM (SELECT CAST(? AS INTEGER) AS lane, scheduled_time, job_id FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = 0 \
     AND probation = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time <= ? \
     ORDER BY scheduled_time, job_id LIMIT ?)/*end*/",
);

/// Reads the beginning of every lane.
async fn read_heads(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    lanes: &mut [Lane<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    let few = lanes.len() <= LANES_FEW;
    let share = (2 * request.limit).div_ceil(lanes.len().max(1)).max(8);
    let limit_of = |lane: &Lane<'_>| {
        let room = request.pools[lane.pool].free.min(request.limit).min(if lane.probation { 1 } else { usize::MAX });
        if few { room } else { room.min(share) }
    };
    for chunk in lanes.chunks_mut(LANES_MAX) {
        let count = list::padded_len(chunk.len());
        let mut values = Vec::with_capacity(count * 7);
        for (index, lane) in chunk.iter().enumerate() {
            values.push(Value::count(index));
            lane.bind(&mut values);
            values.extend([now.into(), Value::count(limit_of(lane))]);
        }
        for _ in chunk.len()..count {
            values.push(Value::Int(Some(-1)));
            bind_no_lane(&mut values);
            values.extend([now.into(), Value::count(0)]);
        }
        let text = conn.texts().render(&HEADS, count);
        for row in conn.fetch(HEADS.doing(), text, values).await? {
            let mut fields = row.fields();
            let lane: usize = fields.number("lane")?;
            chunk[lane].read.push_back((fields.time("scheduled_time")?, fields.job_id("job_id")?));
        }
        for lane in chunk {
            lane.more = !lane.probation && lane.read.len() == limit_of(lane);
        }
    }
    Ok(())
}

const REFILL: Stmt = Stmt::shared(
    "looking for further jobs to claim",
    "SELECT scheduled_time, job_id FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = 0 \
     AND probation = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time <= ? \
     AND (scheduled_time, job_id) > (?, ?) ORDER BY scheduled_time, job_id LIMIT ?",
);

/// The ids to claim: pool by pool, each in the order of effective priority, then due time, then id.
async fn merge(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    lanes: &mut [Lane<'_>],
    now: Timestamp,
) -> Result<Vec<JobId>, StoreError> {
    let mut ids = Vec::new();
    let mut seen = HashSet::new();
    let mut probation_left = usize::from(request.probation);
    for (pool_index, pool) in request.pools.iter().enumerate() {
        let mut room = pool.free.min(request.limit - ids.len());
        let mut heads = BinaryHeap::new();
        let rank = |lane: &Lane<'_>, (scheduled_time, id): (Timestamp, JobId), index: usize| {
            (request.boost.effective(lane.priority, scheduled_time, now), Reverse(scheduled_time), Reverse(id), index)
        };
        for (index, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.pool == pool_index) {
            if let Some(head) = lane.read.pop_front() {
                heads.push(rank(lane, head, index));
            }
        }
        while room > 0
            && let Some((_, Reverse(scheduled_time), Reverse(id), index)) = heads.pop()
        {
            let lane = &mut lanes[index];
            if lane.probation {
                if probation_left == 0 {
                    continue;
                }
                probation_left -= 1;
            }
            if seen.insert(id) {
                ids.push(id);
                room -= 1;
            }
            if lane.read.is_empty() && lane.more && room > 0 {
                refill(conn, lane, now, (scheduled_time, id), room).await?;
            }
            if let Some(head) = lane.read.pop_front() {
                heads.push(rank(lane, head, index));
            }
        }
    }
    Ok(ids)
}

async fn refill(
    conn: &mut dyn Conn,
    lane: &mut Lane<'_>,
    now: Timestamp,
    after: (Timestamp, JobId),
    limit: usize,
) -> Result<(), StoreError> {
    let mut values = Vec::with_capacity(8);
    lane.bind(&mut values);
    values.extend([now.into(), after.0.into(), after.1.into(), Value::count(limit)]);
    let rows = conn.rows(&REFILL, values).await?;
    for row in &rows {
        let mut fields = row.fields();
        lane.read.push_back((fields.time("scheduled_time")?, fields.job_id("job_id")?));
    }
    lane.more = rows.len() == limit;
    Ok(())
}

const TAKE: Stmt = Stmt::shared(
    "claiming jobs",
    "UPDATE scheduler_job_queue SET status = /*state:running*/, version = version + 1, picked_by = ?, \
     picked_at = /*now*/, progress = NULL, updated_at = /*now*/ \
     WHERE status = /*state:pending*/ AND job_id IN (/*each*/?/*end*/)",
);

/// One row, and another one for each further queue that is paused.
const PAUSED_QUEUES: Stmt = Stmt::shared(
    "looking for paused queues",
    "SELECT /*now*/ AS now, p.name AS paused FROM (SELECT 1) one LEFT JOIN scheduler_queue p ON p.paused = 1",
);

const NEXT_DUE: Stmt = Stmt::shared(
    "looking for the next due job",
    "/*union*/SELECT * FROM (SELECT scheduled_time FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = 0 \
     AND probation = ? AND queue = ? AND kind = ? AND priority = ? ORDER BY scheduled_time LIMIT 1)/*end*/",
);

const NEXT_DEFERRED: Stmt = Stmt::shared(
    "looking for the next deferred job",
    "SELECT deferred_until, queue, kind, probation FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = 1 ORDER BY deferred_until LIMIT ?",
);
