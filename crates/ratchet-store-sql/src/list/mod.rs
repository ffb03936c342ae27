//! Listing jobs, a page at a time, live and archived.

mod query_store;
pub(crate) mod job_index;
pub(crate) mod ended_index;
pub(crate) mod count;
pub(crate) mod query;
pub(crate) mod insight;

use ratchet_core::page::{JobFilter, ListCursor, ListOrder, Page};
use ratchet_core::{JobId, JobRecord, JobState, JobType, StoreError};

use crate::archive::archived::archived_of;
use crate::job_row::record_of;
use crate::list::job_index::{ARCHIVE, KEPT, Look, Shelf, Way};
use crate::list::query::check_limit;
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

/// Where a list asks for more than an index knows, so many jobs are looked at for one page; then it ends, however few it has. So it
/// takes about as long to read a page of a kind that nobody has used for years as of one that is used all the time.
const LOOKED_AT_MAX: usize = 10_000;
/// As many, where each has to be looked up by its key.
pub(crate) const LOOKED_UP_MAX: usize = 2_000;

/// A page of jobs. It may be shorter than asked for and still have a next one: see `LOOKED_AT_MAX`.
pub async fn list(
    conn: &mut dyn Conn,
    filter: &JobFilter,
    after: Option<ListCursor>,
    limit: usize,
) -> Result<Page<JobRecord, ListCursor>, StoreError> {
    check_limit(limit)?;
    filter.check_cursor(after).map_err(|error| StoreError::refused("listing jobs", error))?;
    let range = filter.id_range(after);
    match filter.order {
        ListOrder::Newest => {
            Ok(in_direction(conn, filter, Direction::Down, range, limit).await?.map(ListCursor::newest))
        }
        ListOrder::Oldest => Ok(in_direction(conn, filter, Direction::Up, range, limit).await?.map(ListCursor::oldest)),
        ListOrder::Priority => by_priority(conn, filter, after, limit).await,
    }
}

/// From one priority to the next: there is no index for this order, which few ask for, and every job would pay for one.
async fn by_priority(
    conn: &mut dyn Conn,
    filter: &JobFilter,
    after: Option<ListCursor>,
    limit: usize,
) -> Result<Page<JobRecord, ListCursor>, StoreError> {
    let mut items = Vec::new();
    for priority in filter.priorities(after) {
        let begin = after.filter(|cursor| cursor.priority() == Some(priority));
        if items.len() == limit {
            return Ok(Page { items, next: Some(ListCursor::before_priority(priority)) });
        }
        let level = JobFilter { priority: Some(priority), ..filter.clone() };
        let left = limit - items.len();
        let Run { jobs, next } = in_direction(conn, &level, Direction::Down, filter.id_range(begin), left).await?;
        items.extend(jobs);
        if let Some(last) = next {
            return Ok(Page { items, next: Some(ListCursor::of_priority(priority, last)) });
        }
    }
    Ok(Page { items, next: None })
}

/// Which way a list goes through the ids.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// From the newest job to the oldest.
    Down,
    Up,
}

impl Direction {
    const fn look(self, way: &'static Way) -> &'static Look {
        match self {
            Self::Down => &way.newest_first,
            Self::Up => &way.oldest_first,
        }
    }

    /// The part of a range that lies not behind this job.
    fn before(self, (since, until): (JobId, JobId), last: JobId) -> (JobId, JobId) {
        match self {
            Self::Down => (since.max(last), until),
            Self::Up => (since, until.min(last.following())),
        }
    }

    /// Whichever comes first.
    fn first(self, one: JobId, other: JobId) -> JobId {
        match self {
            Self::Down => one.max(other),
            Self::Up => one.min(other),
        }
    }

    fn sort(self, jobs: &mut [JobRecord]) {
        match self {
            Self::Down => jobs.sort_by_key(|job| std::cmp::Reverse(job.id)),
            Self::Up => jobs.sort_by_key(|job| job.id),
        }
    }
}

/// Jobs in a row, and the last that was looked at, if there may be more.
struct Run {
    jobs: Vec<JobRecord>,
    next: Option<JobId>,
}

impl Run {
    fn map(self, cursor: impl FnOnce(JobId) -> ListCursor) -> Page<JobRecord, ListCursor> {
        Page { items: self.jobs, next: self.next.map(cursor) }
    }
}

/// Of both, the archive is read last: a job that is moved between the two reads is seen twice, and never missed.
async fn in_direction(
    conn: &mut dyn Conn,
    filter: &JobFilter,
    direction: Direction,
    range: (JobId, JobId),
    limit: usize,
) -> Result<Run, StoreError> {
    let mut jobs = Vec::new();
    let mut reach = None;
    if filter.archive.has_live() {
        let rows = rows(conn, &KEPT, filter, direction, range, limit, &mut reach).await?;
        jobs.extend(rows.iter().map(record_of).collect::<Result<Vec<_>, _>>()?);
    }
    if filter.archive.has_archived() {
        let rows = rows(conn, &ARCHIVE, filter, direction, range, limit, &mut reach).await?;
        jobs.extend(rows.iter().map(archived_of).collect::<Result<Vec<_>, _>>()?);
    }
    // Stable: of a job that was seen twice the first stays, which is the one that was not archived yet.
    direction.sort(&mut jobs);
    jobs.dedup_by_key(|job| job.id);
    // Behind it not everything was looked at.
    jobs.retain(|job| reach.is_none_or(|reach| direction.first(job.id, reach) == job.id));
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = if more { jobs.last().map(|job| job.id) } else { reach };
    Ok(Run { jobs, next })
}

/// Rows enough for a page. Where it is long until there are enough, `reach` comes nearer: the last job that was looked at.
async fn rows(
    conn: &mut dyn Conn,
    shelf: &'static Shelf,
    filter: &JobFilter,
    direction: Direction,
    range: (JobId, JobId),
    limit: usize,
    reach: &mut Option<JobId>,
) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for Walk { way, lead, narrowed } in walks(shelf, filter) {
        let look = direction.look(way);
        let last = if narrowed { reach_of(conn, look, lead.as_ref(), range).await? } else { None };
        let part = last.map_or(range, |last| direction.before(range, last));
        *reach = match (last, *reach) {
            (Some(one), Some(other)) => Some(direction.first(one, other)),
            (one, other) => one.or(other),
        };
        // One more than asked for tells whether there is a next page.
        rows.append(&mut read(conn, &look.list, lead, part, filter, limit + 1).await?);
    }
    Ok(rows)
}

/// A way into the jobs, and what is asked of it.
pub(crate) struct Walk {
    pub(crate) way: &'static Way,
    pub(crate) lead: Option<Value>,
    /// Whether more is asked for than the index knows, so that it may be long before there are jobs enough for a page.
    narrowed: bool,
}

impl Walk {
    fn led(way: &'static Way, lead: impl Into<Value>, narrowed: bool) -> Self {
        Self { way, lead: Some(lead.into()), narrowed }
    }
}

/// The ways that together lead to all jobs of a filter: by the narrowest index, or one by each state.
pub(crate) fn walks(shelf: &'static Shelf, filter: &JobFilter) -> Vec<Walk> {
    let asked = asked_for(filter);
    let narrowed = asked > 1 || !filter.states.is_empty();
    match (&filter.tag, &filter.business_key, &filter.parent, &filter.principal) {
        (Some(tag), ..) => return vec![Walk::led(&shelf.by_tag, tag.as_str(), narrowed)],
        (_, Some(key), ..) => return vec![Walk::led(&shelf.by_business_key, key.as_str(), narrowed)],
        (_, _, Some(parent), _) => return vec![Walk::led(&shelf.by_parent, *parent, narrowed)],
        (_, _, _, Some(principal)) => return vec![Walk::led(&shelf.by_principal, principal.as_str(), narrowed)],
        (None, None, None, None) => {}
    }
    if filter.states.is_empty() {
        return vec![Walk { way: &shelf.all, lead: None, narrowed: asked > 0 }];
    }
    let (ended, live): (Vec<JobState>, Vec<JobState>) = states(filter).partition(|state| state.is_terminal());
    let by_end = ended.into_iter().map(|state| Walk::led(&shelf.by_end, state, asked > 0));
    let live = shelf.live.as_ref().filter(|_| !live.is_empty()).map(|ways| {
        let way = if live == [JobState::Running] { &ways.running } else { &ways.all };
        Walk { way, lead: None, narrowed: true }
    });
    by_end.chain(live).collect()
}

/// How much a filter asks for, beside states and the times at which jobs were made.
pub(crate) fn asked_for(filter: &JobFilter) -> usize {
    let asked = [
        filter.kind.is_some(),
        filter.queue.is_some(),
        filter.tag.is_some(),
        filter.business_key.is_some(),
        filter.parent.is_some(),
        filter.principal.is_some(),
        filter.priority.is_some(),
        filter.job_type.is_some(),
        filter.ended_from.is_some() || filter.ended_until.is_some(),
    ];
    asked.into_iter().filter(|asked| *asked).count()
}

/// The states of a filter, each once.
fn states(filter: &JobFilter) -> impl Iterator<Item = JobState> + Clone {
    JobState::ALL.into_iter().filter(|state| filter.states.is_empty() || filter.states.contains(state))
}

/// The last of the jobs that are looked at together; `None` if there are fewer, or never many.
pub(crate) async fn reach_of(
    conn: &mut dyn Conn,
    look: &Look,
    lead: Option<&Value>,
    (since, until): (JobId, JobId),
) -> Result<Option<JobId>, StoreError> {
    let Some(reach) = &look.reach else { return Ok(None) };
    let mut values: Vec<Value> = lead.cloned().into_iter().collect();
    values.extend([until.into(), since.into(), Value::count(together(lead) - 1)]);
    conn.row(reach, values).await?.map(|row| row.fields().job_id("job_id")).transpose()
}

/// How many jobs are looked at together.
pub(crate) const fn together(lead: Option<&Value>) -> usize {
    if lead.is_some() { LOOKED_UP_MAX } else { LOOKED_AT_MAX }
}

/// The rows of a list or a count.
pub(crate) async fn read(
    conn: &mut dyn Conn,
    stmt: &Stmt,
    lead: Option<Value>,
    (since, until): (JobId, JobId),
    filter: &JobFilter,
    limit: usize,
) -> Result<Vec<Row>, StoreError> {
    let mut values: Vec<Value> = lead.into_iter().collect();
    values.extend([until.into(), since.into()]);
    // All states fit in one list; it is padded by hand because values follow it.
    values.extend(states(filter).cycle().take(LIST_STATES).map(Value::from));
    values.extend(narrow_columns(filter));
    values.push(Value::count(limit));
    let text = conn.texts().render(stmt, LIST_STATES);
    conn.fetch(stmt.doing(), text, values).await
}

const LIST_STATES: usize = JobState::ALL.len().next_power_of_two();

/// The values of what narrows by columns, each twice, in the order of `narrowed_by`.
pub(crate) fn narrow_columns(filter: &JobFilter) -> impl Iterator<Item = Value> {
    let values = [
        Value::opt_text(filter.kind.as_ref().map(AsRef::as_ref)),
        Value::opt_text(filter.queue.as_ref().map(AsRef::as_ref)),
        Value::Int(filter.priority.map(|priority| priority.level().into())),
        Value::opt_text(filter.job_type.map(JobType::as_str)),
        Value::opt_text(filter.business_key.as_ref().map(AsRef::as_ref)),
        Value::Id(filter.parent.map(|id| id.0)),
        Value::opt_text(filter.principal.as_ref().map(AsRef::as_ref)),
        Value::opt_time(filter.ended_from),
        Value::opt_time(filter.ended_until),
    ];
    values.into_iter().flat_map(|value| [value.clone(), value])
}
