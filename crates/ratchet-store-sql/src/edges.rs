//! The edges of workflows: storing them, reading them, deciding them.

use jiff::Timestamp;
use ratchet_core::flow::{Condition, Edge, EdgeState};
use ratchet_core::{ErrorKind, InvalidInput, JobId, StoreError};

use crate::conn::Conn;
use crate::read::json_of;
use crate::row::Row;
use crate::stmt::Stmt;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[STORE_EDGES, EDGES_FROM, EDGES_OF_WORKFLOWS, DECIDE_EDGES, NEEDED_BY, DELETE_EDGES_FROM, DELETE_EDGES_TO];

const STORE_EDGES: Stmt = Stmt::shared(
    "storing the edges of workflows",
    "INSERT INTO scheduler_workflow_condition (parent_job_id, child_job_id, workflow_id, condition_type, \
     condition_expression, description, condition_priority, definition_order, exclusive, status, created_at) \
     /*rows:id id id text json text int int bool text time*/",
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
        concat!(
            "SELECT parent_job_id, child_job_id, workflow_id, condition_type, condition_expression, description, \
             condition_priority, definition_order, exclusive, status FROM scheduler_workflow_condition WHERE ",
            $which
        )
    };
}

const EDGES_FROM: Stmt = Stmt::shared("reading the edges from jobs", edges!("parent_job_id /*any*/"));

/// The edges that begin at jobs.
pub async fn from(conn: &mut dyn Conn, parents: &[JobId]) -> Result<Vec<Edge>, StoreError> {
    let rows = conn.rows_in(&EDGES_FROM, &[], parents).await?;
    let mut edges = rows.iter().map(edge_of).collect::<Result<Vec<_>, _>>()?;
    edges.sort_by_key(|edge| (edge.parent, edge.order));
    Ok(edges)
}

const EDGES_OF_WORKFLOWS: Stmt = Stmt::shared("reading the edges of workflows", edges!("workflow_id /*any*/"));

/// All edges of workflows, in the order of their definition.
pub async fn of_workflows(conn: &mut dyn Conn, workflows: &[JobId]) -> Result<Vec<Edge>, StoreError> {
    let rows = conn.rows_in(&EDGES_OF_WORKFLOWS, &[], workflows).await?;
    let mut edges = rows.iter().map(edge_of).collect::<Result<Vec<_>, _>>()?;
    edges.sort_by_key(|edge| (edge.workflow, edge.order));
    Ok(edges)
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
