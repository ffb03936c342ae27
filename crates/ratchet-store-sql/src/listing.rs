//! Listing jobs, a page at a time, live and archived.

use ratchet_core::page::{JobCursor, JobFilter, Page};
use ratchet_core::{JobId, JobRecord, JobState, StoreError};

use crate::archived::archived_of;
use crate::conn::Conn;
use crate::query::check_limit;
use crate::read::record_of;
use crate::row::Row;
use crate::shelf::{ARCHIVE, KEPT, Shelf, Way};
use crate::value::Value;

/// Where a list asks for more than an index knows, so many jobs are looked at for one page; then it ends, however few it has. So it
/// takes about as long to read a page of a kind that nobody has used for years as of one that is used all the time.
const LOOKED_AT_MAX: usize = 10_000;
/// As many, where each has to be looked up by its key.
const LOOKED_UP_MAX: usize = 2_000;

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
        let rows = rows(conn, &KEPT, filter, after, limit, &mut floor).await?;
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

/// A way into the jobs, and what is asked of it.
struct Walk {
    way: &'static Way,
    lead: Option<Value>,
    /// Whether more is asked for than the index knows, so that it may be long before there are jobs enough for a page.
    narrowed: bool,
}

impl Walk {
    fn led(way: &'static Way, lead: impl Into<Value>, narrowed: bool) -> Self {
        Self { way, lead: Some(lead.into()), narrowed }
    }
}

/// The ways that together lead to all jobs of a filter: by the narrowest index, or one by each state.
fn walks(shelf: &'static Shelf, filter: &JobFilter) -> Vec<Walk> {
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

/// How much a filter asks for, beside states and times.
pub(crate) fn asked_for(filter: &JobFilter) -> usize {
    let JobFilter { kind, queue, tag, business_key, parent, principal, .. } = filter;
    let asked =
        [kind.is_some(), queue.is_some(), tag.is_some(), business_key.is_some(), parent.is_some(), principal.is_some()];
    asked.into_iter().filter(|asked| *asked).count()
}

/// The states of a filter, each once.
fn states(filter: &JobFilter) -> impl Iterator<Item = JobState> + Clone {
    JobState::ALL.into_iter().filter(|state| filter.states.is_empty() || filter.states.contains(state))
}

/// Rows enough for a page. Where it is long until there are enough, `floor` rises to the last job that was looked at.
async fn rows(
    conn: &mut dyn Conn,
    shelf: &'static Shelf,
    filter: &JobFilter,
    after: Option<JobCursor>,
    limit: usize,
    floor: &mut Option<JobId>,
) -> Result<Vec<Row>, StoreError> {
    let (since, until) = filter.id_range(after);
    let mut rows = Vec::new();
    for Walk { way, lead, narrowed } in walks(shelf, filter) {
        let low = if narrowed { floor_of(conn, way, lead.as_ref(), since, until).await? } else { None };
        *floor = low.max(*floor);
        let mut values: Vec<Value> = lead.into_iter().collect();
        values.extend([until.into(), low.unwrap_or(since).into()]);
        // All states fit in one list; it is padded by hand because values follow it.
        values.extend(states(filter).cycle().take(LIST_STATES).map(Value::from));
        values.extend(narrow_columns(filter));
        // One more than asked for tells whether there is a next page.
        values.push(Value::count(limit + 1));
        let text = conn.texts().render(&way.list, LIST_STATES);
        rows.append(&mut conn.fetch(way.list.doing(), text, values).await?);
    }
    Ok(rows)
}

/// The last of the jobs that are looked at for one page; `None` if there are fewer, or never many.
pub(crate) async fn floor_of(
    conn: &mut dyn Conn,
    way: &Way,
    lead: Option<&Value>,
    since: JobId,
    until: JobId,
) -> Result<Option<JobId>, StoreError> {
    let Some(floor) = &way.floor else { return Ok(None) };
    let most = if lead.is_some() { LOOKED_UP_MAX } else { LOOKED_AT_MAX };
    let mut values: Vec<Value> = lead.cloned().into_iter().collect();
    values.extend([until.into(), since.into(), Value::count(most - 1)]);
    conn.row(floor, values).await?.map(|row| row.fields().job_id("job_id")).transpose()
}

const LIST_STATES: usize = JobState::ALL.len().next_power_of_two();

/// The values of what narrows by columns: kind, queue, business key, parent and principal, each twice.
pub(crate) fn narrow_columns(filter: &JobFilter) -> [Value; 10] {
    let kind = || Value::opt_text(filter.kind.as_ref().map(AsRef::as_ref));
    let queue = || Value::opt_text(filter.queue.as_ref().map(AsRef::as_ref));
    let key = || Value::opt_text(filter.business_key.as_ref().map(AsRef::as_ref));
    let parent = || Value::Id(filter.parent.map(|id| id.0));
    let principal = || Value::opt_text(filter.principal.as_ref().map(AsRef::as_ref));
    [kind(), kind(), queue(), queue(), key(), key(), parent(), parent(), principal(), principal()]
}
