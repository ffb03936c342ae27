//! Taking jobs to run them.
//!
//! A lane is a range of the claim index: (probation, resource, queue, kind, priority). A claim reads the beginnings of lanes and
//! takes what their merge in the core picks. Lanes that no node asks for (unknown kinds, paused queues) are never read.

pub(crate) mod lane;
pub(crate) mod lane_heads;
pub(crate) mod limited_lanes;
pub(crate) mod scan_start;
pub(crate) mod merge;
pub(crate) mod permits;
pub(crate) mod inputs;
pub(crate) mod next_due;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ratchet_core::claim::{LaneMerge, Permits};
use ratchet_core::{Claim, ClaimRequest, ErrorKind, Fence, JobId, JobRecord, NodeId, StoreError};

use crate::claim::inputs::add_inputs;
use crate::claim::lane::{BindLane, Lane};
use crate::claim::lane_heads::keep_best;
use crate::claim::scan_start::LaneClass;
use crate::cluster::is_alive;
use crate::job_row::{self, claimed_columns};
use crate::signal::waits::add_signals;
use crate::waist::conn::Conn;
use crate::waist::dialect::Dialect;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[LOOK, PROMOTABLE, PROMOTE, LOCK_PENDING, TAKE, READ_CLAIMED, TAKE_AND_READ, PARK];

/// Up to this many lanes each is read as far as the whole claim could need; of more, each is read a little at first.
const LANES_FEW: usize = 8;
/// Most deferred jobs that become claimable in one claim.
const PROMOTE_MAX: usize = 1_000;
/// How long a job that this version cannot read is put off.
const PARK_FOR: Duration = Duration::from_mins(10);

/// How often a claim looks further down the lanes for jobs that other claimers were quicker to take.
const ROUNDS_MAX: usize = 4;

/// Takes jobs for the room there is.
///
/// Writes nothing if there is nothing to take.
pub(crate) async fn claim(conn: &mut dyn Conn, request: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
    let mut wanted = Lane::all(request, false);
    if wanted.is_empty() {
        // Nothing to ask for, but a node that is dead is told so all the same.
        return if is_alive(conn, request.node).await? { Ok(Vec::new()) } else { Err(not_alive(request.node)) };
    }
    let mut gate = look_at_best(conn, request, LaneClass::Ordinary, &mut wanted).await?;
    if gate.deferred_due {
        promote(conn, gate.now).await?;
        wanted = Lane::all(request, false);
        gate = look_at_best(conn, request, LaneClass::Ordinary, &mut wanted).await?;
    }
    let mut permits = Permits::default();
    let mut more = Vec::new();
    if gate.limited_wait {
        more = permits::open_lanes(conn, request, false, &mut permits).await?;
    }
    if gate.probation_waits && request.probation {
        more.append(&mut Lane::all(request, true));
        more.append(&mut permits::open_lanes(conn, request, true, &mut permits).await?);
    }
    if !more.is_empty() {
        gate.now = look_at_best(conn, request, LaneClass::Special, &mut more).await?.now;
        wanted.append(&mut more);
    }
    let mut merge = LaneMerge::new(request, wanted, gate.now, permits);
    let mut claimed = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let picked = merge::pick(conn, &mut merge).await?;
        if picked.is_empty() {
            break;
        }
        let mut taken = take(conn, request.node, gate.now, &picked).await?;
        conn.context().resume_points().taken(taken.claims.len());
        claimed.append(&mut taken.claims);
        if !taken.unreadable.is_empty() {
            conn.run_in(&PARK, &[Value::micros(PARK_FOR)], &taken.unreadable).await?;
        }
        if taken.lost.is_empty() {
            break;
        }
        merge.give_back(&taken.lost);
    }
    permits::take(conn, &claimed).await?;
    add_inputs(conn, &mut claimed).await?;
    add_signals(conn, &mut claimed).await?;
    Ok(claimed)
}

fn not_alive(node: NodeId) -> StoreError {
    let problem = format!("node {node} is not registered or was declared dead; register as a new incarnation");
    StoreError::new(ErrorKind::Conflict, "claiming jobs", problem)
}

// Back to waiting, out of the way of the others: a newer node may read it, and a person can see it.
const PARK: Stmt = Stmt::shared(
    "putting unreadable jobs off",
    "UPDATE scheduler_job_queue /*by_id*/ SET status = /*state:pending*/, version = version + 1, picked_by = NULL, \
     picked_at = NULL, deferred = /*yes*/, deferred_until = /*in:?*/, updated_at = /*now*/ \
     WHERE status = /*state:running*/ AND job_id /*any*/",
);

/// Lets deferred jobs whose time has come be claimed.
async fn promote(conn: &mut dyn Conn, now: Timestamp) -> Result<(), StoreError> {
    let rows = conn.rows(&PROMOTABLE, vec![now.into(), Value::count(PROMOTE_MAX)]).await?;
    let mut ids = rows.iter().map(|row| row.fields().job_id("job_id")).collect::<Result<Vec<JobId>, _>>()?;
    ids.sort_unstable();
    conn.run_in(&PROMOTE, &[], &ids).await?;
    Ok(())
}

const PROMOTABLE: Stmt = Stmt::shared(
    "looking for deferred jobs whose time has come",
    "SELECT job_id FROM scheduler_job_queue WHERE status = /*state:pending*/ AND deferred = /*yes*/ \
     AND deferred_until <= ? ORDER BY deferred_until LIMIT ? /*skip_locked*/",
)
// On a small table it would rather read all that waits.
.mysql(
    "SELECT job_id FROM scheduler_job_queue FORCE INDEX (idx_queue_deferred) WHERE status = /*state:pending*/ \
     AND deferred = /*yes*/ AND deferred_until <= ? ORDER BY deferred_until LIMIT ? /*skip_locked*/",
);

// A job that was put off keeps its time, and with it its place in the order.
const PROMOTE: Stmt = Stmt::shared(
    "letting deferred jobs be claimed",
    "UPDATE scheduler_job_queue /*by_id*/ SET deferred = /*no*/ WHERE job_id /*any*/",
);

/// How far a look goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// To the jobs that are due, as many of each lane as the claim can need.
    Due,
    /// To the first job of each lane, whenever it is due.
    First,
}

impl Reach {
    /// The time from now within which jobs are due.
    const fn horizon(self) -> Duration {
        match self {
            Self::Due => Duration::ZERO,
            // 7,000 years: longer than any delay, and within what every database can add to its clock.
            Self::First => Duration::from_hours(7_000 * 365 * 24),
        }
    }
}

/// What a look at the queue says besides the jobs that it found.
struct ClaimGate {
    now: Timestamp,
    deferred_due: bool,
    probation_waits: bool,
    /// Whether jobs wait that need a permit, and are not on probation.
    limited_wait: bool,
}

/// Looks at the lanes that a claim can need.
async fn look_at_best(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    sort: LaneClass,
    lanes: &mut Vec<Lane<'_>>,
) -> Result<ClaimGate, StoreError> {
    keep_best(conn, request, lanes).await?;
    look(conn, request, sort, lanes).await
}

/// What a look asks besides the jobs, up to the tables of the question; `$more` is a further column, `$deferred` and `$claim`
/// name the indexes to use where the database has to be told.
macro_rules! gate {
    ($more:literal, $deferred:literal, $claim:literal) => {
        concat!(
            "SELECT g.now AS now, g.alive AS alive, g.deferred_due AS deferred_due, g.probation_waits AS probation_waits, \
             g.limited_wait AS limited_wait, h.lane AS lane, h.scheduled_time AS scheduled_time, h.job_id AS job_id",
            $more,
            " FROM (SELECT /*now*/ AS now, \
             EXISTS (SELECT 1 FROM scheduler_node WHERE node_id = ? AND dead_at IS NULL) AS alive, \
             EXISTS (SELECT 1 FROM scheduler_job_queue ",
            $deferred,
            " WHERE status = /*state:pending*/ AND deferred = /*yes*/ AND deferred_until <= /*now*/) AS deferred_due, \
             EXISTS (SELECT 1 FROM scheduler_job_queue ",
            $claim,
            " WHERE status = /*state:pending*/ AND probation = /*yes*/ AND deferred = /*no*/) AS probation_waits, \
             EXISTS (SELECT 1 FROM scheduler_job_queue ",
            $claim,
            " WHERE status = /*state:pending*/ AND probation = /*no*/ AND deferred = /*no*/ AND resource > '') \
             AS limited_wait) AS g "
        )
    };
}

// Whether the node may claim and what else is to be done, and the beginning of every lane whose queue is not paused; one
// row at least. The time is read once, so that it can bound a range of the index. The horizon lets the same statement find the next
// job that becomes due. PostgreSQL joins the lanes with their
// beginnings: one text for any number of lanes, planned once. MySQL is told which index to walk, because on a small table
// it would rather sort; it also plans every range anew each time, so that the paused queues come beside and not as a
// question in each. SQLite asks for the pause in the limit, because a condition would be asked of every job.
const LOOK: Stmt = Stmt::shared(
    "looking for jobs to claim",
    concat!(
        gate!("", "", ""),
        "LEFT JOIN (/*union*/SELECT * FROM (SELECT CAST(? AS INTEGER) AS lane, scheduled_time, job_id \
         FROM scheduler_job_queue WHERE status = /*state:pending*/ AND deferred = /*no*/ \
         AND probation = ? AND resource = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time <= /*in:?*/ \
         ORDER BY scheduled_time, job_id \
         LIMIT CASE WHEN EXISTS (SELECT 1 FROM scheduler_queue p WHERE p.name = ? AND p.paused = /*yes*/) \
         THEN 0 ELSE ? END) AS u/*end*/) AS h ON 1 = 1"
    ),
)
.postgres(
    "WITH t AS MATERIALIZED (SELECT /*now*/ AS now, ? * INTERVAL '1 microsecond' AS horizon), \
     g AS MATERIALIZED (SELECT t.now, t.now + t.horizon AS until, \
     EXISTS (SELECT 1 FROM scheduler_node n WHERE n.node_id = ? AND n.dead_at IS NULL) AS alive, \
     EXISTS (SELECT 1 FROM scheduler_job_queue q WHERE q.status = /*state:pending*/ AND q.deferred \
     AND q.deferred_until <= t.now) AS deferred_due, \
     EXISTS (SELECT 1 FROM scheduler_job_queue q WHERE q.status = /*state:pending*/ AND q.probation \
     AND NOT q.deferred) AS probation_waits, \
     EXISTS (SELECT 1 FROM scheduler_job_queue q WHERE q.status = /*state:pending*/ AND NOT q.probation \
     AND NOT q.deferred AND q.resource > '') AS limited_wait FROM t) \
     SELECT g.now AS now, g.alive AS alive, g.deferred_due AS deferred_due, g.probation_waits AS probation_waits, \
     g.limited_wait AS limited_wait, h.lane AS lane, h.scheduled_time AS scheduled_time, h.job_id AS job_id FROM g LEFT JOIN LATERAL (\
     SELECT l.lane, u.scheduled_time, u.job_id \
     FROM unnest(?::bigint[], ?::boolean[], ?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[], ?::bigint[], \
     ?::timestamptz[]) AS l (lane, probation, resource, queue, kind, priority, unless_paused, most, mark) CROSS JOIN LATERAL (\
     SELECT q.scheduled_time, q.job_id FROM scheduler_job_queue q \
     WHERE q.status = /*state:pending*/ AND NOT q.deferred AND q.probation = l.probation AND q.resource = l.resource AND q.queue = l.queue \
     AND q.kind = l.kind AND q.priority = l.priority AND q.scheduled_time <= g.until \
     AND q.scheduled_time >= COALESCE(l.mark, '-infinity') \
     ORDER BY q.scheduled_time, q.job_id LIMIT l.most) u \
     WHERE NOT EXISTS (SELECT 1 FROM scheduler_queue p WHERE p.name = l.unless_paused AND p.paused)) h ON TRUE",
)
.mysql(concat!(
    gate!(
        ", (SELECT JSON_ARRAYAGG(p.name) FROM scheduler_queue p WHERE p.paused = /*yes*/) AS paused",
        "FORCE INDEX (idx_queue_deferred)",
        "FORCE INDEX (idx_queue_claim)"
    ),
    "LEFT JOIN (/*union*/(SELECT ? AS lane, scheduled_time, job_id \
     FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND resource = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time <= /*in:?*/ \
     ORDER BY scheduled_time, job_id LIMIT ?)/*end*/) AS h ON 1 = 1"
));

/// Reads the beginning of every lane, or what follows its resume point where the beginnings are full of dead entries.
async fn look(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    sort: LaneClass,
    lanes: &mut [Lane<'_>],
) -> Result<ClaimGate, StoreError> {
    if !conn.dialect().scans_dead_entries() {
        return look_from(conn, request, Reach::Due, lanes, None).await;
    }
    let began = Instant::now();
    if let Some(resume_points) = conn.context().resume_points().begin(sort, lanes, began) {
        let gate = look_from(conn, request, Reach::Due, lanes, Some(&resume_points)).await?;
        let resume_points = conn.context().resume_points();
        resume_points.looked(sort, lanes, gate.now, (began, Instant::now()));
        let found: usize = lanes.iter().map(Lane::count).sum();
        if found >= request.limit || resume_points.will_do(sort) {
            return Ok(gate);
        }
        lanes.iter_mut().for_each(Lane::forget);
    }
    let began = Instant::now();
    let gate = look_from(conn, request, Reach::Due, lanes, None).await?;
    conn.context().resume_points().looked_at_all(sort, lanes, gate.now, (began, Instant::now()));
    Ok(gate)
}

/// Reads the beginning of every lane, from its resume point if it has one, and what else there is to know before a claim.
async fn look_from(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    reach: Reach,
    lanes: &mut [Lane<'_>],
    resume_points: Option<&[Option<Timestamp>]>,
) -> Result<ClaimGate, StoreError> {
    let few = lanes.len() <= LANES_FEW;
    let share = (4 * request.limit).div_ceil(lanes.len().max(1)).max(2);
    let limit_of = |lane: &Lane<'_>| {
        if reach == Reach::First {
            return 1;
        }
        let room = request.pools[lane.pool].free.min(request.limit).min(if lane.probation { 1 } else { usize::MAX });
        if few { room } else { room.min(share) }
    };
    let dialect = conn.dialect();
    let tells_pauses = dialect.plans_every_range();
    let indexes: Vec<usize> = (0..lanes.len()).collect();
    let horizon = Value::micros(reach.horizon());
    let one_horizon = dialect.has_arrays();
    let before: Vec<Value> = one_horizon.then(|| horizon.clone()).into_iter().chain([request.node.into()]).collect();
    let rows = conn
        .rows_each(&LOOK, &before, &indexes, |index, values| {
            let lane = &lanes[*index];
            values.push(Value::count(*index));
            lane.bind(values);
            if !one_horizon {
                values.push(horizon.clone());
            }
            if !tells_pauses {
                values.push(lane.queue.into());
            }
            values.push(Value::count(limit_of(lane)));
            if dialect.scans_dead_entries() {
                values.push(Value::opt_time(resume_points.and_then(|points| points[*index])));
            }
        })
        .await?;
    let mut gate = ClaimGate { now: Timestamp::MIN, deferred_due: false, probation_waits: false, limited_wait: false };
    let mut paused: Option<Vec<String>> = None;
    for row in &rows {
        let mut fields = row.fields();
        gate.now = fields.time("now")?;
        if !fields.bool("alive")? && reach == Reach::Due {
            return Err(not_alive(request.node));
        }
        gate.deferred_due |= fields.bool("deferred_due")?;
        gate.probation_waits |= fields.bool("probation_waits")?;
        gate.limited_wait |= fields.bool("limited_wait")?;
        let lane = fields.opt_int("lane")?;
        let (scheduled_time, id) = (fields.opt_time("scheduled_time")?, fields.opt_job_id("job_id")?);
        let lane = lane.and_then(|lane| usize::try_from(lane).ok()).and_then(|lane| lanes.get_mut(lane));
        if let (Some(lane), Some(scheduled_time), Some(id)) = (lane, scheduled_time, id) {
            lane.push((scheduled_time, id));
        }
        if tells_pauses && paused.is_none() {
            paused = fields.opt_parsed("paused", serde_json::from_str)?;
        }
    }
    let paused: Vec<String> = paused.unwrap_or_default();
    for lane in lanes.iter_mut().filter(|lane| paused.iter().any(|queue| queue == lane.queue)) {
        lane.forget();
    }
    for lane in lanes {
        lane.set_more(!lane.probation && lane.count() == limit_of(lane));
    }
    Ok(gate)
}

/// What became of picked jobs.
struct ClaimAttempt {
    claims: Vec<Claim>,
    /// ClaimAttempt, but this version cannot read them.
    unreadable: Vec<JobId>,
    /// Another claimer was quicker.
    lost: Vec<JobId>,
}

/// Takes those of the picked jobs that nobody else takes at this moment, and that are still due: another node may have run
/// one since the look, and put its next attempt off.
async fn take(conn: &mut dyn Conn, node: NodeId, now: Timestamp, picked: &[JobId]) -> Result<ClaimAttempt, StoreError> {
    // Rows are written in the order of their keys, so that claimers who lock rows do not wait for each other in a circle.
    let mut sorted = picked.to_vec();
    sorted.sort_unstable();
    let rows = match conn.dialect() {
        Dialect::Sqlite => take_all(conn, node, &sorted).await?,
        Dialect::Postgres => conn.rows_in(&TAKE_AND_READ, &[node.into(), now.into()], &sorted).await?,
        Dialect::Mysql | Dialect::Mariadb => {
            let locked = conn.rows_in(&LOCK_PENDING, &[now.into()], &sorted).await?;
            let locked = locked.iter().map(|row| row.fields().job_id("job_id")).collect::<Result<Vec<JobId>, _>>()?;
            take_all(conn, node, &locked).await?
        }
    };
    let (mut jobs, unreadable) = job_row::claimed(&rows, node)?;
    let claim = |job: JobRecord| {
        let fence = Fence { job_id: job.id, version: job.version, node };
        Claim { fence, job, inputs: Vec::new(), signal: None }
    };
    let claims: Vec<Claim> = picked.iter().filter_map(|id| jobs.remove(id)).map(claim).collect();
    let taken: HashSet<JobId> =
        claims.iter().map(|claim| claim.fence.job_id).chain(unreadable.iter().copied()).collect();
    let lost = picked.iter().filter(|id| !taken.contains(id)).copied().collect();
    Ok(ClaimAttempt { claims, unreadable, lost })
}

/// Takes jobs that nobody else can take, and reads them.
async fn take_all(conn: &mut dyn Conn, node: NodeId, ids: &[JobId]) -> Result<Vec<Row>, StoreError> {
    if conn.run_in(&TAKE, &[node.into()], ids).await? < ids.len() as u64 {
        let problem = "another node took some of the same jobs at this moment; claim again";
        return Err(StoreError::new(ErrorKind::Transient, TAKE.doing(), problem));
    }
    conn.rows_in(&READ_CLAIMED, &[], ids).await
}

const LOCK_PENDING: Stmt = Stmt::shared(
    "locking jobs to claim",
    "SELECT job_id FROM scheduler_job_queue /*by_id*/ \
     WHERE scheduled_time <= ? AND job_id /*any*/ AND status = /*state:pending*/ AND deferred = /*no*/ \
     ORDER BY job_id /*skip_locked*/",
);

const TAKE: Stmt = Stmt::shared(
    "claiming jobs",
    "UPDATE scheduler_job_queue /*by_id*/ SET status = /*state:running*/, version = version + 1, picked_by = ?, \
     picked_at = /*now*/, progress = NULL, updated_at = /*now*/ \
     WHERE status = /*state:pending*/ AND job_id /*any*/",
);

const READ_CLAIMED: Stmt = Stmt::shared(
    "reading claimed jobs",
    concat!(
        "SELECT ",
        claimed_columns!(),
        " FROM scheduler_job_queue q JOIN scheduler_job j ON j.job_id = q.job_id WHERE q.job_id /*any*/"
    ),
);

// Locking, taking and reading in one round trip. The conditions are written so that the planner cannot prove them from the
// condition of the claim index: its statistics may say that hardly anything waits, and then it would rather read that
// whole index than find twenty rows by their keys.
const TAKE_AND_READ: Stmt = Stmt::only_postgres(
    "claiming and reading jobs",
    concat!(
        "UPDATE scheduler_job_queue q SET status = /*state:running*/, version = q.version + 1, picked_by = ?, \
         picked_at = /*now*/, progress = NULL, updated_at = /*now*/ \
         FROM (SELECT p.job_id FROM scheduler_job_queue p WHERE p.scheduled_time <= ? AND p.job_id /*any*/ \
         AND COALESCE(p.status, '') = /*state:pending*/ AND NOT COALESCE(p.deferred, FALSE) ORDER BY p.job_id /*skip_locked*/) free \
         JOIN scheduler_job j ON j.job_id = free.job_id WHERE q.job_id = free.job_id RETURNING ",
        claimed_columns!()
    ),
);
