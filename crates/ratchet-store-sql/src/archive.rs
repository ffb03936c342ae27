//! Moving ended jobs to the archive.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use ratchet_core::retention::ARCHIVED_ATTEMPTS_MAX;
use ratchet_core::store::{ArchiveRequest, Archived};
use ratchet_core::{AttemptRecord, Flow, JobId, StoreError, Tag, clock};

use crate::cluster::database_time;
use crate::conn::Conn;
use crate::dialect::Dialect;
use crate::query::attempt_of;
use crate::read::json_of;
use crate::stmt::Stmt;
use crate::value::Value;
use crate::waits;

pub(crate) const STATEMENTS: &[Stmt] = &[
    CANDIDATES,
    HOLD,
    NEEDED,
    LIVE_PARENTS,
    OPEN_BATCHES,
    MAY_BE_RETRIED,
    LAST_ATTEMPTS,
    COPY,
    TAG_ARCHIVED,
    LEAVE_TAGS,
    LEAVE_PARENTS,
    LEAVE_ATTEMPTS,
    LEAVE_ALERTS,
    LEAVE_WAITS,
    LEAVE_BATCHES,
    LEAVE,
    LOOSE_EDGES_FROM,
    LOOSE_EDGES_TO,
    LEAVE_EDGES,
];

/// An ended job that may be archived, if it is old enough and nothing hangs on it.
struct Candidate {
    id: JobId,
    terminated_at: Option<Timestamp>,
    flow: Flow,
    parent: Option<JobId>,
    in_workflow: bool,
    canceled_because: Option<JobId>,
    tags: Vec<Tag>,
}

/// Moves some ended jobs to the archive.
///
/// Reads without locks first, so that a look that finds nothing to do writes nothing; then holds those that may go, passing by
/// what others hold, and judges what hangs on them.
pub async fn archive(conn: &mut dyn Conn, request: &ArchiveRequest) -> Result<Archived, StoreError> {
    if !request.state.is_terminal() || request.limit == 0 {
        return Ok(Archived { last: request.after, ..Archived::default() });
    }
    let now = database_time(conn).await?;
    let cutoff = clock::earlier(now, request.age);
    let looked_at = candidates(conn, request, cutoff).await?;
    let last = looked_at.last().map(|job| job.id).or(request.after);
    let more = looked_at.len() == request.limit;
    let old = looked_at.into_iter().filter(|job| job.terminated_at.is_some_and(|at| at <= cutoff)).collect();
    let go = free_to_go(conn, old, request, cutoff).await?;
    if !go.is_empty() {
        copy(conn, &go, now).await?;
        leave(conn, &go).await?;
    }
    Ok(Archived { moved: go.len() as u64, last, more })
}

// Ids tell when jobs were made, so the index that lists ended jobs finds the old ones too.
const CANDIDATES: Stmt = Stmt::shared(
    "looking for jobs to archive",
    "SELECT job_id, terminated_at, flow, depends_on, workflow_id, tags, canceled_because FROM scheduler_job \
     WHERE terminal_status = ? AND job_id > ? AND job_id < ? ORDER BY job_id LIMIT ?",
)
// The order by primary key tempts it to read all jobs.
.mysql(
    "SELECT job_id, terminated_at, flow, depends_on, workflow_id, tags, canceled_because FROM scheduler_job \
     FORCE INDEX (idx_job_terminal) WHERE terminal_status = ? AND job_id > ? AND job_id < ? ORDER BY job_id LIMIT ?",
);

async fn candidates(
    conn: &mut dyn Conn,
    request: &ArchiveRequest,
    cutoff: Timestamp,
) -> Result<Vec<Candidate>, StoreError> {
    let after = request.after.unwrap_or(JobId(uuid::Uuid::nil()));
    let below = JobId::floor(cutoff);
    let values = vec![request.state.into(), after.into(), below.into(), Value::count(request.limit)];
    let rows = conn.rows(&CANDIDATES, values).await?;
    rows.iter()
        .map(|row| {
            let mut fields = row.fields();
            Ok(Candidate {
                id: fields.job_id("job_id")?,
                terminated_at: fields.opt_time("terminated_at")?,
                flow: Flow::from_bits(fields.number("flow")?),
                parent: fields.opt_job_id("depends_on")?,
                in_workflow: fields.opt_job_id("workflow_id")?.is_some(),
                tags: fields.opt_parsed("tags", serde_json::from_str)?.unwrap_or_default(),
                canceled_because: fields.opt_job_id("canceled_because")?,
            })
        })
        .collect()
}

// Whoever brings a job back to life holds its row. What was brought back since it was looked at is not there any more.
const HOLD: Stmt = Stmt::shared(
    "holding jobs to archive",
    "SELECT job_id FROM scheduler_job /*by_id*/ WHERE terminal_status = ? AND terminated_at <= ? AND job_id /*any*/ \
     ORDER BY job_id /*skip_locked*/",
);

const NEEDED: Stmt = Stmt::shared(
    "looking for live jobs that depend on others",
    "SELECT e.parent_job_id AS job_id FROM scheduler_workflow_condition e \
     JOIN scheduler_job_queue q ON q.job_id = e.child_job_id WHERE e.parent_job_id /*any*/",
);

const LIVE_PARENTS: Stmt =
    Stmt::shared("looking for batches that are live", "SELECT job_id FROM scheduler_job_queue WHERE job_id /*any*/");

const OPEN_BATCHES: Stmt = Stmt::shared(
    "looking for batches with children to come",
    "SELECT batch_id AS job_id FROM scheduler_batch WHERE (canceling = /*yes*/ \
     OR completed_items + failed_items + canceled_items < total_items) AND batch_id /*any*/",
);

const MAY_BE_RETRIED: Stmt = Stmt::shared(
    "looking for jobs whose retry brings others back",
    "SELECT job_id FROM scheduler_job /*by_id*/ \
     WHERE (terminal_status IS NULL OR terminal_status = /*state:failed*/) AND job_id /*any*/",
);

/// Holds these jobs and leaves out those that others hold, that live again, that a retry can bring back, or that something
/// live hangs on.
async fn free_to_go(
    conn: &mut dyn Conn,
    old: Vec<Candidate>,
    request: &ArchiveRequest,
    cutoff: Timestamp,
) -> Result<Vec<Candidate>, StoreError> {
    let ids: Vec<JobId> = old.iter().map(|job| job.id).collect();
    let held = found(conn, &HOLD, &[request.state.into(), cutoff.into()], &ids).await?;
    let those = |flag: Flow| move |job: &&Candidate| job.flow.has(flag);
    let with = |flag: Flow| old.iter().filter(those(flag)).map(|job| job.id).collect::<Vec<_>>();
    let needed = found(conn, &NEEDED, &[], &with(Flow::DEPENDANTS)).await?;
    let open = found(conn, &OPEN_BATCHES, &[], &with(Flow::BATCH)).await?;
    let mut causes: Vec<JobId> = old.iter().filter_map(|job| job.canceled_because).collect();
    causes.sort_unstable();
    causes.dedup();
    let revivers = found(conn, &MAY_BE_RETRIED, &[], &causes).await?;
    let mut parents: Vec<JobId> = old.iter().filter(those(Flow::BATCH_CHILD)).filter_map(|job| job.parent).collect();
    parents.sort_unstable();
    parents.dedup();
    let live = found(conn, &LIVE_PARENTS, &[], &parents).await?;
    let stays = |job: &Candidate| {
        let parent = job.parent.filter(|_| job.flow.has(Flow::BATCH_CHILD));
        !held.contains(&job.id)
            || needed.contains(&job.id)
            || open.contains(&job.id)
            || job.canceled_because.is_some_and(|cause| revivers.contains(&cause))
            || parent.is_some_and(|parent| live.contains(&parent))
    };
    Ok(old.into_iter().filter(|job| !stays(job)).collect())
}

async fn found(
    conn: &mut dyn Conn,
    stmt: &Stmt,
    before: &[Value],
    ids: &[JobId],
) -> Result<HashSet<JobId>, StoreError> {
    let rows = conn.rows_in(stmt, before, ids).await?;
    rows.iter().map(|row| row.fields().job_id("job_id")).collect()
}

const LAST_ATTEMPTS: Stmt = Stmt::shared(
    "reading the last attempts of jobs",
    "SELECT job_id, version, attempt, node_id, status, started_at, ended_at, duration_us, queue_wait_us, error_class, \
     error_message FROM (SELECT e.*, ROW_NUMBER() OVER (PARTITION BY e.job_id ORDER BY e.version DESC) AS place \
     FROM scheduler_job_execution e WHERE e.job_id /*any*/) r WHERE place <= 50 ORDER BY job_id, version",
);
const _: () = assert!(ARCHIVED_ATTEMPTS_MAX == 50, "LAST_ATTEMPTS says how many");

macro_rules! copied {
    ($of:literal) => {
        concat!(
            $of,
            "job_id, ",
            $of,
            "kind, ",
            $of,
            "queue, ",
            $of,
            "job_type, ",
            $of,
            "priority, ",
            $of,
            "payload, ",
            $of,
            "params, ",
            $of,
            "tags, ",
            $of,
            "max_retries, ",
            $of,
            "backoff_policy, ",
            $of,
            "backoff_param_us, ",
            $of,
            "timeout_us, ",
            $of,
            "resource_name, ",
            $of,
            "caller_principal, ",
            $of,
            "idempotency_key, ",
            $of,
            "business_key, ",
            $of,
            "on_success, ",
            $of,
            "on_failure, ",
            $of,
            "origin, ",
            $of,
            "created_at, ",
            $of,
            "version, ",
            $of,
            "depends_on, ",
            $of,
            "superseded_by, ",
            $of,
            "terminal_status, ",
            $of,
            "terminal_error, ",
            $of,
            "total_attempts, ",
            $of,
            "crash_count, ",
            $of,
            "scheduled_time, ",
            $of,
            "terminated_at, ",
            $of,
            "execution_start_time, ",
            $of,
            "execution_end_time, ",
            $of,
            "execution_duration_us, ",
            $of,
            "queue_wait_us, ",
            $of,
            "job_result, ",
            $of,
            "flow, ",
            $of,
            "workflow_id, ",
            $of,
            "step_name, ",
            $of,
            "release_delay_us, ",
            $of,
            "canceled_because"
        )
    };
}

const COPY: Stmt = Stmt::shared(
    "copying jobs to the archive",
    concat!(
        "WITH v (job_id, attempts, signal_wait, archived_at) AS (/*rows:id json json time*/) \
         INSERT INTO scheduler_job_archive (",
        copied!(""),
        ", attempts, signal_wait, archived_at) SELECT ",
        copied!("j."),
        ", v.attempts, v.signal_wait, v.archived_at FROM v JOIN scheduler_job j ON j.job_id = v.job_id"
    ),
)
.mysql(concat!(
    "INSERT INTO scheduler_job_archive (",
    copied!(""),
    ", attempts, signal_wait, archived_at) SELECT ",
    copied!("j."),
    ", v.attempts, v.signal_wait, v.archived_at FROM (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS attempts, \
     ? AS signal_wait, ? AS archived_at/*end*/) v \
     STRAIGHT_JOIN scheduler_job j FORCE INDEX (PRIMARY) ON j.job_id = v.job_id"
));

const TAG_ARCHIVED: Stmt =
    Stmt::shared("tagging archived jobs", "INSERT INTO scheduler_job_archive_tag (tag, job_id) /*rows:text id*/");

/// Writes jobs to the archive, with their last attempts, their signals and their tags.
async fn copy(conn: &mut dyn Conn, go: &[Candidate], now: Timestamp) -> Result<(), StoreError> {
    let ids: Vec<JobId> = go.iter().map(|job| job.id).collect();
    let mut attempts: BTreeMap<JobId, Vec<AttemptRecord>> = BTreeMap::new();
    for row in conn.rows_in(&LAST_ATTEMPTS, &[], &ids).await? {
        let attempt = attempt_of(&row)?;
        attempts.entry(attempt.job_id).or_default().push(attempt);
    }
    let signals = waits::read(conn, &awaited(go)).await?;
    let mut rows = Vec::with_capacity(go.len());
    for job in go {
        let attempts = attempts.get(&job.id).map_or(Ok(Value::Json(None)), json_of)?;
        let signal = signals.get(&job.id).map_or(Ok(Value::Json(None)), json_of)?;
        rows.push((job.id, attempts, signal));
    }
    conn.run_each(&COPY, &rows, |(id, attempts, signal), values| {
        values.extend([(*id).into(), attempts.clone(), signal.clone(), now.into()]);
    })
    .await?;
    conn.run_each(&TAG_ARCHIVED, &tags(go), bind_tag).await?;
    Ok(())
}

fn awaited(go: &[Candidate]) -> Vec<JobId> {
    let awaited = |job: &&Candidate| job.flow.has(Flow::SIGNAL) || job.flow.has(Flow::SIGNALED);
    go.iter().filter(awaited).map(|job| job.id).collect()
}

fn tags(go: &[Candidate]) -> Vec<(&Tag, JobId)> {
    go.iter().flat_map(|job| job.tags.iter().map(|tag| (tag, job.id))).collect()
}

fn bind_tag((tag, id): &(&Tag, JobId), values: &mut Vec<Value>) {
    values.extend([tag.as_str().into(), (*id).into()]);
}

// MariaDB finds no rows by an index through a list of pairs.
const LEAVE_TAGS: Stmt = Stmt::shared(
    "taking the tags of jobs away",
    "DELETE FROM scheduler_job_tag WHERE (tag, job_id) IN (/*rows:text id*/)",
)
.mysql(
    "DELETE t FROM (/*union*/SELECT CAST(? AS BINARY) AS tag, CAST(? AS BINARY(16)) AS job_id/*end*/) v \
     STRAIGHT_JOIN scheduler_job_tag t FORCE INDEX (PRIMARY) ON t.tag = v.tag AND t.job_id = v.job_id",
);

const LEAVE_PARENTS: Stmt = Stmt::only_mysql(
    "taking jobs from the children of others",
    "DELETE c FROM (/*union*/SELECT CAST(? AS BINARY(16)) AS parent_id, CAST(? AS BINARY(16)) AS job_id/*end*/) v \
     STRAIGHT_JOIN scheduler_job_child c FORCE INDEX (PRIMARY) ON c.parent_id = v.parent_id AND c.job_id = v.job_id",
);

const LEAVE_ATTEMPTS: Stmt =
    Stmt::shared("taking the attempts of jobs away", "DELETE FROM scheduler_job_execution WHERE job_id /*any*/");

const LEAVE_ALERTS: Stmt =
    Stmt::shared("taking the alerts of jobs away", "DELETE FROM scheduler_dlq_alert WHERE job_id /*any*/");

const LEAVE_WAITS: Stmt =
    Stmt::shared("taking the waits of jobs away", "DELETE FROM scheduler_signal_wait WHERE job_id /*any*/");

const LEAVE_BATCHES: Stmt =
    Stmt::shared("taking the rows of batches away", "DELETE FROM scheduler_batch WHERE batch_id /*any*/");

const LEAVE: Stmt = Stmt::shared("taking jobs away", "DELETE FROM scheduler_job WHERE job_id /*any*/");

/// Deletes what was copied, and what goes with it.
async fn leave(conn: &mut dyn Conn, go: &[Candidate]) -> Result<(), StoreError> {
    let ids: Vec<JobId> = go.iter().map(|job| job.id).collect();
    conn.run_in(&LEAVE_ATTEMPTS, &[], &ids).await?;
    conn.run_in(&LEAVE_ALERTS, &[], &ids).await?;
    conn.run_in(&LEAVE_WAITS, &[], &awaited(go)).await?;
    conn.run_each(&LEAVE_TAGS, &tags(go), bind_tag).await?;
    let batches: Vec<JobId> = go.iter().filter(|job| job.flow.has(Flow::BATCH)).map(|job| job.id).collect();
    conn.run_in(&LEAVE_BATCHES, &[], &batches).await?;
    if conn.texts().dialect() == Dialect::Mysql {
        let children: Vec<(JobId, JobId)> = go.iter().filter_map(|job| Some((job.parent?, job.id))).collect();
        conn.run_each(&LEAVE_PARENTS, &children, bind_pair).await?;
    }
    conn.run_in(&LEAVE, &[], &ids).await?;
    let tied: Vec<JobId> = go.iter().filter(|job| job.in_workflow || !job.flow.is_none()).map(|job| job.id).collect();
    leave_edges(conn, &tied).await
}

fn bind_pair((one, other): &(JobId, JobId), values: &mut Vec<Value>) {
    values.extend([(*one).into(), (*other).into()]);
}

// Read before they are deleted: in a delete MySQL would lock what it looks at.
const LOOSE_EDGES_FROM: Stmt = Stmt::shared(
    "looking for edges from archived jobs to archived jobs",
    "SELECT e.parent_job_id AS parent_job_id, e.child_job_id AS child_job_id FROM scheduler_workflow_condition e \
     LEFT JOIN scheduler_job j ON j.job_id = e.child_job_id WHERE j.job_id IS NULL AND e.parent_job_id /*any*/",
);

const LOOSE_EDGES_TO: Stmt = Stmt::shared(
    "looking for edges to archived jobs from archived jobs",
    "SELECT e.parent_job_id AS parent_job_id, e.child_job_id AS child_job_id FROM scheduler_workflow_condition e \
     LEFT JOIN scheduler_job j ON j.job_id = e.parent_job_id WHERE j.job_id IS NULL AND e.child_job_id /*any*/",
);

const LEAVE_EDGES: Stmt = Stmt::shared(
    "taking edges between archived jobs away",
    "DELETE FROM scheduler_workflow_condition WHERE (parent_job_id, child_job_id) IN (/*rows:id id*/)",
)
.mysql(
    "DELETE e FROM (/*union*/SELECT CAST(? AS BINARY(16)) AS parent_job_id, CAST(? AS BINARY(16)) AS child_job_id\
     /*end*/) v STRAIGHT_JOIN scheduler_workflow_condition e FORCE INDEX (PRIMARY) \
     ON e.parent_job_id = v.parent_job_id AND e.child_job_id = v.child_job_id",
);

/// Edges are kept while one of their ends is not archived: it may be retried, and then needs its input.
async fn leave_edges(conn: &mut dyn Conn, ids: &[JobId]) -> Result<(), StoreError> {
    let mut loose = Vec::new();
    for stmt in [&LOOSE_EDGES_FROM, &LOOSE_EDGES_TO] {
        for row in conn.rows_in(stmt, &[], ids).await? {
            let mut fields = row.fields();
            loose.push((fields.job_id("parent_job_id")?, fields.job_id("child_job_id")?));
        }
    }
    loose.sort_unstable();
    loose.dedup();
    conn.run_each(&LEAVE_EDGES, &loose, bind_pair).await?;
    Ok(())
}
