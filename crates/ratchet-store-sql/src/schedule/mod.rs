//! Schedules: storing them, finding them, ending them.

mod schedule_store;
pub(crate) mod row;
pub(crate) mod fire;

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::schedule::{ArchiveReason, History, NewSchedule, ScheduleFilter, ScheduleRecord, may_end};
use ratchet_core::store::Declared;
use ratchet_core::{ErrorKind, JobId, StoreError, Tag, clock};
use uuid::Uuid;

use crate::cluster::database_time;
use crate::job_row::{find_by_business_key, json_of};
use crate::list::query::check_limit;
use crate::schedule::row::Stored;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[
    INSERT_SCHEDULES,
    INSERT_SCHEDULE_TAGS,
    LOCK_SCHEDULES,
    FIND_SCHEDULES,
    TOUCH_SCHEDULES,
    RETIRED,
    CHANGE_SCHEDULES,
    LIST_SCHEDULES,
    NEXT_FIRE,
    NEXT_FIRES,
    DUE_SCHEDULES,
    PAUSE_SCHEDULES,
    RESUME_SCHEDULES,
    ARCHIVE_SCHEDULES,
    DELETE_SCHEDULES,
    DELETE_SCHEDULE_TAGS,
    FREE_SCHEDULE_KEY,
];

const DOING: &str = "creating a schedule";

/// Stores a schedule; one of the same id is left as it is.
pub(crate) async fn create(conn: &mut dyn Conn, new: &NewSchedule) -> Result<(), StoreError> {
    if conn.rows_in(&LOCK_SCHEDULES, &[], &[new.id]).await?.is_empty() {
        insert(conn, new, History::default()).await?;
    }
    Ok(())
}

/// Stores a schedule that is not there, with what is left of an earlier life.
async fn insert(conn: &mut dyn Conn, new: &NewSchedule, before: History) -> Result<(), StoreError> {
    if let Some(key) = &new.business_key
        && !submit::take_business_key(conn, key.as_str(), new.id).await?
    {
        let holder = find_by_business_key(conn, key).await?.unwrap_or(new.id);
        return Err(StoreError::duplicate(DOING, key.clone(), holder));
    }
    let now = database_time(conn).await?;
    let mut values = vec![new.id.into()];
    values.extend(definition(new)?);
    values.extend([
        Value::opt_text(new.business_key.as_ref().map(AsRef::as_ref)),
        Value::from(new.declared),
        Value::opt_time(new.next_fire),
        Value::from(before.paused),
        Value::opt_time(before.last_fire),
        Value::Id(before.last_job.map(|id| id.0)),
        Value::count(before.fired),
        Value::count(before.skipped),
        now.into(),
        now.into(),
    ]);
    // Two nodes that declare the same at once: the loser tries again, and finds it there.
    let stored = conn.run_each(&INSERT_SCHEDULES, &[values], |one, values| values.extend_from_slice(one)).await;
    match stored {
        Ok(1) => {}
        Ok(_) => return Err(too_busy()),
        Err(error) if *error.kind() == ErrorKind::Conflict => return Err(too_busy()),
        Err(error) => return Err(error),
    }
    let bind = |tag: &Tag, values: &mut Vec<Value>| values.extend([tag.as_str().into(), new.id.into()]);
    conn.run_each(&INSERT_SCHEDULE_TAGS, &new.spec.tags, bind).await?;
    Ok(())
}

fn too_busy() -> StoreError {
    StoreError::new(ErrorKind::Transient, DOING, "another transaction stores the same schedule at this moment")
}

/// What a schedule does and when, in the order of the statements' columns.
fn definition(new: &NewSchedule) -> Result<[Value; 9], StoreError> {
    const NULL: Value = Value::Json(None);
    Ok([
        new.spec.kind.as_str().into(),
        new.spec.queue.as_str().into(),
        json_of(&new.spec)?,
        new.on_success.as_ref().map_or(Ok(NULL), json_of)?,
        new.on_failure.as_ref().map_or(Ok(NULL), json_of)?,
        json_of(&new.schedule)?,
        new.misfire.as_str().into(),
        Value::count(new.misfire.max()),
        new.overlap.as_str().into(),
    ])
}

const INSERT_SCHEDULES: Stmt = Stmt::shared(
    "storing a schedule",
    "INSERT INTO scheduler_recurring_job (recurring_id, kind, queue, /*columns:schedule.definition,schedule.life*/) \
     /*rows:id text text @schedule.definition @schedule.life*/ /*or_nothing*/",
);

const INSERT_SCHEDULE_TAGS: Stmt =
    Stmt::shared("tagging a schedule", "INSERT INTO scheduler_job_tag (tag, job_id) /*rows:text id*/");

/// Stores schedules that code declares, or changes them to what the code now says: two statements if none has changed.
pub(crate) async fn declare(conn: &mut dyn Conn, all: &[NewSchedule]) -> Result<Vec<Declared>, StoreError> {
    let mut ids: Vec<JobId> = all.iter().map(|new| new.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = conn.rows_in(&LOCK_SCHEDULES, &[], &ids).await?;
    let known = rows.iter().map(|row| Stored::of(row).map(|one| (one.id, one)));
    let known = known.collect::<Result<HashMap<JobId, Stored<'_>>, _>>()?;
    let mut declared = Vec::with_capacity(all.len());
    let mut unchanged = Vec::new();
    for new in all {
        declared.push(match known.get(&new.id) {
            None => {
                let before = history(conn, new.id).await?;
                insert(conn, new, before).await?;
                Declared::Created
            }
            Some(one) => match one.record() {
                Ok(record) if record.is_as_declared(new) => {
                    unchanged.push(new.id);
                    Declared::Unchanged
                }
                record => {
                    change(conn, one, record.ok().as_ref(), new).await?;
                    Declared::Changed
                }
            },
        });
    }
    conn.run_in(&TOUCH_SCHEDULES, &[], &unchanged).await?;
    Ok(declared)
}

/// Changes a schedule to what `new` says; `record` is what it was, if that can be read.
async fn change(
    conn: &mut dyn Conn,
    one: &Stored<'_>,
    record: Option<&ScheduleRecord>,
    new: &NewSchedule,
) -> Result<(), StoreError> {
    let now = database_time(conn).await?;
    let next_fire = record.map_or(new.next_fire, |record| record.next_fire_if_changed(new, now));
    let mut values: Vec<Value> = definition(new)?.into();
    values.extend([Value::opt_time(next_fire), new.id.into()]);
    conn.run(&CHANGE_SCHEDULES, values).await?;
    let tags = one.tags();
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    conn.run_in(&DELETE_SCHEDULE_TAGS, &[new.id.into()], &tags).await?;
    let bind = |tag: &Tag, values: &mut Vec<Value>| values.extend([tag.as_str().into(), new.id.into()]);
    conn.run_each(&INSERT_SCHEDULE_TAGS, &new.spec.tags, bind).await?;
    Ok(())
}

const RETIRED: Stmt = Stmt::shared(
    "looking for a schedule's earlier life",
    "SELECT snapshot FROM scheduler_recurring_job_archive WHERE recurring_id = ? AND archive_reason = ?",
);

/// What is left of a schedule that was retired and is declared again. What a person has ended begins anew.
async fn history(conn: &mut dyn Conn, id: JobId) -> Result<History, StoreError> {
    let retired = conn.row(&RETIRED, vec![id.into(), ArchiveReason::Retired.as_str().into()]).await?;
    retired.map_or(Ok(History::default()), |row| row.fields().parsed("snapshot", serde_json::from_str))
}

const TOUCH_SCHEDULES: Stmt = Stmt::shared(
    "declaring schedules again",
    "UPDATE scheduler_recurring_job /*by_id*/ SET updated_at = /*now*/ WHERE recurring_id /*any*/",
);

const CHANGE_SCHEDULES: Stmt = Stmt::shared(
    "changing a schedule",
    "UPDATE scheduler_recurring_job SET kind = ?, queue = ?, /*set:schedule.definition*/, next_fire_time = ?, \
     version = version + 1, updated_at = /*now*/ WHERE recurring_id = ?",
);

const LOCK_SCHEDULES: Stmt = Stmt::shared(
    "locking schedules",
    "SELECT r.recurring_id AS recurring_id, /*columns:schedule.definition,schedule.life r.as*/ \
     FROM scheduler_recurring_job r /*by_id*/ WHERE r.recurring_id /*any*/ ORDER BY r.recurring_id /*for_update*/",
);

/// Locks schedules and reads them, as far as they can be read.
pub(crate) async fn locked(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<ScheduleRecord>, StoreError> {
    readable(&conn.rows_in(&LOCK_SCHEDULES, &[], ids).await?)
}

fn readable(rows: &[Row]) -> Result<Vec<ScheduleRecord>, StoreError> {
    let mut records = Vec::with_capacity(rows.len());
    for row in rows {
        records.extend(Stored::of(row)?.readable());
    }
    Ok(records)
}

const FIND_SCHEDULES: Stmt = Stmt::shared(
    "reading schedules",
    "SELECT r.recurring_id AS recurring_id, /*columns:schedule.definition,schedule.life r.as*/ \
     FROM scheduler_recurring_job r WHERE r.recurring_id /*any*/",
);

/// Reads schedules by id, in the order of the ids; unknown ids are left out.
pub(crate) async fn find(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<ScheduleRecord>, StoreError> {
    let mut found = HashMap::with_capacity(ids.len());
    for row in conn.rows_in(&FIND_SCHEDULES, &[], ids).await? {
        let one = Stored::of(&row)?.record()?;
        found.insert(one.id, one);
    }
    Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
}

const LIST_SCHEDULES: Stmt = Stmt::shared(
    "listing schedules",
    "SELECT r.recurring_id AS recurring_id, /*columns:schedule.definition,schedule.life r.as*/ \
     FROM scheduler_recurring_job r WHERE r.recurring_id < ? AND (? IS NULL OR r.business_key = ?) \
     AND (? IS NULL OR r.declared = ?) AND (? IS NULL OR EXISTS (SELECT 1 FROM scheduler_job_tag t \
     WHERE t.tag = ? AND t.job_id = r.recurring_id)) ORDER BY r.recurring_id DESC LIMIT ?",
);

/// A page of schedules, newest first.
pub(crate) async fn list(
    conn: &mut dyn Conn,
    filter: &ScheduleFilter,
    after: Option<JobCursor>,
    limit: usize,
) -> Result<Page<ScheduleRecord>, StoreError> {
    check_limit(limit)?;
    let before = after.map_or_else(|| Value::Id(Some(Uuid::max())), |cursor| cursor.0.into());
    let key = || Value::opt_text(filter.business_key.as_ref().map(AsRef::as_ref));
    let declared = || Value::Bool(filter.declared);
    let tag = || Value::opt_text(filter.tag.as_ref().map(Tag::as_str));
    let values = vec![before, key(), key(), declared(), declared(), tag(), tag(), Value::count(limit + 1)];
    let rows = conn.rows(&LIST_SCHEDULES, values).await?;
    let page = &rows[..rows.len().min(limit)];
    let last = page.last().filter(|_| rows.len() > limit).map(Stored::of).transpose()?;
    Ok(Page { items: readable(page)?, next: last.map(|one| JobCursor(one.id)) })
}

const NEXT_FIRE: Stmt = Stmt::shared(
    "asking for the next fire",
    "SELECT /*now*/ AS now, MIN(next_fire_time) AS next_fire_time FROM scheduler_recurring_job WHERE paused = /*no*/",
);

/// How long until the next fire of any schedule.
pub(crate) async fn next_fire(conn: &mut dyn Conn) -> Result<Option<Duration>, StoreError> {
    let Some(row) = conn.row(&NEXT_FIRE, vec![]).await? else { return Ok(None) };
    let mut fields = row.fields();
    let now = fields.time("now")?;
    let Some(next) = fields.opt_time("next_fire_time")? else { return Ok(None) };
    if next > now {
        return Ok(Some(clock::elapsed(now, next)));
    }
    // One that cannot be read is never fired, and always due: who waits for it would ask without end.
    let rows = conn.rows(&NEXT_FIRES, vec![Value::count(UNREADABLE_MAX)]).await?;
    for row in &rows {
        let one = Stored::of(row)?;
        if let (Ok(_), Some(next)) = (one.record(), one.next_fire) {
            return Ok(Some(clock::elapsed(now, next)));
        }
    }
    Ok(None)
}

/// How many schedules that cannot be read may be due before those behind them are not seen any more.
const UNREADABLE_MAX: usize = 100;

const NEXT_FIRES: Stmt = Stmt::shared(
    "looking for the next fire",
    "SELECT r.recurring_id AS recurring_id, /*columns:schedule.definition,schedule.life r.as*/ \
     FROM scheduler_recurring_job r WHERE r.paused = /*no*/ AND r.next_fire_time IS NOT NULL \
     ORDER BY r.next_fire_time, r.recurring_id LIMIT ?",
);

const DUE_SCHEDULES: Stmt = Stmt::shared(
    "looking for schedules that are due",
    "SELECT r.recurring_id AS recurring_id, /*columns:schedule.definition,schedule.life r.as*/ \
     FROM scheduler_recurring_job r WHERE r.paused = /*no*/ AND r.next_fire_time <= ? \
     ORDER BY r.next_fire_time, r.recurring_id LIMIT ?",
);

/// Schedules that are due, the longest due first, and the time.
pub(crate) async fn due(conn: &mut dyn Conn, limit: usize) -> Result<(Timestamp, Vec<ScheduleRecord>), StoreError> {
    let now = database_time(conn).await?;
    let rows = conn.rows(&DUE_SCHEDULES, vec![now.into(), Value::count(limit + UNREADABLE_MAX)]).await?;
    let mut due = readable(&rows)?;
    due.truncate(limit);
    Ok((now, due))
}

const PAUSE_SCHEDULES: Stmt = Stmt::shared(
    "pausing a schedule",
    "UPDATE scheduler_recurring_job SET paused = /*yes*/, version = version + 1, updated_at = /*now*/ \
     WHERE recurring_id = ? AND paused = /*no*/",
);

/// Suspends a schedule.
pub(crate) async fn pause(conn: &mut dyn Conn, id: JobId) -> Result<bool, StoreError> {
    Ok(conn.run(&PAUSE_SCHEDULES, vec![id.into()]).await? == 1)
}

const RESUME_SCHEDULES: Stmt = Stmt::shared(
    "resuming a schedule",
    "UPDATE scheduler_recurring_job SET paused = /*no*/, next_fire_time = ?, version = version + 1, \
     updated_at = /*now*/ WHERE recurring_id = ? AND paused = /*yes*/",
);

/// Lets a paused schedule go on.
pub(crate) async fn resume(conn: &mut dyn Conn, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
    Ok(conn.run(&RESUME_SCHEDULES, vec![Value::opt_time(next_fire), id.into()]).await? == 1)
}

/// Ends a schedule: kept in the archive, its key and its tags freed.
pub(crate) async fn cancel(
    conn: &mut dyn Conn,
    id: JobId,
    reason: ArchiveReason,
    idle_for: Option<Duration>,
) -> Result<bool, StoreError> {
    let rows = conn.rows_in(&LOCK_SCHEDULES, &[], &[id]).await?;
    let Some(row) = rows.first() else { return Ok(false) };
    let one = Stored::of(row)?;
    let now = database_time(conn).await?;
    if !may_end(one.updated_at, idle_for, now) {
        return Ok(false);
    }
    conn.run(&ARCHIVE_SCHEDULES, vec![id.into(), one.snapshot()?, now.into(), reason.as_str().into()]).await?;
    conn.run(&DELETE_SCHEDULES, vec![id.into()]).await?;
    let tags = one.tags();
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    conn.run_in(&DELETE_SCHEDULE_TAGS, &[id.into()], &tags).await?;
    if let Some(key) = one.business_key {
        conn.run(&FREE_SCHEDULE_KEY, vec![key.into(), id.into()]).await?;
    }
    Ok(true)
}

// A declared schedule has the same id in every life; the last one is kept.
const ARCHIVE_SCHEDULES: Stmt = Stmt::shared(
    "archiving a schedule",
    "INSERT INTO scheduler_recurring_job_archive (recurring_id, snapshot, archived_at, archive_reason) \
     VALUES (?, ?, ?, ?) ON CONFLICT (recurring_id) DO UPDATE SET snapshot = excluded.snapshot, \
     archived_at = excluded.archived_at, archive_reason = excluded.archive_reason",
)
.mysql(
    "REPLACE INTO scheduler_recurring_job_archive (recurring_id, snapshot, archived_at, archive_reason) \
     VALUES (?, ?, ?, ?)",
);

const DELETE_SCHEDULES: Stmt =
    Stmt::shared("deleting a schedule", "DELETE FROM scheduler_recurring_job WHERE recurring_id = ?");

const DELETE_SCHEDULE_TAGS: Stmt =
    Stmt::shared("deleting the tags of a schedule", "DELETE FROM scheduler_job_tag WHERE job_id = ? AND tag /*any*/");

const FREE_SCHEDULE_KEY: Stmt = Stmt::shared(
    "freeing the key of a schedule",
    "DELETE FROM scheduler_business_key_reservation WHERE business_key = ? AND owner_job_id = ?",
);
