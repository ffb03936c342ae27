//! Nodes, what they run and what they leave behind.

mod cluster_store;
pub(crate) mod lease;
pub(crate) mod queues;
pub(crate) mod resources;
pub(crate) mod breakers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::node::{NodeInfo, NodeRecord, NodeRegistration, NodeVitals};
use ratchet_core::service::NodeServices;
use ratchet_core::store::{Orphans, Progress, Running};
use ratchet_core::{ErrorKind, JobId, NodeId, NodeName, StoreError};
use serde::{Deserialize, Serialize};

use crate::claim::permits;
use crate::job_row;
use crate::submit::all_stored;
use crate::waist::conn::Conn;
use crate::waist::row::Fields;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

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

const REGISTER: Stmt = Stmt::shared(
    "registering a node",
    "INSERT INTO scheduler_node (node_id, name, node_info, started_at, last_heartbeat, running) \
     VALUES (?, ?, ?, /*now*/, /*now*/, 0) /*or_nothing*/",
);

/// Enters a node, alive from now. Doing it twice, after a lost reply, is no error.
pub async fn register(conn: &mut dyn Conn, node: &NodeRegistration) -> Result<(), StoreError> {
    let info = node.info.to_json().map_err(|error| StoreError::refused(REGISTER.doing(), error))?;
    let values = vec![node.id.into(), node.name.as_str().into(), (&info).into()];
    let entered = all_stored(conn.run(&REGISTER, values).await, 1)?;
    if !entered && !beat(conn, node.id, &NodeVitals::default()).await? {
        let problem = format!("node {} was declared dead; register as a new incarnation", node.id);
        return Err(StoreError::new(ErrorKind::Conflict, REGISTER.doing(), problem));
    }
    Ok(())
}

const DEREGISTER: Stmt = Stmt::shared("deregistering a node", "DELETE FROM scheduler_node WHERE node_id = ?");

/// Removes a node that ends well.
pub(crate) async fn deregister(conn: &mut dyn Conn, node: NodeId) -> Result<(), StoreError> {
    conn.run(&DEREGISTER, vec![node.into()]).await?;
    permits::end_of_nodes(conn, &[node]).await
}

/// What is in the column `services`: beside those, how many slots are taken. Nodes of an older version pass over what they do not
/// know, and leave out what they do not tell; so it needs no column of its own.
#[derive(Serialize, Deserialize, Default)]
struct NodeReport<'a> {
    #[serde(flatten)]
    services: Cow<'a, NodeServices>,
    #[serde(default)]
    taken: Cow<'a, [u32]>,
}

const BEAT: Stmt = Stmt::shared(
    "writing a heartbeat",
    "UPDATE scheduler_node SET last_heartbeat = /*now*/, running = ?, clock_skew_us = ?, services = ? \
     WHERE node_id = ? AND dead_at IS NULL",
);

/// Says that the node lives; `false` if it is not registered or was declared dead.
pub async fn beat(conn: &mut dyn Conn, node: NodeId, vitals: &NodeVitals) -> Result<bool, StoreError> {
    let NodeVitals { running, clock_skew_us, services, taken } = vitals;
    let told = NodeReport { services: Cow::Borrowed(services), taken: Cow::Borrowed(taken) };
    let told = if services.is_empty() && taken.is_empty() { Value::Json(None) } else { job_row::json_of(&told)? };
    let values = vec![Value::count(*running), Value::Int(*clock_skew_us), told, node.into()];
    Ok(conn.run(&BEAT, values).await? == 1)
}

const NODES: Stmt = Stmt::shared(
    "reading nodes",
    "SELECT node_id, name, node_info, started_at, last_heartbeat, running, clock_skew_us, services, dead_at \
     FROM scheduler_node ORDER BY last_heartbeat DESC, node_id",
);

/// All nodes, the most recently heard of first.
pub(crate) async fn nodes(conn: &mut dyn Conn) -> Result<Vec<NodeRecord>, StoreError> {
    let rows = conn.rows(&NODES, vec![]).await?;
    rows.iter()
        .map(|row| {
            let mut fields = row.fields();
            Ok(NodeRecord::from_parts(
                fields.node_id("node_id")?,
                NodeName::from_store(fields.text("name")?),
                NodeInfo::from_json(fields.text("node_info")?),
                fields.time("started_at")?,
                fields.time("last_heartbeat")?,
                vitals(&mut fields)?,
                fields.opt_time("dead_at")?,
            ))
        })
        .collect()
}

fn vitals(fields: &mut Fields<'_>) -> Result<NodeVitals, StoreError> {
    let (running, clock_skew_us) = (fields.number("running")?, fields.opt_int("clock_skew_us")?);
    let told: NodeReport<'static> = fields.opt_parsed("services", serde_json::from_str)?.unwrap_or_default();
    let (services, taken) = (told.services.into_owned(), told.taken.into_owned());
    Ok(NodeVitals { running, clock_skew_us, services, taken })
}

// The version stays: progress is no transition. MySQL has no UPDATE … FROM.
const WRITE_PROGRESS: Stmt = Stmt::shared(
    "writing progress",
    "WITH v (job_id, version, node_id, fraction) AS (/*rows:id int id real*/) \
     UPDATE scheduler_job_queue SET progress = v.fraction FROM v \
     WHERE scheduler_job_queue.job_id = v.job_id AND scheduler_job_queue.version = v.version \
     AND picked_by = v.node_id AND status = /*state:running*/",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS version, CAST(? AS BINARY(16)) AS node_id, \
     ? AS fraction/*end*/) v \
     STRAIGHT_JOIN scheduler_job_queue q FORCE INDEX (PRIMARY) ON q.job_id = v.job_id \
     SET q.progress = v.fraction \
     WHERE q.version = v.version AND q.picked_by = v.node_id AND q.status = /*state:running*/",
);

const RUNNING: Stmt = Stmt::shared(
    "reading what a node runs",
    "SELECT job_id, version FROM scheduler_job_queue WHERE status = /*state:running*/ AND picked_by = ?",
);

/// Writes progress and reads what `node` runs according to the store.
pub(crate) async fn reconcile(
    conn: &mut dyn Conn,
    node: NodeId,
    progress: &[Progress],
) -> Result<Vec<Running>, StoreError> {
    // Of several reports about one attempt the last counts; in one statement the database would choose.
    let latest: BTreeMap<(JobId, u64), &Progress> =
        progress.iter().map(|progress| ((progress.job_id, progress.version), progress)).collect();
    let latest: Vec<&Progress> = latest.into_values().collect();
    conn.run_each(&WRITE_PROGRESS, &latest, |progress, values| {
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
    "looking whether a node is alive",
    "SELECT node_id FROM scheduler_node WHERE node_id = ? AND dead_at IS NULL",
);

/// Whether a node is registered and nobody has declared it dead.
pub(crate) async fn is_alive(conn: &mut dyn Conn, node: NodeId) -> Result<bool, StoreError> {
    Ok(conn.row(&IS_ALIVE, vec![node.into()]).await?.is_some())
}

const SILENT_NODES: Stmt = Stmt::shared(
    "looking for silent nodes",
    "SELECT node_id FROM scheduler_node WHERE dead_at IS NULL AND last_heartbeat <= /*ago:?*/ AND node_id <> ? \
     ORDER BY node_id /*skip_locked*/",
);

const DECLARE_DEAD: Stmt = Stmt::shared(
    "declaring nodes dead",
    "UPDATE scheduler_node SET dead_at = /*now*/ WHERE dead_at IS NULL AND node_id /*any*/",
);

const EMPTY_DEAD_NODES: Stmt = Stmt::shared(
    "looking for dead nodes without jobs",
    "SELECT node_id FROM scheduler_node n WHERE dead_at IS NOT NULL AND NOT EXISTS (\
     SELECT 1 FROM scheduler_job_queue q WHERE q.status = /*state:running*/ AND q.picked_by = n.node_id)",
);

const REMOVE_NODES: Stmt = Stmt::shared("removing dead nodes", "DELETE FROM scheduler_node WHERE node_id /*any*/");

// The jobs of a node that ended well, or was removed, are orphans at once; those of one declared dead after the grace.
const ORPHANS: Stmt = Stmt::shared(
    "looking for orphans",
    "SELECT q.job_id AS job_id FROM scheduler_job_queue q LEFT JOIN scheduler_node n ON n.node_id = q.picked_by \
     WHERE q.status = /*state:running*/ \
     AND (n.node_id IS NULL OR (n.dead_at IS NOT NULL AND q.picked_at <= /*ago:?*/)) \
     ORDER BY q.picked_at, q.job_id LIMIT ?",
);

/// Declares silent nodes dead, removes dead nodes without jobs, and returns jobs whose node is not alive.
///
/// Writes nothing if there is nothing to write.
pub(crate) async fn orphans(
    conn: &mut dyn Conn,
    observer: NodeId,
    grace: Duration,
    limit: usize,
) -> Result<Orphans, StoreError> {
    if !is_alive(conn, observer).await? {
        let problem = format!("node {observer} is not registered or was declared dead; it may not judge others");
        return Err(StoreError::new(ErrorKind::Conflict, "looking for orphans", problem));
    }
    let declared_dead = node_ids(conn, &SILENT_NODES, vec![Value::micros(grace), observer.into()]).await?;
    conn.run_in(&DECLARE_DEAD, &[], &declared_dead).await?;
    let rows = conn.rows(&ORPHANS, vec![Value::micros(grace), Value::count(limit)]).await?;
    let ids = rows.iter().map(|row| row.fields().job_id("job_id")).collect::<Result<Vec<JobId>, _>>()?;
    let jobs = job_row::running(conn, &ids).await?;
    let empty = node_ids(conn, &EMPTY_DEAD_NODES, vec![]).await?;
    conn.run_in(&REMOVE_NODES, &[], &empty).await?;
    permits::end_of_nodes(conn, &empty).await?;
    Ok(Orphans { declared_dead, jobs })
}

async fn node_ids(conn: &mut dyn Conn, stmt: &Stmt, values: Vec<Value>) -> Result<Vec<NodeId>, StoreError> {
    conn.rows(stmt, values).await?.iter().map(|row| row.fields().node_id("node_id")).collect()
}
