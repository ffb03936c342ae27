//! Moving ended jobs to the archive.

mod archive_store;
pub(crate) mod archived;
pub(crate) mod attempts;
pub(crate) mod purge;

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;
use ratchet_core::retention::{ARCHIVED_ATTEMPTS_MAX, TieQuestions, Ties, brings_back, may_go};
use ratchet_core::store::{ArchiveRequest, Archived, Removal};
use ratchet_core::{AttemptRecord, JobId, StoreError};

use crate::cluster::database_time;
use crate::control::delete::{self, EndedRow};
use crate::flow::batches::counts_of;
use crate::job_log;
use crate::job_row::json_of;
use crate::list::job_index::{Direction, UNARCHIVED};
use crate::list::query::attempt_of;
use crate::signal::waits;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[CANDIDATES, HOLD, NEEDED, LIVE_PARENTS, OPEN_BATCHES, CAUSES, LAST_ATTEMPTS, COPY, TAG_ARCHIVED];

/// Moves some ended jobs to the archive.
///
/// Reads without locks first, so that a look that finds nothing to do writes nothing; then holds those that may go, passing by
/// what others hold, and judges what hangs on them.
pub async fn archive(conn: &mut dyn Conn, request: &ArchiveRequest) -> Result<Archived, StoreError> {
    if !request.state.is_terminal() || request.limit == 0 {
        return Ok(Archived { last: request.after, ..Archived::default() });
    }
    let now = database_time(conn).await?;
    let cutoff = request.cutoff(now);
    let (read, candidates) = candidates(conn, request, cutoff).await?;
    let old = candidates.into_iter().filter(|job| job.terminated_at.is_some_and(|at| at <= cutoff)).collect();
    let go = free_to_go(conn, old, request, cutoff).await?;
    let removal = |row: &&EndedRow| request.removal.of_job(row.job.flow, row.workflow);
    let deleted: Vec<JobId> = go.iter().filter(|row| removal(row) == Removal::Delete).map(|row| row.job.id).collect();
    if deleted.len() < go.len() {
        let kept: Vec<&EndedRow> = go.iter().filter(|row| removal(row) == Removal::Archive).collect();
        copy(conn, &kept, now).await?;
    }
    if !go.is_empty() {
        delete::leave(conn, &go).await?;
        job_log::delete_all(conn, &deleted).await?;
    }
    Ok(request.answer(&read, (go.len() - deleted.len()) as u64, deleted.len() as u64))
}

const CANDIDATES: Stmt = Stmt::shared(
    "reading jobs to archive",
    "SELECT job_id, flow, depends_on, canceled_because, terminated_at, workflow_id, tags, ended_by \
     FROM scheduler_job /*by_id*/ \
     WHERE job_id /*any*/",
);

/// Returns the ids of the jobs that a request examines, and their rows, both in order. Ids contain the times at which jobs were
/// created, so the index that lists ended jobs finds the old ones too.
async fn candidates(
    conn: &mut dyn Conn,
    request: &ArchiveRequest,
    cutoff: Timestamp,
) -> Result<(Vec<JobId>, Vec<EndedRow>), StoreError> {
    let ids = if let Some(only) = &request.only {
        only.clone()
    } else {
        let since = request.after.map_or(JobId(uuid::Uuid::nil()), JobId::following);
        let (range, state) = ((since, JobId::floor(cutoff)), request.state.into());
        UNARCHIVED.by_end.ids(conn, Direction::OldestFirst, Some(&state), range, request.limit).await?
    };
    let rows = conn.rows_in(&CANDIDATES, &[], &ids).await?;
    let mut found = rows.iter().map(EndedRow::of).collect::<Result<Vec<_>, _>>()?;
    found.sort_unstable_by_key(|row| row.job.id);
    Ok((ids, found))
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
    "SELECT batch_id, canceling, /*columns:batch.counts*/ FROM scheduler_batch /*by_id*/ WHERE batch_id /*any*/",
);

const CAUSES: Stmt = Stmt::shared(
    "looking for jobs whose retry brings others back",
    "SELECT job_id, terminal_status FROM scheduler_job /*by_id*/ WHERE job_id /*any*/",
);

/// Holds these jobs and leaves out those that others hold, that live again, that a retry can bring back, or that something
/// live hangs on.
async fn free_to_go(
    conn: &mut dyn Conn,
    old: Vec<EndedRow>,
    request: &ArchiveRequest,
    cutoff: Timestamp,
) -> Result<Vec<EndedRow>, StoreError> {
    let ids: Vec<JobId> = old.iter().map(|row| row.job.id).collect();
    let held = found(conn, &HOLD, &[request.state.into(), cutoff.into()], &ids).await?;
    let questions = TieQuestions::about(old.iter().map(|row| row.job));
    let ties = Ties {
        needed: found(conn, &NEEDED, &[], &questions.needed).await?,
        open_batches: open_batches(conn, &questions.open_batches).await?,
        revivers: revivers(conn, &questions.revivers).await?,
        live_parents: found(conn, &LIVE_PARENTS, &[], &questions.live_parents).await?,
    };
    Ok(old.into_iter().filter(|row| held.contains(&row.job.id) && may_go(&row.job, &ties)).collect())
}

async fn open_batches(conn: &mut dyn Conn, ids: &[JobId]) -> Result<HashSet<JobId>, StoreError> {
    let mut open = HashSet::new();
    for row in conn.rows_in(&OPEN_BATCHES, &[], ids).await? {
        let mut fields = row.fields();
        let (id, canceling) = (fields.job_id("batch_id")?, fields.bool("canceling")?);
        let counts = counts_of(&mut fields)?;
        open.extend(Some(id).filter(|_| counts.has_children_to_come(canceling)));
    }
    Ok(open)
}

async fn revivers(conn: &mut dyn Conn, ids: &[JobId]) -> Result<HashSet<JobId>, StoreError> {
    let mut revivers = HashSet::new();
    for row in conn.rows_in(&CAUSES, &[], ids).await? {
        let mut fields = row.fields();
        let (id, ended) = (fields.job_id("job_id")?, fields.opt_state("terminal_status")?);
        revivers.extend(Some(id).filter(|_| brings_back(ended)));
    }
    Ok(revivers)
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
    "SELECT /*columns:attempt.plain,attempt.error*/ FROM (SELECT e.*, ROW_NUMBER() OVER (PARTITION BY e.job_id ORDER BY e.version DESC) AS place \
     FROM scheduler_job_execution e WHERE e.job_id /*any*/) r WHERE place <= 50 ORDER BY job_id, version",
);
const _: () = assert!(ARCHIVED_ATTEMPTS_MAX == 50, "LAST_ATTEMPTS says how many");

// The job's columns are those of `job_row`, and its copy has all of them.
const COPY: Stmt = Stmt::shared(
    "copying jobs to the archive",
    "WITH v (job_id, attempts, signal_wait, archived_at) AS (/*rows:id json json time*/) \
     INSERT INTO scheduler_job_archive (/*columns:job*/, created_at, attempts, signal_wait, archived_at) \
     SELECT /*columns:job j.*/, j.created_at, \
     v.attempts, v.signal_wait, v.archived_at FROM v JOIN scheduler_job j ON j.job_id = v.job_id",
)
// Nobody waits for the disk because of it: should the server die before it is there, the jobs are still where they were,
// and go to the archive another time. The setting ends with the transaction.
.postgres(
    "WITH v (job_id, attempts, signal_wait, archived_at) AS (/*rows:id json json time*/) \
     INSERT INTO scheduler_job_archive (/*columns:job*/, created_at, attempts, signal_wait, archived_at) \
     SELECT /*columns:job j.*/, j.created_at, \
     v.attempts, v.signal_wait, v.archived_at FROM v JOIN scheduler_job j ON j.job_id = v.job_id \
     WHERE (SELECT set_config('synchronous_commit', 'off', true)) = 'off'",
)
.mysql(
    "INSERT INTO scheduler_job_archive (/*columns:job*/, created_at, attempts, signal_wait, archived_at) \
     SELECT /*columns:job j.*/, j.created_at, \
     v.attempts, v.signal_wait, v.archived_at FROM (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS attempts, \
     ? AS signal_wait, ? AS archived_at/*end*/) v \
     STRAIGHT_JOIN scheduler_job j FORCE INDEX (PRIMARY) ON j.job_id = v.job_id",
);

const TAG_ARCHIVED: Stmt =
    Stmt::shared("tagging archived jobs", "INSERT INTO scheduler_job_archive_tag (tag, job_id) /*rows:text id*/");

/// Writes jobs to the archive, with their last attempts (the one that succeeded is in the row itself), their signals and their tags.
async fn copy(conn: &mut dyn Conn, go: &[&EndedRow], now: Timestamp) -> Result<(), StoreError> {
    let ids: Vec<JobId> = go.iter().map(|row| row.job.id).collect();
    let mut attempts: BTreeMap<JobId, Vec<AttemptRecord>> = BTreeMap::new();
    for row in conn.rows_in(&LAST_ATTEMPTS, &[], &ids).await? {
        let attempt = attempt_of(&row)?;
        attempts.entry(attempt.job_id).or_default().push(attempt);
    }
    let signals = waits::read(conn, &delete::awaited(go.iter().copied())).await?;
    let mut rows = Vec::with_capacity(go.len());
    for EndedRow { job, has_success, .. } in go {
        let most = ARCHIVED_ATTEMPTS_MAX - usize::from(*has_success);
        let last = attempts.get(&job.id).map(|all| &all[all.len().saturating_sub(most)..]);
        let attempts = last.map_or(Ok(Value::Json(None)), attempts::write)?;
        let signal = signals.get(&job.id).map_or(Ok(Value::Json(None)), json_of)?;
        rows.push((job.id, attempts, signal));
    }
    // MariaDB cuts a text in a UNION at 65,535 bytes: what is longer is copied alone.
    let is_long = |value: &Value| value.bytes() > usize::from(u16::MAX);
    let (long, others): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, attempts, signal)| is_long(attempts) || is_long(signal));
    let bind = |(id, attempts, signal): &(JobId, Value, Value), values: &mut Vec<Value>| {
        values.extend([(*id).into(), attempts.clone(), signal.clone(), now.into()]);
    };
    conn.run_each(&COPY, &others, bind).await?;
    for one in long {
        conn.run_each(&COPY, &[one], bind).await?;
    }
    conn.run_each(&TAG_ARCHIVED, &delete::tags(go.iter().copied()), delete::bind_tag).await?;
    Ok(())
}
