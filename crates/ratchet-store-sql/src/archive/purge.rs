//! Deleting for good what was archived long ago.

use std::time::Duration;

use ratchet_core::{JobId, StoreError, Tag};

use crate::job_log;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[OLD_ARCHIVED, DELETE_ARCHIVED_TAGS, PURGE_ARCHIVED, OLD_SCHEDULES, PURGE_SCHEDULES];

const OLD_ARCHIVED: Stmt = Stmt::shared(
    "looking for jobs that were archived long ago",
    "SELECT job_id, tags FROM scheduler_job_archive WHERE archived_at <= /*ago:?*/ ORDER BY archived_at LIMIT ? \
     /*skip_locked*/",
);

// MariaDB finds no rows by an index through a list of pairs.
pub(crate) const DELETE_ARCHIVED_TAGS: Stmt = Stmt::shared(
    "deleting the tags of archived jobs",
    "DELETE FROM scheduler_job_archive_tag WHERE (tag, job_id) IN (/*rows:text id*/)",
)
.mysql(
    "DELETE t FROM (/*union*/SELECT CAST(? AS BINARY) AS tag, CAST(? AS BINARY(16)) AS job_id/*end*/) v \
     STRAIGHT_JOIN scheduler_job_archive_tag t FORCE INDEX (PRIMARY) ON t.tag = v.tag AND t.job_id = v.job_id",
);

const PURGE_ARCHIVED: Stmt =
    Stmt::shared("deleting archived jobs", "DELETE FROM scheduler_job_archive WHERE job_id /*any*/");

/// Deletes jobs that were archived longer ago than `age`.
pub(crate) async fn purge_archive(conn: &mut dyn Conn, age: Duration, limit: usize) -> Result<u64, StoreError> {
    let rows = conn.rows(&OLD_ARCHIVED, vec![Value::micros(age), Value::count(limit)]).await?;
    let mut ids = Vec::with_capacity(rows.len());
    let mut tags: Vec<(Tag, JobId)> = Vec::new();
    for row in &rows {
        let mut fields = row.fields();
        let id = fields.job_id("job_id")?;
        let of_one: Vec<Tag> = fields.opt_parsed("tags", serde_json::from_str)?.unwrap_or_default();
        tags.extend(of_one.into_iter().map(|tag| (tag, id)));
        ids.push(id);
    }
    ids.sort_unstable();
    conn.run_each(&DELETE_ARCHIVED_TAGS, &tags, |(tag, id), values| values.extend([tag.as_str().into(), (*id).into()]))
        .await?;
    job_log::delete_all(conn, &ids).await?;
    // A list is padded by its last id; nothing is counted twice, because a row is deleted once.
    conn.run_in(&PURGE_ARCHIVED, &[], &ids).await
}

const OLD_SCHEDULES: Stmt = Stmt::shared(
    "looking for schedules that were archived long ago",
    "SELECT recurring_id FROM scheduler_recurring_job_archive WHERE archived_at <= /*ago:?*/ ORDER BY archived_at \
     LIMIT ? /*skip_locked*/",
);

const PURGE_SCHEDULES: Stmt = Stmt::shared(
    "deleting archived schedules",
    "DELETE FROM scheduler_recurring_job_archive WHERE recurring_id /*any*/",
);

/// Deletes schedules that were canceled or retired longer ago than `age`.
pub(crate) async fn purge_schedules(conn: &mut dyn Conn, age: Duration, limit: usize) -> Result<u64, StoreError> {
    let rows = conn.rows(&OLD_SCHEDULES, vec![Value::micros(age), Value::count(limit)]).await?;
    let ids = rows.iter().map(|row| row.fields().job_id("recurring_id")).collect::<Result<Vec<_>, _>>()?;
    conn.run_in(&PURGE_SCHEDULES, &[], &ids).await
}
