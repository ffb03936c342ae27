//! Nodes, what they run and what they leave behind.

use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::node::{NodeRecord, NodeRegistration};
use ratchet_core::store::{Orphans, Progress, Running};
use ratchet_core::{ErrorKind, JobId, JsonText, NodeId, NodeName, StoreError};

use crate::conn::Conn;
use crate::read;
use crate::stmt::Stmt;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[
    DATABASE_TIME,
    REGISTER,
    DEREGISTER,
    BEAT,
    NODES,
    WRITE_PROGRESS,
    RUNNING,
    IS_ALIVE,
    SILENT_NODES,
    DECLARE_DEAD,
    EMPTY_DEAD_NODES,
    REMOVE_NODES,
    ORPHANS,
];

const DATABASE_TIME: Stmt = Stmt::shared("reading the database's time", "SELECT /*now*/ AS now");

/// The database's time.
pub async fn database_time(conn: &mut dyn Conn) -> Result<Timestamp, StoreError> {
    match conn.row(&DATABASE_TIME, vec![]).await? {
        Some(row) => row.fields().time("now"),
        None => Err(StoreError::new(ErrorKind::Invalid, DATABASE_TIME.doing(), "the database gave no row")),
    }
}

const REGISTER: Stmt = Stmt::per_dialect(
    "registering a node",
    "INSERT INTO scheduler_node (node_id, name, node_info, started_at, last_heartbeat) \
     VALUES (?, ?, ?, /*now*/, /*now*/) \
     ON CONFLICT (node_id) DO UPDATE SET last_heartbeat = excluded.last_heartbeat WHERE dead_at IS NULL",
);

/// Enters a node, alive from now. Doing it twice, after a lost reply, is no error.
pub async fn register(conn: &mut dyn Conn, node: &NodeRegistration) -> Result<(), StoreError> {
    let values = vec![node.id.into(), node.name.as_str().into(), (&node.info).into()];
    if conn.run(&REGISTER, values).await? == 0 {
        let problem = format!("node {} was declared dead; register as a new incarnation", node.id);
        return Err(StoreError::new(ErrorKind::Conflict, REGISTER.doing(), problem));
    }
    Ok(())
}

const DEREGISTER: Stmt = Stmt::shared("deregistering a node", "DELETE FROM scheduler_node WHERE node_id = ?");

/// Removes a node that ends well.
pub async fn deregister(conn: &mut dyn Conn, node: NodeId) -> Result<(), StoreError> {
    conn.run(&DEREGISTER, vec![node.into()]).await?;
    Ok(())
}

const BEAT: Stmt = Stmt::shared(
    "writing a heartbeat",
    "UPDATE scheduler_node SET last_heartbeat = /*now*/ WHERE node_id = ? AND dead_at IS NULL",
);

/// Says that the node lives; `false` if it is not registered or was declared dead.
pub async fn beat(conn: &mut dyn Conn, node: NodeId) -> Result<bool, StoreError> {
    Ok(conn.run(&BEAT, vec![node.into()]).await? == 1)
}

const NODES: Stmt = Stmt::shared(
    "reading nodes",
    "SELECT node_id, name, node_info, started_at, last_heartbeat, dead_at FROM scheduler_node \
     ORDER BY last_heartbeat DESC, node_id",
);

/// All nodes, the most recently heard of first.
pub async fn nodes(conn: &mut dyn Conn) -> Result<Vec<NodeRecord>, StoreError> {
    let rows = conn.rows(&NODES, vec![]).await?;
    rows.iter()
        .map(|row| {
            let mut fields = row.fields();
            Ok(NodeRecord::from_parts(
                fields.node_id("node_id")?,
                fields.parsed("name", NodeName::new)?,
                JsonText::from_store(fields.text("node_info")?),
                fields.time("started_at")?,
                fields.time("last_heartbeat")?,
                fields.opt_time("dead_at")?,
            ))
        })
        .collect()
}

// Each database has its own way to update many rows with a value for each. The version stays: progress is no transition.
const WRITE_PROGRESS: Stmt = Stmt::per_dialect(
    "writing progress",
    "WITH v (job_id, version, node_id, fraction) AS (VALUES /*each*/(?, ?, ?, ?)/*end*/) \
     UPDATE scheduler_job_queue SET progress = v.fraction FROM v \
     WHERE scheduler_job_queue.job_id = v.job_id AND scheduler_job_queue.version = v.version \
     AND picked_by = v.node_id AND status = /*state:running*/",
);

const RUNNING: Stmt = Stmt::shared(
    "reading what a node runs",
    "SELECT job_id, version FROM scheduler_job_queue WHERE status = /*state:running*/ AND picked_by = ?",
);

/// Writes progress and reads what `node` runs according to the store.
pub async fn reconcile(conn: &mut dyn Conn, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
    conn.run_each(&WRITE_PROGRESS, progress, |progress, values| {
        values.extend([
            progress.job_id.into(),
            Value::count(progress.version),
            node.into(),
            Value::Real(Some(progress.fraction)),
        ]);
    })
    .await?;
    let rows = conn.rows(&RUNNING, vec![node.into()]).await?;
    rows.iter()
        .map(|row| {
            let mut fields = row.fields();
            Ok(Running { job_id: fields.job_id("job_id")?, version: fields.number("version")? })
        })
        .collect()
}

const IS_ALIVE: Stmt = Stmt::shared(
    "looking whether the observer is alive",
    "SELECT node_id FROM scheduler_node WHERE node_id = ? AND dead_at IS NULL",
);

const SILENT_NODES: Stmt = Stmt::shared(
    "looking for silent nodes",
    "SELECT node_id FROM scheduler_node WHERE dead_at IS NULL AND last_heartbeat <= /*now*/ - ? AND node_id <> ?",
);

const DECLARE_DEAD: Stmt = Stmt::shared(
    "declaring nodes dead",
    "UPDATE scheduler_node SET dead_at = /*now*/ WHERE dead_at IS NULL AND node_id IN (/*each*/?/*end*/)",
);

const EMPTY_DEAD_NODES: Stmt = Stmt::shared(
    "looking for dead nodes without jobs",
    "SELECT node_id FROM scheduler_node n WHERE dead_at IS NOT NULL AND NOT EXISTS (\
     SELECT 1 FROM scheduler_job_queue q WHERE q.status = /*state:running*/ AND q.picked_by = n.node_id)",
);

const REMOVE_NODES: Stmt =
    Stmt::shared("removing dead nodes", "DELETE FROM scheduler_node WHERE node_id IN (/*each*/?/*end*/)");

// The jobs of a node that ended well, or was removed, are orphans at once; those of one declared dead after the grace.
const ORPHANS: Stmt = Stmt::shared(
    "looking for orphans",
    "SELECT q.job_id AS job_id FROM scheduler_job_queue q LEFT JOIN scheduler_node n ON n.node_id = q.picked_by \
     WHERE q.status = /*state:running*/ \
     AND (n.node_id IS NULL OR (n.dead_at IS NOT NULL AND q.picked_at <= /*now*/ - ?)) \
     ORDER BY q.picked_at, q.job_id LIMIT ?",
);

/// Declares silent nodes dead, removes dead nodes without jobs, and returns jobs whose node is not alive.
///
/// Writes nothing if there is nothing to write.
pub async fn orphans(
    conn: &mut dyn Conn,
    observer: NodeId,
    grace: Duration,
    limit: usize,
) -> Result<Orphans, StoreError> {
    if conn.row(&IS_ALIVE, vec![observer.into()]).await?.is_none() {
        let problem = format!("node {observer} is not registered or was declared dead; it may not judge others");
        return Err(StoreError::new(ErrorKind::Conflict, "looking for orphans", problem));
    }
    let declared_dead = node_ids(conn, &SILENT_NODES, vec![Value::micros(grace), observer.into()]).await?;
    conn.run_in(&DECLARE_DEAD, &[], &declared_dead).await?;
    let rows = conn.rows(&ORPHANS, vec![Value::micros(grace), Value::count(limit)]).await?;
    let ids = rows.iter().map(|row| row.fields().job_id("job_id")).collect::<Result<Vec<JobId>, _>>()?;
    let jobs = read::running(conn, &ids).await?;
    let empty = node_ids(conn, &EMPTY_DEAD_NODES, vec![]).await?;
    conn.run_in(&REMOVE_NODES, &[], &empty).await?;
    Ok(Orphans { declared_dead, jobs })
}

async fn node_ids(conn: &mut dyn Conn, stmt: &Stmt, values: Vec<Value>) -> Result<Vec<NodeId>, StoreError> {
    conn.rows(stmt, values).await?.iter().map(|row| row.fields().node_id("node_id")).collect()
}
