//! Schedules: storing them, finding them, firing them.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::recurring::{ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord, arrange};
use ratchet_core::schedule::{MisfirePolicy, OverlapPolicy};
use ratchet_core::store::{Declared, Fired};
use ratchet_core::{BusinessKey, ErrorKind, JobId, NewJob, StoreError, Tag, clock};
use uuid::Uuid;

use crate::cluster::database_time;
use crate::conn::Conn;
use crate::edges;
use crate::query::check_limit;
use crate::read::{find_by_business_key, json_of};
use crate::row::Row;
use crate::stmt::Stmt;
use crate::submit;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[
    INSERT_RECURRING,
    INSERT_RECURRING_TAGS,
    LOCK_RECURRING,
    FIND_RECURRING,
    TOUCH_RECURRING,
    CHANGE_RECURRING,
    LIST_RECURRING,
    NEXT_FIRE,
    DUE_RECURRING,
    LIVE_JOBS,
    QUEUED_BEHIND,
    ADVANCE_RECURRING,
    PAUSE_RECURRING,
    RESUME_RECURRING,
    ARCHIVE_RECURRING,
    DELETE_RECURRING,
    DELETE_RECURRING_TAGS,
    FREE_RECURRING_KEY,
];

const DOING: &str = "creating a schedule";

/// Stores a schedule; one of the same id is left as it is.
pub async fn create(conn: &mut dyn Conn, new: &NewRecurring) -> Result<(), StoreError> {
    if locked(conn, &[new.id]).await?.is_empty() {
        insert(conn, new).await?;
    }
    Ok(())
}

async fn insert(conn: &mut dyn Conn, new: &NewRecurring) -> Result<(), StoreError> {
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
        now.into(),
        now.into(),
    ]);
    // Two nodes that declare the same at once: the loser tries again, and finds it there.
    match conn.run(&INSERT_RECURRING, values).await {
        Ok(1) => {}
        Ok(_) => return Err(too_busy()),
        Err(error) if *error.kind() == ErrorKind::Conflict => return Err(too_busy()),
        Err(error) => return Err(error),
    }
    let bind = |tag: &Tag, values: &mut Vec<Value>| values.extend([tag.as_str().into(), new.id.into()]);
    conn.run_each(&INSERT_RECURRING_TAGS, &new.spec.tags, bind).await?;
    Ok(())
}

fn too_busy() -> StoreError {
    StoreError::new(ErrorKind::Transient, DOING, "another transaction stores the same schedule at this moment")
}

/// What a schedule does and when, in the order of the statements' columns.
fn definition(new: &NewRecurring) -> Result<[Value; 9], StoreError> {
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

const INSERT_RECURRING: Stmt = Stmt::shared(
    "storing a schedule",
    "INSERT INTO scheduler_recurring_job (recurring_id, kind, queue, spec, on_success, on_failure, schedule, \
     misfire_policy, max_catch_up, overlap_policy, business_key, declared, next_fire_time, created_at, updated_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) /*or_nothing*/",
);

const INSERT_RECURRING_TAGS: Stmt =
    Stmt::shared("tagging a schedule", "INSERT INTO scheduler_job_tag (tag, job_id) /*rows:text id*/");

/// Stores a schedule that code declares, or changes it to what the code now says.
pub async fn declare(conn: &mut dyn Conn, new: &NewRecurring) -> Result<Declared, StoreError> {
    let Some(known) = locked(conn, &[new.id]).await?.pop() else {
        insert(conn, new).await?;
        return Ok(Declared::Created);
    };
    if known.is_as_declared(new) {
        conn.run(&TOUCH_RECURRING, vec![new.id.into()]).await?;
        return Ok(Declared::Unchanged);
    }
    let mut values: Vec<Value> = definition(new)?.into();
    values.extend([Value::opt_time(new.next_fire), new.id.into()]);
    conn.run(&CHANGE_RECURRING, values).await?;
    let tags: Vec<&str> = known.spec.tags.iter().map(Tag::as_str).collect();
    conn.run_in(&DELETE_RECURRING_TAGS, &[new.id.into()], &tags).await?;
    let bind = |tag: &Tag, values: &mut Vec<Value>| values.extend([tag.as_str().into(), new.id.into()]);
    conn.run_each(&INSERT_RECURRING_TAGS, &new.spec.tags, bind).await?;
    Ok(Declared::Changed)
}

const TOUCH_RECURRING: Stmt = Stmt::shared(
    "declaring a schedule again",
    "UPDATE scheduler_recurring_job SET updated_at = /*now*/ WHERE recurring_id = ?",
);

const CHANGE_RECURRING: Stmt = Stmt::shared(
    "changing a schedule",
    "UPDATE scheduler_recurring_job SET kind = ?, queue = ?, spec = ?, on_success = ?, on_failure = ?, schedule = ?, \
     misfire_policy = ?, max_catch_up = ?, overlap_policy = ?, next_fire_time = ?, version = version + 1, \
     updated_at = /*now*/ WHERE recurring_id = ?",
);

macro_rules! columns {
    () => {
        "r.recurring_id AS recurring_id, r.spec AS spec, r.on_success AS on_success, r.on_failure AS on_failure, \
         r.schedule AS schedule, r.misfire_policy AS misfire_policy, r.max_catch_up AS max_catch_up, \
         r.overlap_policy AS overlap_policy, r.business_key AS business_key, r.declared AS declared, \
         r.paused AS paused, r.next_fire_time AS next_fire_time, r.last_fire_time AS last_fire_time, \
         r.last_job_id AS last_job_id, r.fired_count AS fired_count, r.skipped_count AS skipped_count, \
         r.created_at AS created_at, r.updated_at AS updated_at"
    };
}

const LOCK_RECURRING: Stmt = Stmt::shared(
    "locking schedules",
    concat!(
        "SELECT ",
        columns!(),
        " FROM scheduler_recurring_job r /*by_id*/ WHERE r.recurring_id /*any*/ ORDER BY r.recurring_id /*for_update*/"
    ),
);

async fn locked(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError> {
    conn.rows_in(&LOCK_RECURRING, &[], ids).await?.iter().map(record_of).collect()
}

const FIND_RECURRING: Stmt = Stmt::shared(
    "reading schedules",
    concat!("SELECT ", columns!(), " FROM scheduler_recurring_job r WHERE r.recurring_id /*any*/"),
);

/// Reads schedules by id, in the order of the ids; unknown ids are left out.
pub async fn find(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError> {
    let mut found = HashMap::with_capacity(ids.len());
    for row in conn.rows_in(&FIND_RECURRING, &[], ids).await? {
        let one = record_of(&row)?;
        found.insert(one.id, one);
    }
    Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
}

fn record_of(row: &Row) -> Result<RecurringRecord, StoreError> {
    let mut fields = row.fields();
    let id = fields.job_id("recurring_id")?;
    let spec = fields.parsed("spec", serde_json::from_str)?;
    let on_success = fields.opt_parsed("on_success", serde_json::from_str)?;
    let on_failure = fields.opt_parsed("on_failure", serde_json::from_str)?;
    let schedule = fields.parsed("schedule", serde_json::from_str)?;
    let misfire = fields.text("misfire_policy")?;
    let max: u32 = fields.number("max_catch_up")?;
    let misfire = MisfirePolicy::from_parts(misfire, max).ok_or_else(|| {
        let problem = format!("its misfire policy is {misfire}, which this version does not know");
        StoreError::new(ErrorKind::Invalid, format!("reading schedule {id}"), problem)
    })?;
    let overlap: OverlapPolicy = fields.parsed("overlap_policy", str::parse)?;
    Ok(RecurringRecord {
        id,
        spec,
        on_success,
        on_failure,
        schedule,
        misfire,
        overlap,
        business_key: fields.opt_parsed("business_key", BusinessKey::new)?,
        declared: fields.bool("declared")?,
        paused: fields.bool("paused")?,
        next_fire: fields.opt_time("next_fire_time")?,
        last_fire: fields.opt_time("last_fire_time")?,
        last_job: fields.opt_job_id("last_job_id")?,
        fired: fields.number("fired_count")?,
        skipped: fields.number("skipped_count")?,
        created_at: fields.time("created_at")?,
        updated_at: fields.time("updated_at")?,
    })
}

const LIST_RECURRING: Stmt = Stmt::shared(
    "listing schedules",
    concat!(
        "SELECT ",
        columns!(),
        " FROM scheduler_recurring_job r WHERE r.recurring_id < ? AND (? IS NULL OR r.business_key = ?) \
         AND (? IS NULL OR r.declared = ?) AND (? IS NULL OR EXISTS (SELECT 1 FROM scheduler_job_tag t \
         WHERE t.tag = ? AND t.job_id = r.recurring_id)) ORDER BY r.recurring_id DESC LIMIT ?"
    ),
);

/// A page of schedules, newest first.
pub async fn list(
    conn: &mut dyn Conn,
    filter: &RecurringFilter,
    after: Option<JobCursor>,
    limit: usize,
) -> Result<Page<RecurringRecord>, StoreError> {
    check_limit(limit)?;
    let before = after.map_or_else(|| Value::Id(Some(Uuid::max())), |cursor| cursor.0.into());
    let key = || Value::opt_text(filter.business_key.as_ref().map(AsRef::as_ref));
    let declared = || Value::Bool(filter.declared);
    let tag = || Value::opt_text(filter.tag.as_ref().map(Tag::as_str));
    let values = vec![before, key(), key(), declared(), declared(), tag(), tag(), Value::count(limit + 1)];
    let rows = conn.rows(&LIST_RECURRING, values).await?;
    let mut items = rows.iter().map(record_of).collect::<Result<Vec<_>, _>>()?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|one| JobCursor(one.id));
    Ok(Page { items, next })
}

const NEXT_FIRE: Stmt = Stmt::shared(
    "asking for the next fire",
    "SELECT /*now*/ AS now, MIN(next_fire_time) AS next_fire_time FROM scheduler_recurring_job WHERE paused = /*no*/",
);

/// How long until the next fire of any schedule.
pub async fn next_fire(conn: &mut dyn Conn) -> Result<Option<Duration>, StoreError> {
    let Some(row) = conn.row(&NEXT_FIRE, vec![]).await? else { return Ok(None) };
    let mut fields = row.fields();
    let now = fields.time("now")?;
    Ok(fields.opt_time("next_fire_time")?.map(|next| clock::elapsed(now, next)))
}

const DUE_RECURRING: Stmt = Stmt::shared(
    "looking for schedules that are due",
    concat!(
        "SELECT ",
        columns!(),
        " FROM scheduler_recurring_job r WHERE r.paused = /*no*/ AND r.next_fire_time <= ? \
         ORDER BY r.next_fire_time, r.recurring_id LIMIT ?"
    ),
);

/// Schedules that are due, the longest due first, and the time.
pub async fn due(conn: &mut dyn Conn, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError> {
    let now = database_time(conn).await?;
    let rows = conn.rows(&DUE_RECURRING, vec![now.into(), Value::count(limit)]).await?;
    Ok((now, rows.iter().map(record_of).collect::<Result<_, _>>()?))
}

/// Fires schedules: each with its jobs and its next fire.
pub async fn fire(conn: &mut dyn Conn, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
    let mut ids: Vec<JobId> = firings.iter().map(|firing| firing.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut records: HashMap<JobId, RecurringRecord> =
        locked(conn, &ids).await?.into_iter().map(|one| (one.id, one)).collect();
    let last: Vec<JobId> =
        records.values().filter(|one| one.overlap != OverlapPolicy::Allow).filter_map(|one| one.last_job).collect();
    let live = live_jobs(conn, last).await?;
    let mut fired = Vec::with_capacity(firings.len());
    let mut done = Vec::new();
    for firing in firings {
        // Taken out, so that a schedule fires once in a call.
        let good = |one: &RecurringRecord| !one.paused && one.next_fire == Some(firing.expected);
        let Some(one) = records.remove(&firing.id).filter(good) else {
            fired.push(Fired::Conflict);
            continue;
        };
        let queued = if one.overlap == OverlapPolicy::Queue { queued_behind(conn, one.id).await? } else { 0 };
        let last = one.last_job.filter(|id| live.contains(id));
        let arranged = arrange(firing, one.overlap, last, queued);
        let jobs: Vec<&NewJob> = arranged.jobs.iter().collect();
        submit::submit_following(conn, &jobs).await?;
        let edges: Vec<_> = arranged.edges.iter().collect();
        edges::store(conn, &edges, one.updated_at).await?;
        fired.push(Fired::Done { jobs: jobs.len() as u64, skipped: arranged.skipped });
        done.push((firing, arranged.jobs.last().map(|job| job.id), jobs.len() as u64, arranged.skipped));
    }
    conn.run_each(&ADVANCE_RECURRING, &done, |(firing, last_job, jobs, skipped), values| {
        values.extend([
            firing.id.into(),
            Value::opt_time(firing.next),
            Value::opt_time(firing.last_fire),
            Value::Id(last_job.map(|id| id.0)),
            Value::count(*jobs),
            Value::count(*skipped),
        ]);
    })
    .await?;
    Ok(fired)
}

const LIVE_JOBS: Stmt = Stmt::shared(
    "locking the last jobs of schedules",
    "SELECT job_id FROM scheduler_job_queue /*by_id*/ WHERE job_id /*any*/ ORDER BY job_id /*for_update*/",
);

/// Which of these jobs have not ended; locked, so that none of them ends before an edge from it is stored.
async fn live_jobs(conn: &mut dyn Conn, mut ids: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
    ids.sort_unstable();
    ids.dedup();
    let rows = conn.rows_in(&LIVE_JOBS, &[], &ids).await?;
    rows.iter().map(|row| row.fields().job_id("job_id")).collect()
}

const QUEUED_BEHIND: Stmt = Stmt::shared(
    "counting the jobs that wait behind a schedule's last",
    "SELECT COUNT(*) AS jobs FROM scheduler_workflow_condition WHERE workflow_id = ? AND status = 'OPEN'",
);

async fn queued_behind(conn: &mut dyn Conn, id: JobId) -> Result<usize, StoreError> {
    match conn.row(&QUEUED_BEHIND, vec![id.into()]).await? {
        Some(row) => row.fields().number("jobs"),
        None => Ok(0),
    }
}

const ADVANCE_RECURRING: Stmt = Stmt::shared(
    "writing the next fires of schedules",
    "WITH v (recurring_id, next_fire_time, last_fire_time, last_job_id, fired, skipped) AS \
     (/*rows:id time time id int int*/) \
     UPDATE scheduler_recurring_job SET next_fire_time = v.next_fire_time, \
     last_fire_time = COALESCE(v.last_fire_time, scheduler_recurring_job.last_fire_time), \
     last_job_id = COALESCE(v.last_job_id, scheduler_recurring_job.last_job_id), \
     fired_count = fired_count + v.fired, skipped_count = skipped_count + v.skipped, version = version + 1, \
     updated_at = /*now*/ FROM v WHERE scheduler_recurring_job.recurring_id = v.recurring_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS recurring_id, ? AS next_fire_time, ? AS last_fire_time, \
     CAST(? AS BINARY(16)) AS last_job_id, ? AS fired, ? AS skipped/*end*/) v \
     STRAIGHT_JOIN scheduler_recurring_job r FORCE INDEX (PRIMARY) ON r.recurring_id = v.recurring_id \
     SET r.next_fire_time = v.next_fire_time, r.last_fire_time = COALESCE(v.last_fire_time, r.last_fire_time), \
     r.last_job_id = COALESCE(v.last_job_id, r.last_job_id), r.fired_count = r.fired_count + v.fired, \
     r.skipped_count = r.skipped_count + v.skipped, r.version = r.version + 1, r.updated_at = /*now*/",
);

const PAUSE_RECURRING: Stmt = Stmt::shared(
    "pausing a schedule",
    "UPDATE scheduler_recurring_job SET paused = /*yes*/, version = version + 1, updated_at = /*now*/ \
     WHERE recurring_id = ? AND paused = /*no*/",
);

/// Suspends a schedule.
pub async fn pause(conn: &mut dyn Conn, id: JobId) -> Result<bool, StoreError> {
    Ok(conn.run(&PAUSE_RECURRING, vec![id.into()]).await? == 1)
}

const RESUME_RECURRING: Stmt = Stmt::shared(
    "resuming a schedule",
    "UPDATE scheduler_recurring_job SET paused = /*no*/, next_fire_time = ?, version = version + 1, \
     updated_at = /*now*/ WHERE recurring_id = ? AND paused = /*yes*/",
);

/// Lets a paused schedule go on.
pub async fn resume(conn: &mut dyn Conn, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
    Ok(conn.run(&RESUME_RECURRING, vec![Value::opt_time(next_fire), id.into()]).await? == 1)
}

/// Ends a schedule: kept in the archive, its key and its tags freed.
pub async fn cancel(
    conn: &mut dyn Conn,
    id: JobId,
    reason: ArchiveReason,
    idle_for: Option<Duration>,
) -> Result<bool, StoreError> {
    let Some(one) = locked(conn, &[id]).await?.pop() else { return Ok(false) };
    let now = database_time(conn).await?;
    if idle_for.is_some_and(|idle_for| clock::elapsed(one.updated_at, now) < idle_for) {
        return Ok(false);
    }
    conn.run(&ARCHIVE_RECURRING, vec![id.into(), json_of(&one)?, now.into(), reason.as_str().into()]).await?;
    conn.run(&DELETE_RECURRING, vec![id.into()]).await?;
    let tags: Vec<&str> = one.spec.tags.iter().map(Tag::as_str).collect();
    conn.run_in(&DELETE_RECURRING_TAGS, &[id.into()], &tags).await?;
    if let Some(key) = &one.business_key {
        conn.run(&FREE_RECURRING_KEY, vec![key.as_str().into(), id.into()]).await?;
    }
    Ok(true)
}

// A declared schedule has the same id in every life; the last one is kept.
const ARCHIVE_RECURRING: Stmt = Stmt::shared(
    "archiving a schedule",
    "INSERT INTO scheduler_recurring_job_archive (recurring_id, snapshot, archived_at, archive_reason) \
     VALUES (?, ?, ?, ?) ON CONFLICT (recurring_id) DO UPDATE SET snapshot = excluded.snapshot, \
     archived_at = excluded.archived_at, archive_reason = excluded.archive_reason",
)
.mysql(
    "REPLACE INTO scheduler_recurring_job_archive (recurring_id, snapshot, archived_at, archive_reason) \
     VALUES (?, ?, ?, ?)",
);

const DELETE_RECURRING: Stmt =
    Stmt::shared("deleting a schedule", "DELETE FROM scheduler_recurring_job WHERE recurring_id = ?");

const DELETE_RECURRING_TAGS: Stmt =
    Stmt::shared("deleting the tags of a schedule", "DELETE FROM scheduler_job_tag WHERE job_id = ? AND tag /*any*/");

const FREE_RECURRING_KEY: Stmt = Stmt::shared(
    "freeing the key of a schedule",
    "DELETE FROM scheduler_business_key_reservation WHERE business_key = ? AND owner_job_id = ?",
);
