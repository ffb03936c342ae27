//! Taking ended jobs away: to the archive, or for good.

use jiff::Timestamp;
use ratchet_core::retention::EndedJob;
use ratchet_core::{JobFlags, JobId, StoreError, Tag};

use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[
    DELETE_TAGS,
    DELETE_PARENTS,
    DELETE_ATTEMPTS,
    DELETE_ALERTS,
    DELETE_WAITS,
    DELETE_BATCHES,
    LEAVE,
    LOOSE_EDGES_FROM,
    LOOSE_EDGES_TO,
    DELETE_EDGES,
    STILL_THERE,
];

/// An ended job, as far as it has to be known to take it away.
pub(crate) struct EndedRow {
    pub(crate) job: EndedJob,
    pub(crate) terminated_at: Option<Timestamp>,
    pub(crate) workflow: Option<JobId>,
    tags: Vec<Tag>,
    /// Whether the row describes the attempt that succeeded.
    pub(crate) has_success: bool,
}

impl EndedRow {
    /// Reads a row of the archiver's candidates.
    pub(crate) fn of(row: &Row) -> Result<Self, StoreError> {
        let mut fields = row.fields();
        Ok(Self {
            job: EndedJob {
                id: fields.job_id("job_id")?,
                flow: fields.flow("flow")?,
                parent: fields.opt_job_id("depends_on")?,
                canceled_because: fields.opt_job_id("canceled_because")?,
            },
            terminated_at: fields.opt_time("terminated_at")?,
            workflow: fields.opt_job_id("workflow_id")?,
            tags: fields.opt_parsed("tags", serde_json::from_str)?.unwrap_or_default(),
            has_success: fields.opt_node_id("ended_by")?.is_some(),
        })
    }
}

/// Those that waited for a signal.
pub(crate) fn awaited<'r>(go: impl Iterator<Item = &'r EndedRow>) -> Vec<JobId> {
    let awaited = |job: &&EndedJob| job.flow.has(JobFlags::SIGNAL) || job.flow.has(JobFlags::SIGNALED);
    go.map(|row| &row.job).filter(awaited).map(|job| job.id).collect()
}

/// Their tags.
pub(crate) fn tags<'r>(go: impl Iterator<Item = &'r EndedRow>) -> Vec<(&'r Tag, JobId)> {
    go.flat_map(|row| row.tags.iter().map(|tag| (tag, row.job.id))).collect()
}

pub(crate) fn bind_tag((tag, id): &(&Tag, JobId), values: &mut Vec<Value>) {
    values.extend([tag.as_str().into(), (*id).into()]);
}

// MariaDB finds no rows by an index through a list of pairs.
const DELETE_TAGS: Stmt = Stmt::shared(
    "taking the tags of jobs away",
    "DELETE FROM scheduler_job_tag WHERE (tag, job_id) IN (/*rows:text id*/)",
)
.mysql(
    "DELETE t FROM (/*union*/SELECT CAST(? AS BINARY) AS tag, CAST(? AS BINARY(16)) AS job_id/*end*/) v \
     STRAIGHT_JOIN scheduler_job_tag t FORCE INDEX (PRIMARY) ON t.tag = v.tag AND t.job_id = v.job_id",
);

const DELETE_PARENTS: Stmt = Stmt::only_mysql(
    "taking jobs from the children of others",
    "DELETE c FROM (/*union*/SELECT CAST(? AS BINARY(16)) AS parent_id, CAST(? AS BINARY(16)) AS job_id/*end*/) v \
     STRAIGHT_JOIN scheduler_job_child c FORCE INDEX (PRIMARY) ON c.parent_id = v.parent_id AND c.job_id = v.job_id",
);

const DELETE_ATTEMPTS: Stmt =
    Stmt::shared("taking the attempts of jobs away", "DELETE FROM scheduler_job_execution WHERE job_id /*any*/");

const DELETE_ALERTS: Stmt =
    Stmt::shared("taking the alerts of jobs away", "DELETE FROM scheduler_dlq_alert WHERE job_id /*any*/");

const DELETE_WAITS: Stmt =
    Stmt::shared("taking the waits of jobs away", "DELETE FROM scheduler_signal_wait WHERE job_id /*any*/");

const DELETE_BATCHES: Stmt =
    Stmt::shared("taking the rows of batches away", "DELETE FROM scheduler_batch WHERE batch_id /*any*/");

const LEAVE: Stmt = Stmt::shared("taking jobs away", "DELETE FROM scheduler_job WHERE job_id /*any*/");

/// Deletes ended jobs and what was only about them; not their logs.
pub(crate) async fn leave(conn: &mut dyn Conn, go: &[EndedRow]) -> Result<(), StoreError> {
    let ids: Vec<JobId> = go.iter().map(|row| row.job.id).collect();
    conn.run_in(&DELETE_ATTEMPTS, &[], &ids).await?;
    conn.run_in(&DELETE_ALERTS, &[], &ids).await?;
    conn.run_in(&DELETE_WAITS, &[], &awaited(go.iter())).await?;
    conn.run_each(&DELETE_TAGS, &tags(go.iter()), bind_tag).await?;
    let batches: Vec<JobId> = go.iter().filter(|row| row.job.flow.has(JobFlags::BATCH)).map(|row| row.job.id).collect();
    conn.run_in(&DELETE_BATCHES, &[], &batches).await?;
    if conn.dialect().lists_children_apart() {
        let children: Vec<(JobId, JobId)> = go.iter().filter_map(|row| Some((row.job.parent?, row.job.id))).collect();
        conn.run_each(&DELETE_PARENTS, &children, bind_pair).await?;
    }
    conn.run_in(&LEAVE, &[], &ids).await?;
    let is_tied = |row: &&EndedRow| row.workflow.is_some() || !row.job.flow.is_none();
    let tied: Vec<JobId> = go.iter().filter(is_tied).map(|row| row.job.id).collect();
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

const DELETE_EDGES: Stmt = Stmt::shared(
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
    conn.run_each(&DELETE_EDGES, &loose, bind_pair).await?;
    Ok(())
}

const STILL_THERE: Stmt =
    Stmt::shared("looking for jobs that are gone", "SELECT job_id FROM scheduler_job /*by_id*/ WHERE job_id /*any*/");

/// Which of these jobs are gone. A live one is never deleted, so they have ended.
pub(crate) async fn gone(conn: &mut dyn Conn, mut ids: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
    for row in conn.rows_in(&STILL_THERE, &[], &ids).await? {
        let there = row.fields().job_id("job_id")?;
        ids.retain(|id| *id != there);
    }
    Ok(ids)
}
