//! Looking at what is there.

use ratchet_core::flow::{Workflow, WorkflowStep};
use ratchet_core::page::{JobCursor, JobFilter, PAGE_LIMIT_MAX, Page};
use ratchet_core::record::Timing;
use ratchet_core::store::StateCounts;
use ratchet_core::{
    AttemptRecord, AttemptStatus, ErrorKind, InvalidInput, JobId, JobRecord, JobState, Kind, StepName, StoreError,
};

use crate::conn::Conn;
use crate::edges;
use crate::read::{record_columns, record_of};
use crate::row::Row;
use crate::stmt::Stmt;
use crate::value::Value;
use uuid::Uuid;

pub(crate) const STATEMENTS: &[Stmt] = &[
    LIST_ALL,
    LIST_BY_TAG,
    LIST_BY_BUSINESS_KEY,
    LIST_BY_PARENT,
    LIST_LIVE,
    LIST_TERMINAL,
    COUNT_LIVE,
    COUNT_TERMINAL,
    ATTEMPTS,
    ALERT_COUNT,
    STEPS,
    WORKFLOWS,
];

/// The columns, then the tables that lead, then what narrows, in the order of [`narrow`].
macro_rules! list {
    ($lead:literal, $id:literal) => {
        concat!(
            "SELECT ",
            record_columns!(),
            " FROM ",
            $lead,
            " AND ",
            $id,
            " < ? AND (? IS NULL OR j.kind = ?) AND (? IS NULL OR j.queue = ?) \
             AND (? IS NULL OR j.business_key = ?) AND (? IS NULL OR j.depends_on = ?) ORDER BY ",
            $id,
            " DESC LIMIT ?"
        )
    };
}

const LIST_ALL: Stmt = Stmt::shared(
    "listing jobs",
    list!("scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE 1 = 1", "j.job_id"),
);

// Few jobs have a given tag or business key, so the index of these leads.
const LIST_BY_TAG: Stmt = Stmt::shared(
    "listing jobs by tag",
    list!(
        "scheduler_job_tag t JOIN scheduler_job j ON j.job_id = t.job_id \
         LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id \
         WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND t.tag = ?",
        "t.job_id"
    ),
);

const LIST_BY_BUSINESS_KEY: Stmt = Stmt::shared(
    "listing jobs by business key",
    list!(
        "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id \
         WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND j.business_key = ?",
        "j.job_id"
    ),
);

const LIST_BY_PARENT: Stmt = Stmt::shared(
    "listing the children of a job",
    list!(
        "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id \
         WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND j.depends_on = ?",
        "j.job_id"
    ),
)
.mysql(list!(
    "scheduler_job_child c JOIN scheduler_job j ON j.job_id = c.job_id \
     LEFT JOIN scheduler_job_queue q ON q.job_id = c.job_id \
     WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND c.parent_id = ?",
    "c.job_id"
));

const LIST_LIVE: Stmt = Stmt::shared(
    "listing live jobs",
    list!("scheduler_job_queue q JOIN scheduler_job j ON j.job_id = q.job_id WHERE q.status = ?", "q.job_id"),
);

const LIST_TERMINAL: Stmt = Stmt::shared(
    "listing ended jobs",
    list!(
        "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.terminal_status = ?",
        "j.job_id"
    ),
);

/// A page of jobs, newest first.
pub async fn list(
    conn: &mut dyn Conn,
    filter: &JobFilter,
    after: Option<JobCursor>,
    limit: usize,
) -> Result<Page<JobRecord>, StoreError> {
    check_limit(limit)?;
    let states = if filter.states.is_empty() { JobState::ALL.to_vec() } else { filter.states.clone() };
    let rest = narrow(filter, after, limit);
    let lead = match (&filter.tag, &filter.business_key, &filter.parent) {
        (Some(tag), _, _) => Some((&LIST_BY_TAG, Value::from(tag.as_str()))),
        (None, Some(key), _) => Some((&LIST_BY_BUSINESS_KEY, key.as_str().into())),
        (None, None, Some(parent)) => Some((&LIST_BY_PARENT, (*parent).into())),
        (None, None, None) => None,
    };
    let mut jobs = Vec::new();
    if let Some((stmt, lead)) = lead {
        // All seven states fit in one list; it is padded by hand because values follow it.
        let mut values: Vec<Value> = states.iter().map(|state| (*state).into()).collect();
        values.resize(LIST_STATES, states[0].into());
        values.push(lead);
        values.extend(rest);
        let text = conn.texts().render(stmt, LIST_STATES);
        collect(&mut jobs, &conn.fetch(stmt.doing(), text, values).await?)?;
    } else if filter.states.is_empty() {
        collect(&mut jobs, &conn.rows(&LIST_ALL, rest).await?)?;
    } else {
        for state in states {
            let mut values = vec![state.into()];
            values.extend_from_slice(&rest);
            let stmt = if state.is_terminal() { &LIST_TERMINAL } else { &LIST_LIVE };
            collect(&mut jobs, &conn.rows(stmt, values).await?)?;
        }
        jobs.sort_unstable_by_key(|job| std::cmp::Reverse(job.id));
        jobs.dedup_by_key(|job| job.id);
    }
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = jobs.last().filter(|_| more).map(|job| JobCursor(job.id));
    Ok(Page { items: jobs, next })
}

const LIST_STATES: usize = JobState::ALL.len().next_power_of_two();

/// The values of what narrows every list; one row more than asked for tells whether there is a next page.
fn narrow(filter: &JobFilter, after: Option<JobCursor>, limit: usize) -> Vec<Value> {
    let kind = || Value::opt_text(filter.kind.as_ref().map(AsRef::as_ref));
    let queue = || Value::opt_text(filter.queue.as_ref().map(AsRef::as_ref));
    let key = || Value::opt_text(filter.business_key.as_ref().map(AsRef::as_ref));
    // Without a cursor the page begins after an id that is higher than all.
    let before = after.map_or_else(|| Value::Id(Some(Uuid::max())), |cursor| cursor.0.into());
    let parent = || Value::Id(filter.parent.map(|id| id.0));
    vec![before, kind(), kind(), queue(), queue(), key(), key(), parent(), parent(), Value::count(limit + 1)]
}

fn collect(jobs: &mut Vec<JobRecord>, rows: &[crate::row::Row]) -> Result<(), StoreError> {
    for row in rows {
        jobs.push(record_of(row)?);
    }
    Ok(())
}

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
pub async fn count_by_state(conn: &mut dyn Conn) -> Result<StateCounts, StoreError> {
    let mut counts = StateCounts::new();
    for stmt in [&COUNT_LIVE, &COUNT_TERMINAL] {
        for row in conn.rows(stmt, vec![]).await? {
            let mut fields = row.fields();
            counts.insert(fields.state("state")?, fields.number("jobs")?);
        }
    }
    Ok(counts)
}

const ATTEMPTS: Stmt = Stmt::shared(
    "reading the attempts of a job",
    "SELECT job_id, version, attempt, node_id, status, started_at, ended_at, duration_us, queue_wait_us, error_class, \
     error_message FROM scheduler_job_execution WHERE job_id = ? ORDER BY version",
);

/// The attempts of a job, the first first.
pub async fn attempts(conn: &mut dyn Conn, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
    let status_of = |name: &str| {
        AttemptStatus::from_name(name).ok_or_else(|| InvalidInput::new("status", "is unknown to this version"))
    };
    let rows = conn.rows(&ATTEMPTS, vec![id.into()]).await?;
    rows.iter()
        .map(|row| {
            let mut fields = row.fields();
            Ok(AttemptRecord {
                job_id: fields.job_id("job_id")?,
                version: fields.number("version")?,
                attempt: fields.number("attempt")?,
                node: fields.node_id("node_id")?,
                status: fields.parsed("status", status_of)?,
                timing: Timing {
                    started_at: fields.time("started_at")?,
                    ended_at: fields.time("ended_at")?,
                    duration: fields.duration("duration_us")?,
                    queue_wait: fields.duration("queue_wait_us")?,
                },
                error_class: fields.opt_text("error_class")?.map(str::to_owned),
                error: fields.opt_text("error_message")?.map(str::to_owned),
            })
        })
        .collect()
}

const ALERT_COUNT: Stmt = Stmt::shared(
    "counting the alerts of a job",
    "SELECT COALESCE(SUM(alert_count), 0) AS alerts FROM scheduler_dlq_alert WHERE job_id = ?",
)
// A sum is a decimal there.
.mysql("SELECT CAST(COALESCE(SUM(alert_count), 0) AS SIGNED) AS alerts FROM scheduler_dlq_alert WHERE job_id = ?");

pub(crate) fn check_limit(limit: usize) -> Result<(), StoreError> {
    if (1..=PAGE_LIMIT_MAX).contains(&limit) {
        return Ok(());
    }
    let problem = format!("limit is {limit}; use 1 to {PAGE_LIMIT_MAX}");
    Err(StoreError::new(ErrorKind::Invalid, "listing jobs", problem))
}

const WORKFLOWS: Stmt = Stmt::shared(
    "listing workflows",
    "SELECT workflow_id FROM scheduler_workflow_condition WHERE workflow_id < ? GROUP BY workflow_id \
     ORDER BY workflow_id DESC LIMIT ?",
);

/// The ids of workflows, newest first.
pub async fn workflows(conn: &mut dyn Conn, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
    check_limit(limit)?;
    let before = after.map_or_else(|| Value::Id(Some(Uuid::max())), |cursor| cursor.0.into());
    let rows = conn.rows(&WORKFLOWS, vec![before, Value::count(limit + 1)]).await?;
    let mut items = rows.iter().map(|row| row.fields().job_id("workflow_id")).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().copied().filter(|_| more).map(JobCursor);
    Ok(Page { items, next })
}

// The steps are found by their edges: an index over the workflows of all jobs would have an entry for each.
const STEPS: Stmt = Stmt::shared(
    "reading the steps of a workflow",
    "SELECT j.job_id AS job_id, j.step_name AS step_name, j.kind AS kind, j.job_type AS job_type, \
     COALESCE(q.status, j.terminal_status) AS state, \
     CASE WHEN q.job_id IS NULL THEN j.terminal_error ELSE q.last_error END AS last_error, \
     j.canceled_because AS canceled_because \
     FROM (SELECT parent_job_id AS job_id FROM scheduler_workflow_condition WHERE workflow_id = ? \
     UNION SELECT child_job_id AS job_id FROM scheduler_workflow_condition WHERE workflow_id = ?) m \
     JOIN scheduler_job j ON j.job_id = m.job_id LEFT JOIN scheduler_job_queue q ON q.job_id = m.job_id \
     ORDER BY j.job_id",
);

/// A workflow with all its steps and edges.
pub async fn workflow(conn: &mut dyn Conn, id: JobId) -> Result<Option<Workflow>, StoreError> {
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
            error: fields.opt_text("last_error")?.map(str::to_owned),
            canceled_because: fields.opt_job_id("canceled_because")?,
        })
    };
    let steps = rows.iter().map(step).collect::<Result<Vec<_>, StoreError>>()?;
    Ok(Some(Workflow { id, steps, edges: edges::of_workflows(conn, &[id]).await? }))
}

/// How many alerts were recorded for a job.
pub async fn alert_count(conn: &mut dyn Conn, id: JobId) -> Result<u64, StoreError> {
    match conn.row(&ALERT_COUNT, vec![id.into()]).await? {
        Some(row) => row.fields().number("alerts"),
        None => Ok(0),
    }
}
