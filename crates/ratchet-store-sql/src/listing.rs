//! Listing jobs, a page at a time, live and archived.

use ratchet_core::page::{JobCursor, JobFilter, Page};
use ratchet_core::{JobId, JobRecord, JobState, StoreError};

use crate::archived::{archived_columns, archived_of};
use crate::conn::Conn;
use crate::query::check_limit;
use crate::read::{record_columns, record_of};
use crate::row::Row;
use crate::stmt::Stmt;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[
    LIST_ALL,
    LIST_BY_TAG,
    LIST_BY_BUSINESS_KEY,
    LIST_BY_PARENT,
    LIST_BY_PRINCIPAL,
    LIST_LIVE,
    LIST_TERMINAL,
    ARCHIVE_ALL,
    ARCHIVE_BY_TAG,
    ARCHIVE_BY_BUSINESS_KEY,
    ARCHIVE_BY_PARENT,
    ARCHIVE_BY_PRINCIPAL,
    ARCHIVE_BY_STATE,
    FLOOR,
    FLOOR_OF_STATE,
    ARCHIVE_FLOOR,
    ARCHIVE_FLOOR_OF_STATE,
];

/// Where no index narrows a list, so many jobs are looked at for one page; then it ends, however few it has. So it takes about as
/// long to read a page of a kind that nobody has used for years as of one that is used all the time.
const LOOKED_AT_MAX: usize = 10_000;

/// The columns, then the tables that lead, then what narrows, in the order of [`narrow`].
macro_rules! list {
    ($columns:expr, $lead:expr, $id:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM ",
            $lead,
            " AND ",
            $id,
            " < ? AND ",
            $id,
            " >= ? AND (? IS NULL OR j.kind = ?) AND (? IS NULL OR j.queue = ?) AND (? IS NULL OR j.business_key = ?) \
             AND (? IS NULL OR j.depends_on = ?) AND (? IS NULL OR j.caller_principal = ?) ORDER BY ",
            $id,
            " DESC LIMIT ?"
        )
    };
}

/// A list of jobs that have not been archived.
macro_rules! live {
    ($lead:expr, $id:literal) => {
        list!(record_columns!(), $lead, $id)
    };
}

/// A list of archived jobs.
macro_rules! archived {
    ($lead:expr, $id:literal) => {
        list!(archived_columns!(), $lead, $id)
    };
}

const LIST_ALL: Stmt = Stmt::shared(
    "listing jobs",
    live!("scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE 1 = 1", "j.job_id"),
);

// Few jobs have a given tag or business key, so the index of these leads.
const LIST_BY_TAG: Stmt = Stmt::shared(
    "listing jobs by tag",
    live!(
        "scheduler_job_tag t JOIN scheduler_job j ON j.job_id = t.job_id \
         LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id \
         WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND t.tag = ?",
        "t.job_id"
    ),
)
// Each job by its key: otherwise the planner may merge the tags with all jobs, from the newest.
.postgres(live!(
    "scheduler_job_tag t CROSS JOIN LATERAL (SELECT * FROM scheduler_job c WHERE c.job_id = t.job_id OFFSET 0) j \
     LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id \
     WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND t.tag = ?",
    "t.job_id"
));

const LIST_BY_BUSINESS_KEY: Stmt = Stmt::shared(
    "listing jobs by business key",
    live!(
        "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id \
         WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND j.business_key = ?",
        "j.job_id"
    ),
);

const LIST_BY_PARENT: Stmt = Stmt::shared(
    "listing the children of a job",
    live!(
        "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id \
         WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND j.depends_on = ?",
        "j.job_id"
    ),
)
.mysql(live!(
    "scheduler_job_child c JOIN scheduler_job j ON j.job_id = c.job_id \
     LEFT JOIN scheduler_job_queue q ON q.job_id = c.job_id \
     WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND c.parent_id = ?",
    "c.job_id"
));

// On MySQL an index of principals would have an entry for every job; there it walks the jobs, newest first.
const LIST_BY_PRINCIPAL: Stmt = Stmt::shared(
    "listing jobs by principal",
    live!(
        "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id \
         WHERE COALESCE(q.status, j.terminal_status) IN (/*each*/?/*end*/) AND j.caller_principal = ?",
        "j.job_id"
    ),
);

const LIST_LIVE: Stmt = Stmt::shared(
    "listing live jobs",
    live!("scheduler_job_queue q JOIN scheduler_job j ON j.job_id = q.job_id WHERE q.status = ?", "q.job_id"),
);

const LIST_TERMINAL: Stmt = Stmt::shared(
    "listing ended jobs",
    live!(
        "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.terminal_status = ?",
        "j.job_id"
    ),
);

const ARCHIVE_ALL: Stmt =
    Stmt::shared("listing archived jobs", archived!("scheduler_job_archive j WHERE 1 = 1", "j.job_id"));

const ARCHIVE_BY_TAG: Stmt = Stmt::shared(
    "listing archived jobs by tag",
    archived!(
        "scheduler_job_archive_tag t JOIN scheduler_job_archive j ON j.job_id = t.job_id \
         WHERE j.terminal_status IN (/*each*/?/*end*/) AND t.tag = ?",
        "t.job_id"
    ),
);

const ARCHIVE_BY_BUSINESS_KEY: Stmt = Stmt::shared(
    "listing archived jobs by business key",
    archived!(
        "scheduler_job_archive j WHERE j.terminal_status IN (/*each*/?/*end*/) AND j.business_key = ?",
        "j.job_id"
    ),
);

const ARCHIVE_BY_PARENT: Stmt = Stmt::shared(
    "listing the archived children of a job",
    archived!("scheduler_job_archive j WHERE j.terminal_status IN (/*each*/?/*end*/) AND j.depends_on = ?", "j.job_id"),
);

const ARCHIVE_BY_PRINCIPAL: Stmt = Stmt::shared(
    "listing archived jobs by principal",
    archived!(
        "scheduler_job_archive j WHERE j.terminal_status IN (/*each*/?/*end*/) AND j.caller_principal = ?",
        "j.job_id"
    ),
);

const ARCHIVE_BY_STATE: Stmt = Stmt::shared(
    "listing archived jobs by state",
    archived!("scheduler_job_archive j WHERE j.terminal_status = ?", "j.job_id"),
);

// The last of so many jobs.
const FLOOR: Stmt = Stmt::shared(
    "looking how far a page goes",
    "SELECT job_id FROM scheduler_job WHERE job_id < ? AND job_id >= ? ORDER BY job_id DESC LIMIT 1 OFFSET ?",
);

const FLOOR_OF_STATE: Stmt = Stmt::shared(
    "looking how far a page of ended jobs goes",
    "SELECT job_id FROM scheduler_job WHERE terminal_status = ? AND job_id < ? AND job_id >= ? \
     ORDER BY job_id DESC LIMIT 1 OFFSET ?",
)
// The order by primary key tempts it to read all jobs.
.mysql(
    "SELECT job_id FROM scheduler_job FORCE INDEX (idx_job_terminal) WHERE terminal_status = ? AND job_id < ? \
     AND job_id >= ? ORDER BY job_id DESC LIMIT 1 OFFSET ?",
);

const ARCHIVE_FLOOR: Stmt = Stmt::shared(
    "looking how far a page of archived jobs goes",
    "SELECT job_id FROM scheduler_job_archive WHERE job_id < ? AND job_id >= ? ORDER BY job_id DESC LIMIT 1 OFFSET ?",
);

const ARCHIVE_FLOOR_OF_STATE: Stmt = Stmt::shared(
    "looking how far a page of archived jobs of a state goes",
    "SELECT job_id FROM scheduler_job_archive WHERE terminal_status = ? AND job_id < ? AND job_id >= ? \
     ORDER BY job_id DESC LIMIT 1 OFFSET ?",
);

/// A page of jobs, newest first. It may be shorter than asked for and still have a next one: see `LOOKED_AT_MAX`.
///
/// Of both, the archive is read last: a job that is moved between the two reads is seen twice, and never missed.
pub async fn list(
    conn: &mut dyn Conn,
    filter: &JobFilter,
    after: Option<JobCursor>,
    limit: usize,
) -> Result<Page<JobRecord>, StoreError> {
    check_limit(limit)?;
    let mut jobs = Vec::new();
    let mut floor = None;
    if filter.archive.has_live() {
        let rows = rows(conn, &LIVE, filter, after, limit, &mut floor).await?;
        jobs.extend(rows.iter().map(record_of).collect::<Result<Vec<_>, _>>()?);
    }
    if filter.archive.has_archived() {
        let rows = rows(conn, &ARCHIVE, filter, after, limit, &mut floor).await?;
        jobs.extend(rows.iter().map(archived_of).collect::<Result<Vec<_>, _>>()?);
    }
    // Stable: of a job that was seen twice the first stays, which is the one that was not archived yet.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.id));
    jobs.dedup_by_key(|job| job.id);
    // Below it not everything was looked at.
    jobs.retain(|job| floor.is_none_or(|floor| job.id >= floor));
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = if more { jobs.last().map(|job| job.id) } else { floor };
    Ok(Page { items: jobs, next: next.map(JobCursor) })
}

/// The statements of one place.
struct Shelf {
    all: &'static Stmt,
    by_tag: &'static Stmt,
    by_business_key: &'static Stmt,
    by_parent: &'static Stmt,
    by_principal: &'static Stmt,
    by_live_state: Option<&'static Stmt>,
    by_terminal_state: &'static Stmt,
    floor: &'static Stmt,
    floor_of_state: &'static Stmt,
}

const LIVE: Shelf = Shelf {
    all: &LIST_ALL,
    by_tag: &LIST_BY_TAG,
    by_business_key: &LIST_BY_BUSINESS_KEY,
    by_parent: &LIST_BY_PARENT,
    by_principal: &LIST_BY_PRINCIPAL,
    by_live_state: Some(&LIST_LIVE),
    by_terminal_state: &LIST_TERMINAL,
    floor: &FLOOR,
    floor_of_state: &FLOOR_OF_STATE,
};

const ARCHIVE: Shelf = Shelf {
    all: &ARCHIVE_ALL,
    by_tag: &ARCHIVE_BY_TAG,
    by_business_key: &ARCHIVE_BY_BUSINESS_KEY,
    by_parent: &ARCHIVE_BY_PARENT,
    by_principal: &ARCHIVE_BY_PRINCIPAL,
    by_live_state: None,
    by_terminal_state: &ARCHIVE_BY_STATE,
    floor: &ARCHIVE_FLOOR,
    floor_of_state: &ARCHIVE_FLOOR_OF_STATE,
};

/// Rows enough for a page, by the narrowest index. If there is none that narrows, `floor` rises to the last job that was looked at.
async fn rows(
    conn: &mut dyn Conn,
    shelf: &Shelf,
    filter: &JobFilter,
    after: Option<JobCursor>,
    limit: usize,
    floor: &mut Option<JobId>,
) -> Result<Vec<Row>, StoreError> {
    let (from, until) = filter.id_range(after);
    let rest = |from: JobId| narrow(filter, from, until, limit);
    let walks = filter.kind.is_some() || filter.queue.is_some();
    let lead = match (&filter.tag, &filter.business_key, &filter.parent, &filter.principal) {
        (Some(tag), ..) => Some((shelf.by_tag, Value::from(tag.as_str()))),
        (_, Some(key), ..) => Some((shelf.by_business_key, key.as_str().into())),
        (_, _, Some(parent), _) => Some((shelf.by_parent, (*parent).into())),
        (_, _, _, Some(principal)) => Some((shelf.by_principal, principal.as_str().into())),
        (None, None, None, None) => None,
    };
    if let Some((stmt, lead)) = lead {
        let states = if filter.states.is_empty() { &JobState::ALL[..] } else { &filter.states };
        // All seven states fit in one list; it is padded by hand because values follow it.
        let mut values: Vec<Value> = states.iter().take(LIST_STATES).map(|state| (*state).into()).collect();
        values.resize(LIST_STATES, states[0].into());
        values.push(lead);
        values.extend(rest(from));
        let text = conn.texts().render(stmt, LIST_STATES);
        return conn.fetch(stmt.doing(), text, values).await;
    }
    if filter.states.is_empty() {
        let low = if walks { floor_of(conn, shelf.floor, &[], from, until).await? } else { None };
        *floor = low.max(*floor);
        return conn.rows(shelf.all, rest(low.unwrap_or(from))).await;
    }
    let mut rows = Vec::new();
    for state in &filter.states {
        let (stmt, walks) = match shelf.by_live_state {
            Some(live) if !state.is_terminal() => (live, false),
            None if !state.is_terminal() => continue,
            _ => (shelf.by_terminal_state, walks),
        };
        let state = Value::from(*state);
        let low = if walks {
            floor_of(conn, shelf.floor_of_state, std::slice::from_ref(&state), from, until).await?
        } else {
            None
        };
        *floor = low.max(*floor);
        let mut values = vec![state];
        values.extend(rest(low.unwrap_or(from)));
        rows.append(&mut conn.rows(stmt, values).await?);
    }
    Ok(rows)
}

/// The last of the jobs that are looked at for one page; `None` if there are fewer.
async fn floor_of(
    conn: &mut dyn Conn,
    stmt: &Stmt,
    lead: &[Value],
    from: JobId,
    until: JobId,
) -> Result<Option<JobId>, StoreError> {
    let mut values = lead.to_vec();
    values.extend([until.into(), from.into(), Value::count(LOOKED_AT_MAX - 1)]);
    conn.row(stmt, values).await?.map(|row| row.fields().job_id("job_id")).transpose()
}

const LIST_STATES: usize = JobState::ALL.len().next_power_of_two();

/// The values of what narrows every list; one row more than asked for tells whether there is a next page.
fn narrow(filter: &JobFilter, from: JobId, until: JobId, limit: usize) -> Vec<Value> {
    let mut values = vec![until.into(), from.into()];
    values.extend(narrow_columns(filter));
    values.push(Value::count(limit + 1));
    values
}

/// The values of what narrows by columns: kind, queue, business key, parent and principal, each twice.
pub(crate) fn narrow_columns(filter: &JobFilter) -> [Value; 10] {
    let kind = || Value::opt_text(filter.kind.as_ref().map(AsRef::as_ref));
    let queue = || Value::opt_text(filter.queue.as_ref().map(AsRef::as_ref));
    let key = || Value::opt_text(filter.business_key.as_ref().map(AsRef::as_ref));
    let parent = || Value::Id(filter.parent.map(|id| id.0));
    let principal = || Value::opt_text(filter.principal.as_ref().map(AsRef::as_ref));
    [kind(), kind(), queue(), queue(), key(), key(), parent(), parent(), principal(), principal()]
}
