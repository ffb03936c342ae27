//! Looking through the dead letter queue, and giving much of it a new life at once.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::dead_letter::has_failed;
use ratchet_core::page::{JobCursor, JobFilter, ListCursor, Page};
use ratchet_core::store::{DeadLetterStore, RetriedAll};
use ratchet_core::{DeadLetter, DeadLetterFilter, JobState, Kind, QueueName, StoreError, Tag};

use crate::control::retry_all::retry_all;
use crate::list::ended_index::{asked, entries, looked_up, meant};
use crate::list::job_index::{KEPT, narrowed_by};
use crate::list::query::check_limit;
use crate::list::{asked_for, narrow_columns, reach_of};
use crate::store::{Backend, SqlStore};
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;
use crate::work;

pub(crate) const STATEMENTS: &[Stmt] = &[LETTERS];

#[async_trait]
impl<B: Backend> DeadLetterStore for SqlStore<B> {
    async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError> {
        let filter = Arc::new(filter.clone());
        let letters = work!([filter], |conn| dead_letters(conn, &filter, after, limit));
        self.read(letters).await
    }

    async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
        let filter = Arc::new(filter.clone());
        let retry = work!([filter], |conn| retry_all(conn, &filter, limit));
        self.write(retry).await
    }
}

macro_rules! letters {
    ($begin:expr, $from:expr, $order:expr) => {
        concat!(
            $begin,
            // The class is with the last attempt.
            "SELECT j.job_id AS job_id, j.kind AS kind, j.queue AS queue, j.terminal_error AS terminal_error, \
             j.terminated_at AS terminated_at, (SELECT e.error_class FROM scheduler_job_execution e \
             WHERE e.job_id = j.job_id ORDER BY e.version DESC LIMIT 1) AS error_class FROM ",
            $from,
            " AND ",
            narrowed_by!("j"),
            " AND (? IS NULL OR EXISTS (SELECT 1 FROM scheduler_job_tag t WHERE t.tag = ? AND t.job_id = j.job_id)) \
             ORDER BY ",
            $order,
            " LIMIT ?"
        )
    };
}

pub(super) const LETTERS: Stmt = Stmt::shared(
    "reading dead letters",
    letters!("", "scheduler_job j WHERE j.terminal_status = ? AND j.job_id < ? AND j.job_id >= ?", "j.job_id DESC"),
)
.postgres(letters!(
    asked!("text"),
    concat!(looked_up!("i.*", "scheduler_job", "terminal_status", "DESC"), " j WHERE ", meant!("j")),
    "j.lead DESC, j.job_id DESC"
))
// The order by primary key tempts it to read all jobs.
.mysql(letters!(
    "",
    "scheduler_job j FORCE INDEX (idx_job_terminal) WHERE j.terminal_status = ? AND j.job_id < ? AND j.job_id >= ?",
    "j.job_id DESC"
));

/// A page of dead letters, newest first. It may be shorter than asked for and still have a next one, as any list.
pub async fn dead_letters(
    conn: &mut dyn Conn,
    filter: &JobFilter,
    after: Option<JobCursor>,
    limit: usize,
) -> Result<Page<DeadLetter>, StoreError> {
    check_limit(limit)?;
    if !has_failed(filter) {
        return Ok(Page { items: Vec::new(), next: None });
    }
    let range = filter.id_range(after.map(ListCursor::from));
    let failed = Value::from(JobState::Failed);
    let look = &KEPT.by_end.newest_first;
    let floor = if asked_for(filter) > 0 { reach_of(conn, look, Some(&failed), range).await? } else { None };
    let (since, until) = range;
    let tag = || Value::opt_text(filter.tag.as_ref().map(Tag::as_str));
    let mut values = vec![failed, until.into(), floor.unwrap_or(since).into()];
    values.extend(narrow_columns(filter));
    values.extend([tag(), tag(), Value::count(limit + 1)]);
    let rows = conn.rows(&LETTERS, values).await?;
    let mut items = rows.iter().map(letter_of).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = if more { items.last().map(|letter| letter.id) } else { floor };
    Ok(Page { items, next: next.map(JobCursor) })
}

fn letter_of(row: &Row) -> Result<DeadLetter, StoreError> {
    let mut fields = row.fields();
    Ok(DeadLetter {
        id: fields.job_id("job_id")?,
        kind: fields.parsed("kind", Kind::new)?,
        queue: fields.parsed("queue", QueueName::new)?,
        error: fields.opt_text("terminal_error")?.unwrap_or_default().to_owned(),
        failed_at: fields.time("terminated_at")?,
        error_class: fields.opt_text("error_class")?.map(str::to_owned),
    })
}
