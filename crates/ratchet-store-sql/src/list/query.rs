//! Looking at what is there.

use ratchet_core::flow::{Workflow, WorkflowStep};
use ratchet_core::page::{self, JobCursor, Page};
use ratchet_core::record::AttemptTiming;
use ratchet_core::store::{LastAttempts, StateCounts};
use ratchet_core::{
    AttemptRecord, AttemptStatus, InvalidInput, JobId, JobState, Kind, Principal, StepName, StoreError,
};

use crate::flow::edges;
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;
use uuid::Uuid;

pub(crate) const STATEMENTS: &[Stmt] =
    &[COUNT_LIVE, COUNT_TERMINAL, COUNT_OF, ATTEMPTS, LAST_ATTEMPTS, COUNT_ATTEMPTS, ALERT_COUNT, STEPS, WORKFLOWS];

const COUNT_LIVE: Stmt = Stmt::shared(
    "counting live jobs",
    "SELECT status AS state, COUNT(*) AS jobs FROM scheduler_job_queue GROUP BY status",
);

const COUNT_TERMINAL: Stmt = Stmt::shared(
    "counting ended jobs",
    "SELECT terminal_status AS state, COUNT(*) AS jobs FROM scheduler_job \
     WHERE terminal_status IS NOT NULL GROUP BY terminal_status",
);

/// How many jobs stand where.
pub(crate) async fn count_by_state(conn: &mut dyn Conn) -> Result<StateCounts, StoreError> {
    let mut rows = conn.rows(&COUNT_LIVE, vec![]).await?;
    rows.extend(conn.rows(&COUNT_TERMINAL, vec![]).await?);
    rows.iter().map(count_of).collect()
}

// The jobs of a principal are found first, and are few beside all.
const COUNT_OF: Stmt = Stmt::shared(
    "counting the jobs of a principal",
    "SELECT COALESCE(q.status, j.terminal_status) AS state, COUNT(*) AS jobs FROM scheduler_job j \
     LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.caller_principal = ? \
     GROUP BY COALESCE(q.status, j.terminal_status)",
);

/// How many jobs of a principal stand where.
pub(crate) async fn count_by_state_of(conn: &mut dyn Conn, principal: &Principal) -> Result<StateCounts, StoreError> {
    let rows = conn.rows(&COUNT_OF, vec![principal.as_str().into()]).await?;
    rows.iter().map(count_of).collect()
}

fn count_of(row: &Row) -> Result<(JobState, u64), StoreError> {
    let mut fields = row.fields();
    Ok((fields.state("state")?, fields.number("jobs")?))
}

/// The attempt that the row of a job describes, in the columns of the others: `j` is the row. The columns have their types from the
/// others, which come first in a union.
macro_rules! success_in_row {
    () => {
        "SELECT j.job_id AS job_id, j.version - 1 AS version, j.total_attempts AS attempt, j.ended_by AS node_id, \
         j.terminal_status AS status, j.execution_start_time AS started_at, j.execution_end_time AS ended_at, \
         j.execution_duration_us AS duration_us, j.queue_wait_us AS queue_wait_us, NULL AS error_class, \
         NULL AS error_message FROM scheduler_job j WHERE j.ended_by IS NOT NULL"
    };
}

const ATTEMPTS: Stmt = Stmt::shared(
    "reading the attempts of a job",
    concat!(
        "SELECT /*columns:attempt.plain,attempt.error*/ FROM scheduler_job_execution WHERE job_id = ? UNION ALL ",
        success_in_row!(),
        " AND j.job_id = ? ORDER BY version"
    ),
);

/// The attempts of a job, the first first.
pub(crate) async fn attempts(conn: &mut dyn Conn, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
    conn.rows(&ATTEMPTS, vec![id.into(), id.into()]).await?.iter().map(attempt_of).collect()
}

const LAST_ATTEMPTS: Stmt = Stmt::shared(
    "reading the last attempts of a job",
    concat!(
        "SELECT /*columns:attempt.plain,attempt.error*/ FROM (SELECT /*columns:attempt.plain,attempt.error*/ \
         FROM scheduler_job_execution WHERE job_id = ? AND version < ? ORDER BY version DESC LIMIT ?) AS recorded \
         UNION ALL ",
        success_in_row!(),
        " AND j.job_id = ? AND j.version <= ? ORDER BY version DESC LIMIT ?"
    ),
);

const COUNT_ATTEMPTS: Stmt = Stmt::shared(
    "counting the attempts of a job",
    "SELECT (SELECT COUNT(*) FROM scheduler_job_execution WHERE job_id = ?) \
     + (SELECT COUNT(*) FROM scheduler_job WHERE job_id = ? AND ended_by IS NOT NULL) AS attempts",
);

/// The last attempts of a job before that of a version.
pub(crate) async fn last_attempts(
    conn: &mut dyn Conn,
    id: JobId,
    before: Option<u64>,
    limit: usize,
) -> Result<LastAttempts, StoreError> {
    check_limit(limit)?;
    let count = conn.row(&COUNT_ATTEMPTS, vec![id.into(), id.into()]).await?;
    let total = count.map_or(Ok(0), |row| row.fields().number("attempts"))?;
    let values = [id.into(), Value::count(before.unwrap_or(u64::MAX)), Value::count(limit)];
    let values = [values.clone(), values].concat();
    let rows = conn.rows(&LAST_ATTEMPTS, values).await?;
    Ok(LastAttempts { items: rows.iter().map(attempt_of).collect::<Result<_, _>>()?, total })
}

/// The record of a row of an attempt's columns.
pub(crate) fn attempt_of(row: &Row) -> Result<AttemptRecord, StoreError> {
    let status_of = |name: &str| {
        AttemptStatus::from_name(name).ok_or_else(|| InvalidInput::new("status", "is unknown to this version"))
    };
    let mut fields = row.fields();
    Ok(AttemptRecord {
        job_id: fields.job_id("job_id")?,
        version: fields.number("version")?,
        attempt: fields.number("attempt")?,
        node: fields.node_id("node_id")?,
        status: fields.parsed("status", status_of)?,
        timing: AttemptTiming {
            started_at: fields.time("started_at")?,
            ended_at: fields.time("ended_at")?,
            duration: fields.duration("duration_us")?,
            queue_wait: fields.duration("queue_wait_us")?,
        },
        error_class: fields.opt_text("error_class")?.map(str::to_owned),
        error: fields.opt_text("error_message")?.map(str::to_owned),
    })
}

const ALERT_COUNT: Stmt = Stmt::shared(
    "counting the alerts of a job",
    "SELECT COALESCE(SUM(alert_count), 0) AS alerts FROM scheduler_dlq_alert WHERE job_id = ?",
)
// A sum is a decimal there.
.mysql("SELECT CAST(COALESCE(SUM(alert_count), 0) AS SIGNED) AS alerts FROM scheduler_dlq_alert WHERE job_id = ?");

pub(crate) fn check_limit(limit: usize) -> Result<(), StoreError> {
    page::check_limit(limit).map_err(|error| StoreError::refused("listing jobs", error))
}

// The edges of a schedule's queue name the schedule, which is no job.
const WORKFLOWS: Stmt = Stmt::shared(
    "listing workflows",
    "SELECT e.workflow_id AS workflow_id FROM scheduler_workflow_condition e WHERE e.workflow_id < ? \
     AND (EXISTS (SELECT 1 FROM scheduler_job j WHERE j.job_id = e.workflow_id) \
     OR EXISTS (SELECT 1 FROM scheduler_job_archive a WHERE a.job_id = e.workflow_id)) \
     GROUP BY e.workflow_id ORDER BY e.workflow_id DESC LIMIT ?",
);

/// The ids of workflows, newest first.
pub(crate) async fn workflows(
    conn: &mut dyn Conn,
    after: Option<JobCursor>,
    limit: usize,
) -> Result<Page<JobId>, StoreError> {
    check_limit(limit)?;
    let before = after.map_or_else(|| Value::Id(Some(Uuid::max())), |cursor| cursor.0.into());
    let rows = conn.rows(&WORKFLOWS, vec![before, Value::count(limit + 1)]).await?;
    let mut items = rows.iter().map(|row| row.fields().job_id("workflow_id")).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().copied().filter(|_| more).map(JobCursor);
    Ok(Page { items, next })
}

// The steps are found by their edges: an index over the workflows of all jobs would have an entry for each. Some of them may
// be in the archive already.
const STEPS: Stmt = Stmt::shared(
    "reading the steps of a workflow",
    "SELECT m.job_id AS job_id, COALESCE(j.step_name, a.step_name) AS step_name, COALESCE(j.kind, a.kind) AS kind, \
     COALESCE(j.job_type, a.job_type) AS job_type, \
     COALESCE(q.status, j.terminal_status, a.terminal_status) AS state, \
     q.paused_from_status AS paused_from_status, \
     CASE WHEN q.job_id IS NOT NULL THEN q.last_error WHEN j.job_id IS NOT NULL THEN j.terminal_error \
     ELSE a.terminal_error END AS last_error, COALESCE(j.canceled_because, a.canceled_because) AS canceled_because \
     FROM (SELECT parent_job_id AS job_id FROM scheduler_workflow_condition WHERE workflow_id = ? \
     UNION SELECT child_job_id AS job_id FROM scheduler_workflow_condition WHERE workflow_id = ?) m \
     LEFT JOIN scheduler_job j ON j.job_id = m.job_id LEFT JOIN scheduler_job_queue q ON q.job_id = m.job_id \
     LEFT JOIN scheduler_job_archive a ON a.job_id = m.job_id \
     WHERE j.job_id IS NOT NULL OR a.job_id IS NOT NULL ORDER BY m.job_id",
);

/// A workflow with all its steps and edges.
pub(crate) async fn workflow(conn: &mut dyn Conn, id: JobId) -> Result<Option<Workflow>, StoreError> {
    let rows = conn.rows(&STEPS, vec![id.into(), id.into()]).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let step = |row: &Row| {
        let mut fields = row.fields();
        Ok(WorkflowStep {
            id: fields.job_id("job_id")?,
            step: fields.opt_parsed("step_name", StepName::new)?,
            kind: fields.parsed("kind", Kind::new)?,
            job_type: fields.parsed("job_type", str::parse)?,
            state: fields.state("state")?,
            paused_from: fields.opt_state("paused_from_status")?,
            error: fields.opt_text("last_error")?.map(str::to_owned),
            canceled_because: fields.opt_job_id("canceled_because")?,
        })
    };
    let steps = rows.iter().map(step).collect::<Result<Vec<_>, StoreError>>()?;
    Ok(Some(Workflow { id, steps, edges: edges::of_workflows(conn, &[id]).await? }))
}

/// How many alerts were recorded for a job.
pub(crate) async fn alert_count(conn: &mut dyn Conn, id: JobId) -> Result<u64, StoreError> {
    match conn.row(&ALERT_COUNT, vec![id.into()]).await? {
        Some(row) => row.fields().number("alerts"),
        None => Ok(0),
    }
}
