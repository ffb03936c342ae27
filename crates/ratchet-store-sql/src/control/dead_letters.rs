//! Looking through the dead letter queue, and giving much of it a new life at once.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::dead_letter::{HeldKey, has_failed};
use ratchet_core::limits::check_retry_count;
use ratchet_core::page::{JobCursor, JobFilter, ListCursor, PAGE_LIMIT_MAX, Page};
use ratchet_core::store::{DeadLetterStore, LETTER_PAGES_MAX, RetriedAll};
use ratchet_core::{
    BusinessKey, DeadLetter, DeadLetterFilter, ErrorKind, Flow, JobId, JobRecord, JobState, Kind, QueueName,
    StoreError, Tag,
};

use crate::cluster::database_time;
use crate::control;
use crate::flow::batches;
use crate::flow::undecidable::untold;
use crate::job_row::find;
use crate::list::ended_index::{asked, entries, looked_up, meant};
use crate::list::job_index::{KEPT, narrowed_by};
use crate::list::query::check_limit;
use crate::list::{asked_for, narrow_columns, reach_of};
use crate::store::{Backend, SqlStore};
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;
use crate::work;

pub(crate) const STATEMENTS: &[Stmt] =
    &[LETTERS, TIES, LOCK_LETTERS, GROWING_BATCHES, BEGIN_ALL_AGAIN, QUEUE_ALL_AGAIN, HOLDERS];

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

const LETTERS: Stmt = Stmt::shared(
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

const DOING: &str = "retrying dead letters";

/// Retries dead letters, all or none. After an error the caller rolls back.
///
/// Jobs that nothing hangs on go together, a few statements for all and one for each batch; others go one by one, as a lone
/// retry does.
pub(crate) async fn retry_all(
    conn: &mut dyn Conn,
    filter: &DeadLetterFilter,
    limit: usize,
) -> Result<RetriedAll, StoreError> {
    check_retry_count(limit).map_err(|refused| StoreError::refused(DOING, refused))?;
    let Choice { ids, passed_over } = choose(conn, filter, limit).await?;
    if conn.texts().dialect().locks_rows() {
        conn.rows_in(&LOCK_LETTERS, &[], &ids).await?;
    }
    // Read again under the lock: somebody may have retried or archived one.
    let failed: Vec<JobRecord> =
        find(conn, &ids).await?.into_iter().filter(|job| job.state == JobState::Failed).collect();
    let batches = failed.iter().filter(|job| job.flow.has(Flow::BATCH_CHILD)).filter_map(|job| job.parent);
    let growing = growing_batches(conn, batches.collect()).await?;
    let untold = untold(conn, &failed).await?;
    let mut retried = RetriedAll { passed_over, ..RetriedAll::default() };
    let mut plain = Vec::new();
    let mut tied = Vec::new();
    let mut uncounted: BTreeMap<JobId, u64> = BTreeMap::new();
    for job in failed {
        let batch = job.parent.filter(|_| job.flow.has(Flow::BATCH_CHILD));
        if untold.contains_key(&job.id) || batch.is_some_and(|batch| !growing.contains(&batch)) {
            retried.passed_over += 1;
        } else if job.flow.has(Flow::DEPENDANTS) || job.flow.has(Flow::SIGNAL) {
            tied.push(job.id);
        } else {
            if let Some(batch) = batch {
                *uncounted.entry(batch).or_default() += 1;
            }
            plain.push(job);
        }
    }
    retry_plain(conn, &plain).await?;
    for (batch, count) in uncounted {
        batches::uncount_failures(conn, batch, count).await?;
    }
    retried.count = plain.len() as u64;
    retried.priority = plain.iter().map(|job| job.spec.priority).max();
    for id in tied {
        if let Some(done) = control::retry(conn, id).await.map_err(|error| error.of_letter(id, &ids))? {
            retried.count += 1;
            retried.revived += done.followed.len() as u64;
            let can_run = done.job.state == JobState::Pending;
            retried.priority = retried.priority.max(can_run.then_some(done.job.spec.priority));
        }
    }
    Ok(retried)
}

/// Dead letters that can be retried, in the order in which rows are locked.
struct Choice {
    ids: Vec<JobId>,
    /// How many newer ones cannot.
    passed_over: u64,
}

/// The newest dead letters of a filter that can be retried, as far as that is known before they are locked.
async fn choose(conn: &mut dyn Conn, filter: &DeadLetterFilter, limit: usize) -> Result<Choice, StoreError> {
    let (mut chosen, mut passed_over, mut after) = (BTreeSet::new(), 0, None);
    for _ in 0..LETTER_PAGES_MAX {
        // All of the first page may be meant; what is beyond it is looked through.
        let portion = if filter.passes_all() && after.is_none() { limit } else { PAGE_LIMIT_MAX };
        let page = dead_letters(conn, &filter.jobs, after, portion).await?;
        let meant = page.items.iter().filter(|letter| filter.passes(letter)).map(|letter| letter.id);
        let meant: Vec<JobId> = meant.collect();
        let beyond = beyond_retry(conn, &meant).await?;
        for id in meant {
            if chosen.len() == limit {
                break;
            } else if beyond.contains(&id) {
                passed_over += 1;
            } else {
                chosen.insert(id);
            }
        }
        after = page.next;
        if after.is_none() || chosen.len() == limit {
            break;
        }
    }
    Ok(Choice { ids: chosen.into_iter().collect(), passed_over })
}

const TIES: Stmt = Stmt::shared(
    "reading what dead letters are tied to",
    "SELECT job_id, depends_on, flow FROM scheduler_job /*by_id*/ WHERE job_id /*any*/",
);

/// Those of these letters that cannot be retried.
async fn beyond_retry(conn: &mut dyn Conn, ids: &[JobId]) -> Result<HashSet<JobId>, StoreError> {
    let (mut children, mut may_be_untold) = (Vec::new(), Vec::new());
    for row in &conn.rows_in(&TIES, &[], ids).await? {
        let mut fields = row.fields();
        let (id, parent, flow) = (fields.job_id("job_id")?, fields.opt_job_id("depends_on")?, fields.flow("flow")?);
        if let Some(batch) = parent.filter(|_| flow.has(Flow::BATCH_CHILD)) {
            children.push((id, batch));
        }
        if flow.has(Flow::INPUTS) {
            may_be_untold.push(id);
        }
    }
    let growing = growing_batches(conn, children.iter().map(|(_, batch)| *batch).collect()).await?;
    let steps = find(conn, &may_be_untold).await?;
    let mut beyond: HashSet<JobId> = untold(conn, &steps).await?.into_keys().collect();
    beyond.extend(children.iter().filter(|(_, batch)| !growing.contains(batch)).map(|(id, _)| *id));
    Ok(beyond)
}

const LOCK_LETTERS: Stmt = Stmt::shared(
    "locking dead letters",
    "SELECT job_id FROM scheduler_job /*by_id*/ WHERE job_id /*any*/ ORDER BY job_id /*for_update*/",
);

const GROWING_BATCHES: Stmt = Stmt::shared(
    "looking for batches that are not over",
    "SELECT batch_id FROM scheduler_batch WHERE completed_at IS NULL \
     AND NOT (sealed = /*yes*/ AND completed_items + failed_items + canceled_items >= total_items) \
     AND batch_id /*any*/",
);

/// Those of these batches whose children can be retried.
async fn growing_batches(conn: &mut dyn Conn, batches: BTreeSet<JobId>) -> Result<HashSet<JobId>, StoreError> {
    let batches: Vec<JobId> = batches.into_iter().collect();
    let rows = conn.rows_in(&GROWING_BATCHES, &[], &batches).await?;
    rows.iter().map(|row| row.fields().job_id("batch_id")).collect()
}

const BEGIN_ALL_AGAIN: Stmt = Stmt::shared(
    "retrying failed jobs",
    "UPDATE scheduler_job /*by_id*/ SET terminal_status = NULL, terminal_error = NULL, total_attempts = 0, \
     crash_count = 0, scheduled_time = NULL, terminated_at = NULL, execution_start_time = NULL, \
     execution_end_time = NULL, execution_duration_us = NULL, queue_wait_us = NULL, job_result = NULL \
     WHERE job_id /*any*/",
);

const QUEUE_ALL_AGAIN: Stmt = Stmt::shared(
    "queueing failed jobs again",
    "INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, business_key, version, \
     flow, updated_at, resource) /*rows:id text text text int time text int int time text*/",
);

/// Retries jobs that nothing hangs on.
async fn retry_plain(conn: &mut dyn Conn, jobs: &[JobRecord]) -> Result<(), StoreError> {
    let mut again = Vec::with_capacity(jobs.len());
    for job in jobs {
        // No letter here awaits a signal.
        again.extend(job.retried(false).map(|retried| (job, retried)));
    }
    let keys: Vec<(&BusinessKey, JobId)> =
        again.iter().filter_map(|(job, _)| Some((job.business_key.as_ref()?, job.id))).collect();
    take_keys(conn, &keys).await?;
    let ids: Vec<JobId> = again.iter().map(|(job, _)| job.id).collect();
    conn.run_in(&BEGIN_ALL_AGAIN, &[], &ids).await?;
    let now = database_time(conn).await?;
    conn.run_each(&QUEUE_ALL_AGAIN, &again, |(job, retried), values| {
        values.extend([
            job.id.into(),
            retried.place.state().into(),
            job.spec.queue.as_str().into(),
            job.spec.kind.as_str().into(),
            Value::count(job.spec.priority.level()),
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

/// Takes all these keys, or says which of them other jobs hold.
async fn take_keys(conn: &mut dyn Conn, keys: &[(&BusinessKey, JobId)]) -> Result<(), StoreError> {
    let mut held = BTreeMap::new();
    let mut hold = |key: &BusinessKey, job, holder, same_call| {
        held.insert(job, HeldKey { job, business_key: key.clone(), holder, same_call });
    };
    // Of several letters with one key the newest has it.
    let mut taken = HashMap::with_capacity(keys.len());
    for (key, id) in keys.iter().rev() {
        match taken.entry(*key) {
            Entry::Occupied(newest) => hold(key, *id, *newest.get(), true),
            Entry::Vacant(free) => {
                free.insert(*id);
            }
        }
    }
    if taken.len() == keys.len() && submit::take_business_keys(conn, keys).await? {
        return Ok(());
    }
    let wanted: Vec<&str> = keys.iter().map(|(key, _)| key.as_str()).collect();
    let rows = conn.rows_in(&HOLDERS, &[], &wanted).await?;
    let mut holders = HashMap::with_capacity(rows.len());
    for row in &rows {
        let mut fields = row.fields();
        holders.insert(fields.text("business_key")?, fields.job_id("owner_job_id")?);
    }
    for (key, id) in keys {
        if let Some(holder) = holders.get(key.as_str()).filter(|holder| *holder != id) {
            hold(key, *id, *holder, false);
        }
    }
    if held.is_empty() {
        let problem = "a business key was taken and freed meanwhile; try again";
        return Err(StoreError::new(ErrorKind::Transient, DOING, problem));
    }
    Err(StoreError::held_keys(DOING, held.into_values().rev().collect()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::waist::conn::tests::at_once;
    use crate::waist::dialect::Dialect;
    use crate::waist::row::{CellError, Cells};
    use crate::waist::stmt::Texts;

    /// A dead letter queue without end, of which no letter passes the filter.
    struct Endless {
        texts: Texts,
        pages: usize,
    }

    #[async_trait]
    impl Conn for Endless {
        fn texts(&self) -> &Texts {
            &self.texts
        }

        async fn execute(&mut self, doing: &'static str, _: Arc<str>, _: Vec<Value>) -> Result<u64, StoreError> {
            panic!("{doing}: there is nothing to write")
        }

        async fn fetch(&mut self, doing: &'static str, _: Arc<str>, _: Vec<Value>) -> Result<Vec<Row>, StoreError> {
            if doing == LETTERS.doing() {
                self.pages += 1;
                assert!(self.pages < 1_000, "it walks without end");
                return Ok(Vec::new());
            }
            Ok(vec![Row::new(Floor)])
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
        let mut conn = Endless { texts: Texts::new(Dialect::Sqlite), pages: 0 };
        let jobs = JobFilter { kind: Some(Kind::new("rare").unwrap()), ..JobFilter::default() };
        let filter = DeadLetterFilter { jobs, ..DeadLetterFilter::default() };
        let chosen = at_once(choose(&mut conn, &filter, 10)).unwrap();
        assert_eq!((chosen.ids.len(), conn.pages), (0, 20));
    }
}
