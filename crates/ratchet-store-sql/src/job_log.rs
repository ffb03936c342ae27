//! What handlers wrote down.

use jiff::Timestamp;
use ratchet_core::store::{PurgeLog, PurgedLog};
use ratchet_core::{ErrorKind, JobId, JsonText, LogFilter, LogLevel, LogLine, LogPage, LogPlace, StoreError, clock};
use uuid::Uuid;

use crate::cluster::database_time;
use crate::conn::Conn;
use crate::dialect::Dialect;
use crate::query::check_limit;
use crate::row::Row;
use crate::stmt::Stmt;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[APPEND, APPEND_NEW, READ_LINES, OLD_LINES, PURGE_LINES, DELETE_LOG, DELETE_LOGS];

// A line that is there already stays. MySQL's INSERT IGNORE would pass over every other fault of a row too.
const APPEND: Stmt = Stmt::shared(
    "writing jobs' logs",
    "INSERT INTO scheduler_job_log (job_id, version, seq, attempt, level, node_id, logged_at, message, fields) \
     /*rows:id int int int int id time text json*/ ON CONFLICT DO NOTHING",
)
.mysql(
    "INSERT INTO scheduler_job_log (job_id, version, seq, attempt, level, node_id, logged_at, message, fields) \
     /*rows:id int int int int id time text json*/ ON DUPLICATE KEY UPDATE seq = scheduler_job_log.seq",
);

// Looking first whether a line is there makes it half as dear again. And its commit does not wait for the disk, where the
// commits of settled jobs would wait behind it: a server that dies may lose the lines of its last half second, never a job.
// The setting ends with the transaction, which is this statement.
const APPEND_NEW: Stmt = Stmt::only_postgres(
    "writing new lines of jobs' logs",
    "INSERT INTO scheduler_job_log (job_id, version, seq, attempt, level, node_id, logged_at, message, fields) \
     /*rows:id int int int int id time text json*/ \
     WHERE (SELECT set_config('synchronous_commit', 'off', true)) = 'off'",
);

/// Whether it pays to take lines for new, as all are that are not written a second time; see [`append_new`].
pub fn is_cheaper_for_new(dialect: Dialect) -> bool {
    dialect == Dialect::Postgres
}

/// Appends lines on the assumption that none is there; a [`Conflict`](ErrorKind::Conflict) if one is, and then [`append`] has
/// to be called.
pub async fn append_new(conn: &mut dyn Conn, lines: &[LogLine]) -> Result<(), StoreError> {
    conn.run_each(&APPEND_NEW, lines, bind).await?;
    Ok(())
}

/// Appends lines. Each statement stands alone: half of them written, and all written again, comes to the same.
pub async fn append(conn: &mut dyn Conn, lines: &[LogLine]) -> Result<(), StoreError> {
    conn.run_each(&APPEND, lines, bind).await?;
    Ok(())
}

fn bind(line: &LogLine, values: &mut Vec<Value>) {
    values.extend([
        line.job_id.into(),
        Value::count(line.version),
        Value::count(line.seq),
        Value::count(line.attempt),
        Value::count(line.level.number()),
        line.node.into(),
        line.at.into(),
        line.message.as_str().into(),
        Value::opt_json(line.fields.as_ref().map(JsonText::as_str)),
    ]);
}

const READ_LINES: Stmt = Stmt::shared(
    "reading a job's log",
    "SELECT version, seq, attempt, level, node_id, logged_at, message, fields FROM scheduler_job_log \
     WHERE job_id = ? AND version >= ? AND (version > ? OR seq > ?) AND level >= ? AND attempt >= ? AND attempt <= ? \
     ORDER BY version, seq LIMIT ?",
);

/// A page of a job's log.
pub async fn read(
    conn: &mut dyn Conn,
    id: JobId,
    filter: &LogFilter,
    after: Option<LogPlace>,
    limit: usize,
) -> Result<LogPage, StoreError> {
    check_limit(limit)?;
    let after = after.unwrap_or(LogPlace { version: 0, seq: 0 });
    let (least, most) = filter.attempt.map_or((0, u32::MAX), |attempt| (attempt, attempt));
    let values = vec![
        id.into(),
        Value::count(after.version),
        Value::count(after.version),
        Value::count(after.seq),
        Value::count(filter.level_min.number()),
        Value::count(least),
        Value::count(most),
        Value::count(limit + 1),
    ];
    let rows = conn.rows(&READ_LINES, values).await?;
    let mut lines = rows.iter().map(|row| line_of(id, row)).collect::<Result<Vec<_>, _>>()?;
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(LogLine::place);
    Ok(LogPage { lines, next })
}

fn line_of(job_id: JobId, row: &Row) -> Result<LogLine, StoreError> {
    let mut fields = row.fields();
    let (version, seq, attempt) = (fields.number("version")?, fields.number("seq")?, fields.number("attempt")?);
    let level = LogLevel::from_number(fields.number("level")?).ok_or_else(|| {
        let problem = "its level is unknown to this version";
        StoreError::new(ErrorKind::Invalid, format!("reading line {version}-{seq} of job {job_id}'s log"), problem)
    })?;
    Ok(LogLine {
        job_id,
        version,
        seq,
        attempt,
        level,
        node: fields.node_id("node_id")?,
        at: fields.time("logged_at")?,
        message: fields.text("message")?.to_owned(),
        fields: fields.opt_text("fields")?.map(JsonText::from_store),
    })
}

// Ids tell when jobs were made, so the primary key finds old lines too: there is no index by time that every line would
// have to be entered in.
const OLD_LINES: Stmt = Stmt::shared(
    "looking for old lines in jobs' logs",
    "SELECT job_id, version, seq, logged_at FROM scheduler_job_log WHERE job_id >= ? AND job_id < ? \
     AND (job_id > ? OR version > ? OR (version = ? AND seq > ?)) ORDER BY job_id, version, seq LIMIT ?",
);

// MariaDB finds no rows by an index through a list of tuples.
const PURGE_LINES: Stmt = Stmt::shared(
    "deleting old lines of jobs' logs",
    "DELETE FROM scheduler_job_log WHERE (job_id, version, seq) IN (/*rows:id int int*/)",
)
.mysql(
    "DELETE l FROM (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS version, ? AS seq/*end*/) v \
     STRAIGHT_JOIN scheduler_job_log l FORCE INDEX (PRIMARY) \
     ON l.job_id = v.job_id AND l.version = v.version AND l.seq = v.seq",
);

/// Deletes some lines that are old enough.
pub async fn purge(conn: &mut dyn Conn, request: &PurgeLog) -> Result<PurgedLog, StoreError> {
    if request.limit == 0 {
        return Ok(PurgedLog { last: request.after, ..PurgedLog::default() });
    }
    let cutoff = clock::earlier(database_time(conn).await?, request.age);
    let (id, place) = request.after.unwrap_or((JobId(Uuid::nil()), LogPlace { version: 0, seq: 0 }));
    let values = vec![
        id.into(),
        JobId::floor(cutoff).into(),
        id.into(),
        Value::count(place.version),
        Value::count(place.version),
        Value::count(place.seq),
        Value::count(request.limit),
    ];
    let rows = conn.rows(&OLD_LINES, values).await?;
    let looked_at = rows.iter().map(old_line).collect::<Result<Vec<_>, _>>()?;
    let old: Vec<(JobId, LogPlace)> =
        looked_at.iter().filter(|(_, _, at)| *at <= cutoff).map(|(id, place, _)| (*id, *place)).collect();
    let purged = conn.run_each(&PURGE_LINES, &old, |(id, place), values| {
        values.extend([(*id).into(), Value::count(place.version), Value::count(place.seq)]);
    });
    let purged = purged.await?;
    let last = looked_at.last().map(|(id, place, _)| (*id, *place)).or(request.after);
    Ok(PurgedLog { purged, last, more: looked_at.len() == request.limit })
}

fn old_line(row: &Row) -> Result<(JobId, LogPlace, Timestamp), StoreError> {
    let mut fields = row.fields();
    let id = fields.job_id("job_id")?;
    let place = LogPlace { version: fields.number("version")?, seq: fields.number("seq")? };
    Ok((id, place, fields.time("logged_at")?))
}

const DELETE_LOG: Stmt = Stmt::shared("deleting a job's log", "DELETE FROM scheduler_job_log WHERE job_id = ?");

/// Deletes all lines of a job.
pub(crate) async fn delete(conn: &mut dyn Conn, id: JobId) -> Result<(), StoreError> {
    conn.run(&DELETE_LOG, vec![id.into()]).await?;
    Ok(())
}

const DELETE_LOGS: Stmt =
    Stmt::shared("deleting the logs of jobs", "DELETE FROM scheduler_job_log WHERE job_id /*any*/");

/// Deletes all lines of jobs.
pub(crate) async fn delete_all(conn: &mut dyn Conn, ids: &[JobId]) -> Result<(), StoreError> {
    conn.run_in(&DELETE_LOGS, &[], ids).await?;
    Ok(())
}
