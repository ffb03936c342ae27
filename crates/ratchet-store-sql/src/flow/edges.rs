//! The edges of workflows: storing them, reading them, deciding them.

use jiff::Timestamp;
use ratchet_core::control::TiedChild;
use ratchet_core::flow::{Condition, Edge, EdgeState};
use ratchet_core::{ErrorKind, InvalidInput, JobId, StoreError};

use crate::job_row::json_of;
use crate::waist::conn::Conn;
use crate::waist::dialect::Dialect;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[
    STORE_EDGES,
    EDGES_FROM,
    EDGES_TO,
    LATEST_EDGES_FROM,
    LATEST_OPEN_EDGES,
    ISOLATION,
    EDGES_OF_WORKFLOWS,
    OPEN_EDGES_OF_WORKFLOWS,
    STILL_OPEN,
    DECIDE_EDGES,
    NEEDED_BY,
    TIED_CHILDREN,
    DELETE_EDGES_FROM,
    DELETE_EDGES_TO,
];

const STORE_EDGES: Stmt = Stmt::shared(
    "storing the edges of workflows",
    "INSERT INTO scheduler_workflow_condition (/*columns:edge*/, created_at) /*rows:@edge time*/",
);

/// Stores the edges of jobs that were just stored.
pub(crate) async fn store(conn: &mut dyn Conn, edges: &[&Edge], now: Timestamp) -> Result<(), StoreError> {
    let mut rows = Vec::with_capacity(edges.len());
    for edge in edges {
        let test = edge.condition.test().map_or(Ok(Value::Json(None)), json_of)?;
        rows.push((*edge, test));
    }
    conn.run_each(&STORE_EDGES, &rows, |(edge, test), values| {
        values.extend([
            edge.parent.into(),
            edge.child.into(),
            edge.workflow.into(),
            edge.condition.as_str().into(),
            test.clone(),
            Value::opt_text(edge.description.as_deref()),
            Value::Int(Some(i64::from(edge.priority))),
            Value::count(edge.order),
            Value::from(edge.exclusive),
            edge.state.as_str().into(),
            now.into(),
        ]);
    })
    .await?;
    Ok(())
}

macro_rules! edges {
    ($which:literal) => {
        concat!("SELECT /*columns:edge*/ FROM scheduler_workflow_condition WHERE ", $which)
    };
}

const EDGES_FROM: Stmt = Stmt::shared("reading the edges from jobs", edges!("parent_job_id /*any*/"));

/// The edges that begin at jobs.
pub(crate) async fn from(conn: &mut dyn Conn, parents: &[JobId]) -> Result<Vec<Edge>, StoreError> {
    let rows = conn.rows_in(&EDGES_FROM, &[], parents).await?;
    let mut edges = rows.iter().map(edge_of).collect::<Result<Vec<_>, _>>()?;
    edges.sort_by_key(|edge| (edge.parent, edge.order));
    Ok(edges)
}

const EDGES_TO: Stmt = Stmt::shared("reading the edges to jobs", edges!("child_job_id /*any*/"));

/// The edges that lead to jobs.
pub(crate) async fn to(conn: &mut dyn Conn, children: &[JobId]) -> Result<Vec<Edge>, StoreError> {
    conn.rows_in(&EDGES_TO, &[], children).await?.iter().map(edge_of).collect()
}

// A caller's transaction on MySQL may be REPEATABLE READ, where only a locking read sees what was committed since it began:
// a fire that waits for this job, a step that was brought back. Not otherwise: in a cascade these locks would go against the
// order of all others.
const LATEST_EDGES_FROM: Stmt =
    Stmt::only_mysql("reading the latest edges from jobs", edges!("parent_job_id /*any*/ FOR UPDATE"));

const LATEST_OPEN_EDGES: Stmt = Stmt::only_mysql(
    "reading the latest open edges of workflows",
    edges!("workflow_id /*any*/ AND status = 'OPEN' FOR UPDATE"),
);

const ISOLATION: Stmt = Stmt::only_postgres(
    "asking for the isolation of a transaction",
    "SELECT current_setting('transaction_isolation') AS isolation",
);

/// The edges that begin at jobs that have just ended; in a caller's transaction the latest, whatever its isolation.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) in a caller's transaction on PostgreSQL that does not see what was committed since it
/// began: there is no way to see it then.
pub(crate) async fn from_ended(conn: &mut dyn Conn, parents: &[JobId]) -> Result<Vec<Edge>, StoreError> {
    if !conn.is_callers() {
        return from(conn, parents).await;
    }
    match conn.dialect() {
        Dialect::Sqlite => from(conn, parents).await,
        Dialect::Mysql | Dialect::Mariadb => {
            let rows = conn.rows_in(&LATEST_EDGES_FROM, &[], parents).await?;
            rows.iter().map(edge_of).collect()
        }
        Dialect::Postgres => {
            let row = conn.row(&ISOLATION, vec![]).await?;
            let isolation = row.as_ref().map(|row| row.fields().text("isolation").map(str::to_owned)).transpose()?;
            match isolation.as_deref() {
                Some("read committed") | None => from(conn, parents).await,
                Some(other) => {
                    let problem = format!(
                        "other jobs wait for this one, and your transaction is {}, which does not see those that came \
                         since it began; complete it in a transaction that is READ COMMITTED",
                        other.to_ascii_uppercase()
                    );
                    Err(StoreError::new(ErrorKind::Invalid, "completing a job in its handler's transaction", problem))
                }
            }
        }
    }
}

const EDGES_OF_WORKFLOWS: Stmt = Stmt::shared("reading the edges of workflows", edges!("workflow_id /*any*/"));

/// All edges of workflows, in the order of their definition.
pub(crate) async fn of_workflows(conn: &mut dyn Conn, workflows: &[JobId]) -> Result<Vec<Edge>, StoreError> {
    let rows = conn.rows_in(&EDGES_OF_WORKFLOWS, &[], workflows).await?;
    let mut edges = rows.iter().map(edge_of).collect::<Result<Vec<_>, _>>()?;
    edges.sort_by_key(|edge| (edge.workflow, edge.order));
    Ok(edges)
}

const OPEN_EDGES_OF_WORKFLOWS: Stmt =
    Stmt::shared("reading the open edges of workflows", edges!("workflow_id /*any*/ AND status = 'OPEN'"));

/// The edges of workflows that are not decided: all that can still follow from anything.
pub(crate) async fn open_of_workflows(conn: &mut dyn Conn, workflows: &[JobId]) -> Result<Vec<Edge>, StoreError> {
    let latest = conn.is_callers() && conn.dialect().reads_a_snapshot();
    let stmt = if latest { LATEST_OPEN_EDGES } else { OPEN_EDGES_OF_WORKFLOWS };
    conn.rows_in(&stmt, &[], workflows).await?.iter().map(edge_of).collect()
}

const STILL_OPEN: Stmt = Stmt::shared(
    "looking for jobs with open edges to them",
    "SELECT child_job_id FROM scheduler_workflow_condition WHERE child_job_id /*any*/ AND status = 'OPEN'",
);

/// Which of these jobs have something before them that has not ended.
pub(crate) async fn still_open(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<JobId>, StoreError> {
    let rows = conn.rows_in(&STILL_OPEN, &[], ids).await?;
    rows.iter().map(|row| row.fields().job_id("child_job_id")).collect()
}

fn edge_of(row: &Row) -> Result<Edge, StoreError> {
    let mut fields = row.fields();
    let (parent, child) = (fields.job_id("parent_job_id")?, fields.job_id("child_job_id")?);
    let workflow = fields.job_id("workflow_id")?;
    let name = fields.text("condition_type")?;
    let test = fields.opt_parsed("condition_expression", serde_json::from_str)?;
    let condition = Condition::from_parts(name, test).ok_or_else(|| {
        let problem = format!("the condition from {parent} to {child} is {name}, which this version does not know");
        StoreError::new(ErrorKind::Invalid, "reading edges", problem)
    })?;
    let description = fields.opt_text("description")?.map(str::to_owned);
    let priority = fields.int("condition_priority")?;
    let state_of = |name: &str| {
        EdgeState::from_name(name).ok_or_else(|| InvalidInput::new("status", "is unknown to this version"))
    };
    Ok(Edge {
        workflow,
        parent,
        child,
        condition,
        description,
        priority: i32::try_from(priority).unwrap_or(i32::MAX),
        order: fields.number("definition_order")?,
        exclusive: fields.bool("exclusive")?,
        state: fields.parsed("status", state_of)?,
    })
}

const DECIDE_EDGES: Stmt = Stmt::shared(
    "deciding edges",
    "WITH v (parent_job_id, child_job_id, status) AS (/*rows:id id text*/) \
     UPDATE scheduler_workflow_condition SET status = v.status FROM v \
     WHERE scheduler_workflow_condition.parent_job_id = v.parent_job_id \
     AND scheduler_workflow_condition.child_job_id = v.child_job_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS parent_job_id, CAST(? AS BINARY(16)) AS child_job_id, \
     ? AS status/*end*/) v STRAIGHT_JOIN scheduler_workflow_condition e FORCE INDEX (PRIMARY) \
     ON e.parent_job_id = v.parent_job_id AND e.child_job_id = v.child_job_id SET e.status = v.status",
);

/// Writes what has become of edges.
pub(crate) async fn decide(conn: &mut dyn Conn, edges: &[(JobId, JobId, EdgeState)]) -> Result<(), StoreError> {
    conn.run_each(&DECIDE_EDGES, edges, |(parent, child, state), values| {
        values.extend([(*parent).into(), (*child).into(), state.as_str().into()]);
    })
    .await?;
    Ok(())
}

const NEEDED_BY: Stmt = Stmt::shared(
    "looking for live jobs that need one",
    "SELECT e.child_job_id AS child_job_id FROM scheduler_workflow_condition e \
     JOIN scheduler_job_queue q ON q.job_id = e.child_job_id WHERE e.parent_job_id = ? LIMIT 1",
);

/// A live job that waits for this one or has its input from it.
pub(crate) async fn needed_by(conn: &mut dyn Conn, id: JobId) -> Result<Option<JobId>, StoreError> {
    let row = conn.row(&NEEDED_BY, vec![id.into()]).await?;
    row.map(|row| row.fields().job_id("child_job_id")).transpose()
}

const TIED_CHILDREN: Stmt = Stmt::shared(
    "reading the jobs after one",
    "SELECT e.child_job_id AS child_job_id, e.condition_type AS condition_type, j.terminal_status AS ended, \
     c.job_id AS cause, c.terminal_status AS cause_ended FROM scheduler_workflow_condition e \
     JOIN scheduler_job j ON j.job_id = e.child_job_id LEFT JOIN scheduler_job c ON c.job_id = j.canceled_because \
     WHERE e.parent_job_id = ?",
);

/// A job that needs this one when it is retried, or when the one is that had canceled it.
pub(crate) async fn needed_again_by(conn: &mut dyn Conn, id: JobId) -> Result<Option<JobId>, StoreError> {
    for row in conn.rows(&TIED_CHILDREN, vec![id.into()]).await? {
        let mut fields = row.fields();
        let child = TiedChild {
            id: fields.job_id("child_job_id")?,
            awaits_end: fields.text("condition_type")? == Condition::Ended.as_str(),
            ended: fields.opt_state("ended")?,
            canceled_because: fields.opt_job_id("cause")?.zip(Some(fields.opt_state("cause_ended")?)),
        };
        if child.needs_again(id) {
            return Ok(Some(child.id));
        }
    }
    Ok(None)
}

const DELETE_EDGES_FROM: Stmt =
    Stmt::shared("deleting edges from a job", "DELETE FROM scheduler_workflow_condition WHERE parent_job_id = ?");

const DELETE_EDGES_TO: Stmt =
    Stmt::shared("deleting edges to a job", "DELETE FROM scheduler_workflow_condition WHERE child_job_id = ?");

/// Deletes the edges of a job that is deleted.
pub(crate) async fn delete(conn: &mut dyn Conn, id: JobId) -> Result<(), StoreError> {
    conn.run(&DELETE_EDGES_FROM, vec![id.into()]).await?;
    conn.run(&DELETE_EDGES_TO, vec![id.into()]).await?;
    Ok(())
}
