//! Listing dead letters.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::dead_letter::has_failed;
use ratchet_core::page::{JobCursor, JobFilter, ListCursor, Page};
use ratchet_core::store::{DeadLetterStore, RetriedAll};
use ratchet_core::{DeadLetter, DeadLetterFilter, JobState, Kind, QueueName, StoreError};

use crate::control::retry_all::retry_all;
use crate::list::heads::head_of;
use crate::list::job_index::Direction;
use crate::list::query::check_limit;
use crate::list::{PageOfIds, page_of_ids, scan};
use crate::store::{Backend, SqlStore};
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
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

// The class is with the last attempt.
const LETTERS: Stmt = Stmt::shared(
    "reading dead letters",
    "SELECT j.terminal_status AS state, /*columns:head j.as*/, j.terminal_error AS terminal_error, \
     (SELECT e.error_class FROM scheduler_job_execution e WHERE e.job_id = j.job_id ORDER BY e.version DESC LIMIT 1) \
     AS error_class FROM scheduler_job j /*by_id*/ WHERE j.job_id /*any*/",
);

/// Lists a page of dead letters, newest first. It may be shorter than asked for and still have a next one, as any list.
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
    let filter = JobFilter { states: vec![JobState::Failed], ..filter.clone() };
    let (scans, range) = ([scan::dead_letters(&filter)], filter.id_range(after.map(ListCursor::from)));
    let PageOfIds { ids, next } = page_of_ids(conn, &scans, &filter, Direction::NewestFirst, range, limit).await?;
    let mut items = Vec::with_capacity(ids.len());
    for row in &conn.rows_in(&LETTERS, &[], &ids).await? {
        items.extend(letter_of(row, &filter)?);
    }
    items.sort_unstable_by_key(|letter| Reverse(letter.id));
    Ok(Page { items, next: next.map(JobCursor) })
}

/// Returns the letter of a row, unless the job was retried since it was found.
fn letter_of(row: &Row, filter: &JobFilter) -> Result<Option<DeadLetter>, StoreError> {
    let mut fields = row.fields();
    let head = head_of(&mut fields)?;
    let (error, class) = (fields.opt_text("terminal_error")?, fields.opt_text("error_class")?);
    let Some(failed_at) = head.terminated_at.filter(|_| filter.passes(&head)) else { return Ok(None) };
    let unreadable = |refused| StoreError::refused("reading dead letters", refused);
    Ok(Some(DeadLetter {
        id: head.id,
        kind: Kind::new(head.kind).map_err(unreadable)?,
        queue: QueueName::new(head.queue).map_err(unreadable)?,
        error: error.unwrap_or_default().to_owned(),
        failed_at,
        error_class: class.map(str::to_owned),
    }))
}
