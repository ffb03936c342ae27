//! Reading the heads of jobs: what filters and counts need of them.

use std::borrow::Cow;
use std::collections::HashSet;

use ratchet_core::page::JobFilter;
use ratchet_core::{JobHead, JobId, StoreError};

use crate::list::job_index::JobIndexes;
use crate::waist::conn::Conn;
use crate::waist::row::{Fields, Row};
use crate::waist::stmt::Stmt;

pub(crate) const STATEMENTS: &[Stmt] = &[HEADS, ARCHIVED_HEADS];

// Parameters may be long, so they are read only if they are asked for.
pub(crate) const HEADS: Stmt = Stmt::shared(
    "reading the heads of jobs",
    "SELECT COALESCE(q.status, j.terminal_status) AS state, /*columns:head j.as*/, \
     CASE WHEN ? THEN j.params END AS params, q.picked_by AS picked_by FROM scheduler_job j /*by_id*/ \
     LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.job_id /*any*/",
)
// With this many ids the planner may merge them with all rows of the queue. What has an offset is planned by itself.
.postgres(
    "SELECT COALESCE(q.status, j.terminal_status) AS state, /*columns:head j.as*/, \
     CASE WHEN ? THEN j.params END AS params, q.picked_by AS picked_by FROM scheduler_job j \
     LEFT JOIN LATERAL (SELECT h.status, h.picked_by FROM scheduler_job_queue h WHERE h.job_id = j.job_id OFFSET 0) q \
     ON TRUE WHERE j.job_id /*any*/",
);

pub(crate) const ARCHIVED_HEADS: Stmt = Stmt::shared(
    "reading the heads of archived jobs",
    "SELECT j.terminal_status AS state, /*columns:head j.as*/, CASE WHEN ? THEN j.params END AS params \
     FROM scheduler_job_archive j /*by_id*/ WHERE j.job_id /*any*/",
);

/// Reads the rows of [`head_of_row`], in any order; jobs that are no longer in this place are left out.
pub(crate) async fn rows(
    conn: &mut dyn Conn,
    indexes: &JobIndexes,
    ids: &[JobId],
    params: bool,
) -> Result<Vec<Row>, StoreError> {
    conn.rows_in(indexes.heads, &[params.into()], ids).await
}

/// Returns the head of a row of [`rows`].
pub(crate) fn head_of_row<'r>(row: &'r Row, indexes: &JobIndexes) -> Result<JobHead<'r>, StoreError> {
    let mut fields = row.fields();
    let mut head = head_of(&mut fields)?;
    let params = fields.opt_text("params")?.and_then(|text| serde_json::from_str(text).ok());
    head.params = Cow::Owned(params.unwrap_or_default());
    if indexes.live.is_some() {
        head.picked_by = fields.opt_node_id("picked_by")?;
    }
    Ok(head)
}

/// Reads a head from a state and the columns `/*columns:head*/`.
pub(crate) fn head_of<'r>(fields: &mut Fields<'r>) -> Result<JobHead<'r>, StoreError> {
    Ok(JobHead {
        // A job that is asked for its end and lives again has none, and so passes no filter of ended jobs.
        state: fields.opt_text("state")?.unwrap_or_default(),
        id: fields.job_id("job_id")?,
        kind: fields.text("kind")?,
        queue: fields.text("queue")?,
        job_type: fields.text("job_type")?,
        priority: fields.int("priority")?,
        tags: Cow::Owned(fields.opt_parsed("tags", serde_json::from_str)?.unwrap_or_default()),
        business_key: fields.opt_text("business_key")?,
        parent: fields.opt_job_id("depends_on")?,
        principal: fields.opt_text("caller_principal")?,
        terminated_at: fields.opt_time("terminated_at")?,
        picked_by: None,
        params: Cow::default(),
    })
}

/// Returns those of these jobs that pass a filter, in the same order.
pub(crate) async fn passing(
    conn: &mut dyn Conn,
    indexes: &JobIndexes,
    filter: &JobFilter,
    mut ids: Vec<JobId>,
) -> Result<Vec<JobId>, StoreError> {
    let mut passing = HashSet::with_capacity(ids.len());
    for row in &rows(conn, indexes, &ids, false).await? {
        let head = head_of_row(row, indexes)?;
        passing.extend(filter.passes(&head).then_some(head.id));
    }
    ids.retain(|id| passing.contains(id));
    Ok(ids)
}
