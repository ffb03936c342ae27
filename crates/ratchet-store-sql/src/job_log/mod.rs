//! What handlers wrote down.

mod job_log_store;
pub(crate) mod group;

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

use jiff::Timestamp;
use ratchet_core::store::{PurgeLog, PurgedLog};
use ratchet_core::{JobId, LogFilter, LogLine, LogPage, LogPlace, StoreError, clock};
use uuid::Uuid;

use crate::cluster::database_time;
use crate::job_log::group::{LogGroup, groups, lines_from_to, lines_of};
use crate::list::query::check_limit;
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[APPEND_NEW, GROUPS_THERE, APPEND, READ_GROUPS, OLD_GROUPS, PURGE_GROUPS, DELETE_LOG, DELETE_LOGS];

// Looking first whether a line is there makes it half as dear again. And on PostgreSQL its commit does not wait for the disk,
// where the commits of settled jobs would wait behind it: a server that dies may lose the lines of its last half second, never a
// job. The setting ends with the transaction, which is this statement.
const APPEND_NEW: Stmt =
    Stmt::shared("writing jobs' logs", "INSERT INTO scheduler_job_log (/*columns:log*/) /*rows:@log*/").postgres(
        "INSERT INTO scheduler_job_log (/*columns:log*/) /*rows:@log*/ \
     WHERE (SELECT set_config('synchronous_commit', 'off', true)) = 'off'",
    );

/// Appends lines on the assumption that none is there, as is so unless they are given again; a
/// [`Conflict`](ratchet_core::ErrorKind::Conflict) if one is, and then [`append_missing`] has to be called.
pub(crate) async fn append_new(conn: &mut dyn Conn, lines: &[LogLine]) -> Result<(), StoreError> {
    let groups = groups(lines)?;
    conn.run_each(&APPEND_NEW, &groups, LogGroup::bind).await?;
    Ok(())
}

const GROUPS_THERE: Stmt = Stmt::shared(
    "looking which lines are in jobs' logs",
    "SELECT job_id, version, seq, seq_last FROM scheduler_job_log WHERE job_id /*any*/",
);

// What another call has written meanwhile stays. MySQL's INSERT IGNORE would pass over every other fault of a row too.
const APPEND: Stmt = Stmt::shared(
    "writing what is missing in jobs' logs",
    "INSERT INTO scheduler_job_log (/*columns:log*/) /*rows:@log*/ ON CONFLICT DO NOTHING",
)
.mysql(
    "INSERT INTO scheduler_job_log (/*columns:log*/) /*rows:@log*/ ON DUPLICATE KEY UPDATE seq = scheduler_job_log.seq",
);

/// Appends those lines that are not there. Each statement stands alone: half of them written, and all written again, comes to
/// the same.
pub(crate) async fn append_missing(conn: &mut dyn Conn, lines: &[LogLine]) -> Result<(), StoreError> {
    let ids: BTreeSet<JobId> = lines.iter().map(|line| line.job_id).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let mut there: HashMap<(JobId, u64), Vec<RangeInclusive<u32>>> = HashMap::new();
    for row in conn.rows_in(&GROUPS_THERE, &[], &ids).await? {
        let mut fields = row.fields();
        let attempt = (fields.job_id("job_id")?, fields.number("version")?);
        there.entry(attempt).or_default().push(fields.number("seq")?..=fields.number("seq_last")?);
    }
    let is_there = |line: &LogLine| {
        let ranges = there.get(&(line.job_id, line.version));
        ranges.is_some_and(|ranges| ranges.iter().any(|range| range.contains(&line.seq)))
    };
    let groups = groups(lines.iter().filter(|line| !is_there(line)))?;
    conn.run_each(&APPEND, &groups, LogGroup::bind).await?;
    Ok(())
}

const READ_GROUPS: Stmt = Stmt::shared(
    "reading a job's log",
    "SELECT version, seq, attempt, node_id, content FROM scheduler_job_log \
     WHERE job_id = ? AND version >= ? AND (version > ? OR seq_last > ?) AND level >= ? AND attempt >= ? AND attempt <= ? \
     ORDER BY version, seq LIMIT ?",
);

/// Most rows that are read at once: each may have many lines.
const GROUPS_AT_ONCE: usize = 100;

/// A page of a job's log.
pub(crate) async fn read(
    conn: &mut dyn Conn,
    id: JobId,
    filter: &LogFilter,
    after: Option<LogPlace>,
    limit: usize,
) -> Result<LogPage, StoreError> {
    check_limit(limit)?;
    let (least, most) = filter.attempt.map_or((0, u32::MAX), |attempt| (attempt, attempt));
    let at_once = GROUPS_AT_ONCE.min(limit + 1);
    let mut reached = after.unwrap_or(LogPlace { version: 0, seq: 0 });
    let mut lines = Vec::new();
    // Every row has a line that comes after what was reached, so this ends.
    loop {
        let values = vec![
            id.into(),
            Value::count(reached.version),
            Value::count(reached.version),
            Value::count(reached.seq),
            Value::count(filter.level_min.number()),
            Value::count(least),
            Value::count(most),
            Value::count(at_once),
        ];
        let rows = conn.rows(&READ_GROUPS, values).await?;
        for row in &rows {
            for line in lines_of(id, row)? {
                // A line that was given again, with others than the first time, is in two rows.
                if line.place() > reached {
                    reached = line.place();
                    lines.extend(filter.passes(&line).then_some(line));
                }
            }
        }
        if rows.len() < at_once || lines.len() > limit {
            break;
        }
    }
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(LogLine::place);
    Ok(LogPage { lines, next })
}

// Ids tell when jobs were made, so the primary key finds old lines too: there is no index by time that every line would
// have to be entered in.
const OLD_GROUPS: Stmt = Stmt::shared(
    "looking for old lines in jobs' logs",
    "SELECT job_id, version, seq, seq_last, logged_at FROM scheduler_job_log WHERE job_id >= ? AND job_id < ? \
     AND (job_id > ? OR version > ? OR (version = ? AND seq > ?)) ORDER BY job_id, version, seq LIMIT ?",
);

// MariaDB finds no rows by an index through a list of tuples.
const PURGE_GROUPS: Stmt = Stmt::shared(
    "deleting old lines of jobs' logs",
    "DELETE FROM scheduler_job_log WHERE (job_id, version, seq) IN (/*rows:id int int*/)",
)
.mysql(
    "DELETE l FROM (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS version, ? AS seq/*end*/) v \
     STRAIGHT_JOIN scheduler_job_log l FORCE INDEX (PRIMARY) \
     ON l.job_id = v.job_id AND l.version = v.version AND l.seq = v.seq",
);

/// Deletes some lines that are old enough.
pub(crate) async fn purge(conn: &mut dyn Conn, request: &PurgeLog) -> Result<PurgedLog, StoreError> {
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
    let rows = conn.rows(&OLD_GROUPS, values).await?;
    let looked_at = rows.iter().map(OldGroup::of).collect::<Result<Vec<_>, _>>()?;
    let old: Vec<&OldGroup> = looked_at.iter().filter(|group| group.at <= cutoff).collect();
    let deleted = conn.run_each(&PURGE_GROUPS, &old, |group, values| {
        values.extend([group.id.into(), Value::count(group.place.version), Value::count(group.place.seq)]);
    });
    deleted.await?;
    let purged = old.iter().map(|group| group.lines as u64).sum();
    let last = looked_at.last().map(|group| (group.id, group.place)).or(request.after);
    Ok(PurgedLog { purged, last, more: looked_at.len() == request.limit })
}

/// What a purge has to know of a row.
struct OldGroup {
    id: JobId,
    place: LogPlace,
    lines: usize,
    at: Timestamp,
}

impl OldGroup {
    fn of(row: &Row) -> Result<Self, StoreError> {
        let mut fields = row.fields();
        let id = fields.job_id("job_id")?;
        let place = LogPlace { version: fields.number("version")?, seq: fields.number("seq")? };
        let lines = lines_from_to(place.seq, fields.number("seq_last")?);
        Ok(Self { id, place, lines, at: fields.time("logged_at")? })
    }
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
