//! Retrying many dead letters at once.

use std::collections::{HashMap, VecDeque};

use ratchet_core::control::{BulkRetry, LetterTies, RETRYING_LETTERS};
use ratchet_core::page::{JobCursor, PAGE_LIMIT_MAX};
use ratchet_core::store::{LETTER_PAGES_MAX, RetriedAll};
use ratchet_core::{BusinessKey, DeadLetterFilter, ErrorKind, JobId, StoreError};

use crate::cluster::database_time;
use crate::control;
use crate::control::dead_letters::dead_letters;
use crate::flow::batches;
use crate::flow::undecidable::undecidable;
use crate::job_row::find;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[LOCK_LETTERS, BEGIN_ALL_AGAIN, QUEUE_ALL_AGAIN, HOLDERS];

/// Retries dead letters, all or none. After an error the caller rolls back.
///
/// Plain letters go together, a few statements for all and one for each batch; others go one by one, as a lone retry does.
pub(crate) async fn retry_all(
    conn: &mut dyn Conn,
    filter: &DeadLetterFilter,
    limit: usize,
) -> Result<RetriedAll, StoreError> {
    let mut retry = BulkRetry::new(limit)?;
    let mut letters = Letters::of(filter, limit);
    loop {
        let ids = letters.next(conn, retry.wanted()).await?;
        if ids.is_empty() {
            break;
        }
        judge(conn, &mut retry, ids).await?;
    }
    retry_plain(conn, &retry).await?;
    for (batch, count) in retry.uncounted() {
        batches::uncount_failures(conn, batch, count).await?;
    }
    let mut tied = Vec::with_capacity(retry.tied().len());
    for id in retry.tied() {
        tied.extend(control::retry(conn, *id).await.map_err(|error| retry.refused(*id, error))?);
    }
    Ok(retry.result(&tied))
}

/// The letters of a filter, the newest first, read a page at a time.
struct Letters<'a> {
    filter: &'a DeadLetterFilter,
    /// The size of the next page.
    portion: usize,
    pages_left: usize,
    after: Option<JobCursor>,
    read: VecDeque<JobId>,
}

impl<'a> Letters<'a> {
    fn of(filter: &'a DeadLetterFilter, limit: usize) -> Self {
        // All of the first page may be meant; what is beyond it is looked through.
        let portion = if filter.passes_all() { limit } else { PAGE_LIMIT_MAX };
        Self { filter, portion, pages_left: LETTER_PAGES_MAX, after: None, read: VecDeque::new() }
    }

    /// Returns the next `count` letters, or fewer if there are no more, or too many of them do not pass the filter.
    async fn next(&mut self, conn: &mut dyn Conn, count: usize) -> Result<Vec<JobId>, StoreError> {
        while self.read.len() < count && self.pages_left > 0 {
            let page = dead_letters(conn, &self.filter.jobs, self.after, self.portion).await?;
            let meant = page.items.iter().filter(|letter| self.filter.passes(letter));
            self.read.extend(meant.map(|letter| letter.id));
            self.after = page.next;
            self.portion = PAGE_LIMIT_MAX;
            self.pages_left = if page.next.is_some() { self.pages_left - 1 } else { 0 };
        }
        Ok(self.read.drain(..count.min(self.read.len())).collect())
    }
}

/// Locks letters and judges them.
///
/// Rows are locked in the order of their ids, as anywhere. A further round locks older ones: there the database may have to end
/// one of two such calls, which is tried again.
async fn judge(conn: &mut dyn Conn, retry: &mut BulkRetry, mut ids: Vec<JobId>) -> Result<(), StoreError> {
    ids.sort_unstable();
    if conn.texts().dialect().locks_rows() {
        conn.rows_in(&LOCK_LETTERS, &[], &ids).await?;
    }
    let letters = find(conn, &ids).await?;
    let batches: Vec<JobId> = LetterTies::batches(&letters).into_iter().collect();
    let batches = batches::find(conn, &batches).await?;
    let undecidable = undecidable(conn, &letters).await?.into_keys().collect();
    retry.judge(letters.into_iter().rev(), &LetterTies::new(undecidable, &batches));
    Ok(())
}

const LOCK_LETTERS: Stmt = Stmt::shared(
    "locking dead letters",
    "SELECT job_id FROM scheduler_job /*by_id*/ WHERE job_id /*any*/ ORDER BY job_id /*for_update*/",
);

const BEGIN_ALL_AGAIN: Stmt = Stmt::shared(
    "retrying failed jobs",
    "UPDATE scheduler_job /*by_id*/ SET /*clear:job.end,job.outcome,job.timing*/, total_attempts = 0, crash_count = 0 \
     WHERE job_id /*any*/",
);

const QUEUE_ALL_AGAIN: Stmt = Stmt::shared(
    "queueing failed jobs again",
    "INSERT INTO scheduler_job_queue (/*columns:queue.plain*/, scheduled_time, business_key, version, flow, updated_at, \
     resource) /*rows:@queue.plain time text int int time text*/",
);

/// Retries the plain letters.
async fn retry_plain(conn: &mut dyn Conn, retry: &BulkRetry) -> Result<(), StoreError> {
    // None of them awaits a signal.
    let again = retry.plain().iter().rev().filter_map(|job| Some((job, job.retried(false)?)));
    let again: Vec<_> = again.collect();
    if again.is_empty() {
        return Ok(());
    }
    take_keys(conn, retry).await?;
    let ids: Vec<JobId> = again.iter().map(|(job, _)| job.id).collect();
    conn.run_in(&BEGIN_ALL_AGAIN, &[], &ids).await?;
    let now = database_time(conn).await?;
    conn.run_each(&QUEUE_ALL_AGAIN, &again, |(job, retried), values| {
        values.extend(submit::hot_row(job.id, retried.place.state(), &job.spec));
        values.extend([
            now.into(),
            Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)),
            Value::count(job.version + 1),
            Value::count(retried.flow.bits()),
            now.into(),
            submit::resource_of(&job.spec),
        ]);
    })
    .await?;
    Ok(())
}

const HOLDERS: Stmt = Stmt::shared(
    "finding the holders of business keys",
    "SELECT business_key, owner_job_id FROM scheduler_business_key_reservation WHERE business_key /*any*/",
);

/// Takes the keys of the plain letters, or says which of them other jobs hold.
async fn take_keys(conn: &mut dyn Conn, retry: &BulkRetry) -> Result<(), StoreError> {
    let keys: Vec<(&BusinessKey, JobId)> = retry.keys().rev().collect();
    if keys.is_empty() || retry.held_keys(|_| None).is_empty() && submit::take_business_keys(conn, &keys).await? {
        return Ok(());
    }
    let wanted: Vec<&str> = keys.iter().map(|(key, _)| key.as_str()).collect();
    let rows = conn.rows_in(&HOLDERS, &[], &wanted).await?;
    let mut holders = HashMap::with_capacity(rows.len());
    for row in &rows {
        let mut fields = row.fields();
        holders.insert(fields.text("business_key")?, fields.job_id("owner_job_id")?);
    }
    retry.refuse_held(retry.held_keys(|key| holders.get(key.as_str()).copied()))?;
    let problem = "a business key was taken and freed meanwhile; try again";
    Err(StoreError::new(ErrorKind::Transient, RETRYING_LETTERS, problem))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use jiff::Timestamp;
    use ratchet_core::Kind;
    use ratchet_core::page::JobFilter;
    use uuid::Uuid;

    use super::*;
    use crate::list::scan::EXAMINED_MAX;
    use crate::waist::conn::tests::at_once;
    use crate::waist::dialect::Dialect;
    use crate::waist::row::{CellError, Cells, Row};
    use crate::waist::stmt::Texts;

    /// A dead letter queue without end, of which no letter passes the filter.
    struct Endless {
        texts: Texts,
        examined: usize,
    }

    #[async_trait]
    impl Conn for Endless {
        fn texts(&self) -> &Texts {
            &self.texts
        }

        async fn execute(&mut self, doing: &'static str, _: Arc<str>, _: Vec<Value>) -> Result<u64, StoreError> {
            panic!("{doing}: there is nothing to write")
        }

        async fn fetch(&mut self, _: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
            let Some(Value::Int(Some(count))) = values.last().filter(|_| text.contains("INDEXED BY")) else {
                return Ok(Vec::new());
            };
            let count = usize::try_from(*count).unwrap();
            self.examined += count;
            assert!(self.examined < 1_000_000, "it walks without end");
            Ok(std::iter::repeat_with(|| Row::new(Floor)).take(count).collect())
        }
    }

    struct Floor;

    impl Cells for Floor {
        fn name(&self, _: usize) -> &'static str {
            "job_id"
        }

        fn id(&self, _: usize) -> Result<Option<Uuid>, CellError> {
            Ok(Some(Uuid::from_u128(1)))
        }

        fn int(&self, _: usize) -> Result<Option<i64>, CellError> {
            Ok(None)
        }

        fn real(&self, _: usize) -> Result<Option<f64>, CellError> {
            Ok(None)
        }

        fn bool(&self, _: usize) -> Result<Option<bool>, CellError> {
            Ok(None)
        }

        fn text(&self, _: usize) -> Result<Option<&str>, CellError> {
            Ok(None)
        }

        fn time(&self, _: usize) -> Result<Option<Timestamp>, CellError> {
            Ok(None)
        }
    }

    #[test]
    fn letters_of_a_kind_that_hardly_ever_fails_are_not_looked_for_without_end() {
        let mut conn = Endless { texts: Texts::new(Dialect::Sqlite), examined: 0 };
        let jobs = JobFilter { kind: Some(Kind::new("rare").unwrap()), ..JobFilter::default() };
        let filter = DeadLetterFilter { jobs, ..DeadLetterFilter::default() };
        let retried = at_once(retry_all(&mut conn, &filter, 10)).unwrap();
        assert_eq!((retried, conn.examined), (RetriedAll::default(), 20 * EXAMINED_MAX));
    }
}
