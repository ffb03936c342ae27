//! The hot path of a submit: jobs without keys and tags, in one round trip that is its own transaction.

use ratchet_core::store::{SubmitOutcome, SubmitUnit, Submitted};
use ratchet_core::submit::{DOING, FirstRow};
use ratchet_core::{Due, ErrorKind, JobId, NewJob, StoreError};

use crate::submit::{ColdRow, all_created, hot_row};
use crate::waist::conn::Conn;
use crate::waist::dialect::Dialect;
use crate::waist::list::BYTES_MAX;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[SUBMIT_PLAIN, EXTEND_PLAIN, READ_CLOCK, STORE_PLAIN, QUEUE_PLAIN];

/// Most jobs that go as text; longer lists are better prepared.
const SCRIPT_MAX: usize = 64;

/// More than the values of a plain job take besides its payload and its names.
const ROW_BYTES: usize = 256;

/// Whether the jobs of these units can be stored this way.
pub(crate) fn is_plain(dialect: Dialect, units: &[SubmitUnit]) -> bool {
    let mut jobs = units.iter().flat_map(|unit| &unit.jobs);
    if !is_one_statement(jobs.clone()) {
        return false;
    }
    match dialect {
        Dialect::Sqlite => false,
        Dialect::Postgres => jobs.all(ColdRow::is_plain),
        Dialect::Mysql | Dialect::Mariadb => {
            (1..=SCRIPT_MAX).contains(&jobs.clone().count()) && jobs.all(ColdRow::is_plain)
        }
    }
}

/// Of two statements the first could be stored without the second.
fn is_one_statement<'a>(jobs: impl Iterator<Item = &'a NewJob>) -> bool {
    let bytes = |job: &NewJob| {
        let spec = &job.spec;
        ROW_BYTES + spec.payload.as_str().len() + spec.kind.as_str().len() + spec.queue.as_str().len()
    };
    jobs.map(bytes).sum::<usize>() <= BYTES_MAX
}

/// Stores plain jobs; see [`is_plain`].
///
/// A [`Conflict`](ratchet_core::ErrorKind::Conflict) if an id is taken, and then nothing was stored.
pub(crate) async fn submit_plain(conn: &mut dyn Conn, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
    let jobs: Vec<&NewJob> = units.iter().flat_map(|unit| &unit.jobs).collect();
    match conn.dialect() {
        Dialect::Mysql => submit_script(conn, &jobs, ["BEGIN; ", "; COMMIT"]).await?,
        // One statement with one answer instead of five.
        Dialect::Mariadb => {
            submit_script(conn, &jobs, ["BEGIN NOT ATOMIC START TRANSACTION; ", "; COMMIT; END"]).await?;
        }
        Dialect::Sqlite | Dialect::Postgres => {
            let bind = |job: &&NewJob, values: &mut Vec<Value>| {
                ColdRow::bind_plain(job, values);
                let row = job.first_row();
                values.push(row.state.into());
                values.extend(due(row));
            };
            conn.run_each(&SUBMIT_PLAIN, &jobs, bind).await?;
        }
    }
    Ok(all_created(units))
}

/// A given time, or a delay from now.
fn due(row: FirstRow) -> [Value; 2] {
    match row.due {
        Due::At(time) => [Value::Time(Some(time)), Value::Int(None)],
        Due::After(delay) => [Value::Time(None), Value::micros(delay)],
    }
}

const SUBMIT_PLAIN: Stmt = Stmt::only_postgres(
    "storing plain jobs at once",
    "WITH t AS MATERIALIZED (SELECT /*now*/ AS now), \
     v (/*columns:job.plain*/, status, scheduled_time, delay_us) \
     AS MATERIALIZED (/*rows:@job.plain text time int*/), \
     stored AS (INSERT INTO scheduler_job (/*columns:job.plain*/, created_at) \
     SELECT /*columns:job.plain v.*/, t.now FROM v, t) \
     INSERT INTO scheduler_job_queue (/*columns:queue.plain*/, scheduled_time, updated_at) \
     SELECT /*columns:queue.plain v.*/, \
     COALESCE(v.scheduled_time, t.now + v.delay_us * INTERVAL '1 microsecond'), t.now \
     FROM v, t",
);

/// Whether children of a batch can be stored by [`extend_plain`].
pub(crate) fn is_plain_extension(dialect: Dialect, children: &[NewJob]) -> bool {
    dialect.writes_tables_together()
        && !children.is_empty()
        && is_one_statement(children.iter())
        && children.iter().all(ColdRow::is_plain_child)
}

/// Stores plain children of an open batch and counts them.
///
/// A [`Conflict`](ErrorKind::Conflict) if an id is taken or the batch takes none, and then nothing was stored. The batch's row
/// is locked first; nobody is waited for with it, because what is stored has no keys.
pub(crate) async fn extend_plain(
    conn: &mut dyn Conn,
    id: JobId,
    children: &[NewJob],
) -> Result<Vec<Submitted>, StoreError> {
    let before = [Value::count(children.len()), id.into()];
    let grown = conn.rows_each(&EXTEND_PLAIN, &before, children, |job, values| {
        ColdRow::bind_plain(job, values);
        let row = job.first_row();
        values.push(row.state.into());
        values.extend(due(row));
        values.extend([Value::Id(job.parent.map(|id| id.0)), Value::count(job.flow.bits())]);
    });
    if grown.await?.is_empty() {
        return Err(StoreError::new(ErrorKind::Conflict, EXTEND_PLAIN.doing(), "the batch takes no children"));
    }
    Ok(children.iter().map(|child| Submitted::Created(child.id)).collect())
}

const EXTEND_PLAIN: Stmt = Stmt::only_postgres(
    "storing plain children at once",
    "WITH t AS MATERIALIZED (SELECT /*now*/ AS now), \
     grown AS (UPDATE scheduler_batch SET total_items = total_items + ? WHERE batch_id = ? AND sealed = FALSE \
     AND completed_at IS NULL RETURNING batch_id), \
     v (/*columns:job.plain*/, status, scheduled_time, delay_us, depends_on, flow) \
     AS MATERIALIZED (/*rows:@job.plain text time int id int*/), \
     stored AS (INSERT INTO scheduler_job (/*columns:job.plain*/, created_at, depends_on, flow) \
     SELECT /*columns:job.plain v.*/, t.now, v.depends_on, v.flow FROM v, t, grown), \
     queued AS (INSERT INTO scheduler_job_queue (/*columns:queue.plain*/, scheduled_time, updated_at, flow) \
     SELECT /*columns:queue.plain v.*/, \
     COALESCE(v.scheduled_time, t.now + v.delay_us * INTERVAL '1 microsecond'), t.now, v.flow FROM v, t, grown) \
     SELECT batch_id FROM grown",
);

/// MySQL cannot write two tables in one statement, but takes several statements at once as text: one round trip instead
/// of four. The values are written into the text in a form that nothing in them can leave.
async fn submit_script(conn: &mut dyn Conn, jobs: &[&NewJob], [begin, commit]: [&str; 2]) -> Result<(), StoreError> {
    let (mut cold, mut hot) = (Vec::new(), Vec::new());
    for job in jobs {
        ColdRow::bind_plain(job, &mut cold);
        let row = job.first_row();
        hot.extend(hot_row(job.id, row.state, &job.spec));
        hot.extend(due(row));
    }
    let context = conn.context();
    let now = context.inline(&READ_CLOCK, 1, &[]);
    let (cold, hot) = (context.inline(&STORE_PLAIN, jobs.len(), &cold), context.inline(&QUEUE_PLAIN, jobs.len(), &hot));
    let script = format!("{begin}{now}; {cold}; {hot}{commit}");
    let stored = conn.execute(DOING, script.into(), Vec::new()).await;
    if stored.is_err() {
        // The statements after the one that failed were not run. If this fails too, the connection is gone.
        let _ = conn.execute(DOING, "ROLLBACK".into(), Vec::new()).await;
    }
    stored.map(|_| ())
}

// The clock goes on between statements, but a job without delay is due when it is stored.
const READ_CLOCK: Stmt = Stmt::only_mysql("reading the clock for a submit", "SET @ratchet_now = /*now*/");

const STORE_PLAIN: Stmt = Stmt::only_mysql(
    "storing plain jobs as text",
    "INSERT INTO scheduler_job (/*columns:job.plain*/, created_at) \
     VALUES /*each*/(/*values:job.plain*/, @ratchet_now)/*end*/",
);

const QUEUE_PLAIN: Stmt = Stmt::only_mysql(
    "queueing plain jobs as text",
    "INSERT INTO scheduler_job_queue (/*columns:queue.plain*/, scheduled_time, updated_at) \
     VALUES /*each*/(/*values:queue.plain*/, COALESCE(?, @ratchet_now + INTERVAL ? MICROSECOND), @ratchet_now)/*end*/",
);

#[cfg(test)]
mod tests {
    use ratchet_core::{JobId, JobSpec, JsonText, Kind};
    use uuid::Uuid;

    use super::*;
    use crate::waist::conn::tests::{Scale, at_once};

    #[test]
    fn what_is_plain_is_one_statement() {
        let spec = JobSpec::new(Kind::new("k".repeat(128)).unwrap(), JsonText::from_store("0".repeat(100_000)));
        let unit = |jobs| {
            let job = |number| NewJob::new(JobId(Uuid::from_u128(number)), spec.clone());
            [SubmitUnit::of((0..jobs).map(job).collect())]
        };
        let largest = (1..100).rfind(|jobs| is_plain(Dialect::Postgres, &unit(*jobs))).unwrap();
        assert_eq!(largest, 41, "4 MiB by 100,000 bytes");
        for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Mariadb] {
            assert!(is_plain(dialect, &unit(largest)));
            let mut scale = Scale::new(dialect);
            at_once(submit_plain(&mut scale, &unit(largest))).unwrap();
            assert_eq!(scale.statements.len(), 1);
        }
    }
}
