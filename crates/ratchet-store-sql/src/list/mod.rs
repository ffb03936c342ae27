//! Listing jobs, a page at a time, live and archived.

mod query_store;
pub(crate) mod job_index;
pub(crate) mod scan;
pub(crate) mod heads;
pub(crate) mod count;
pub(crate) mod query;
pub(crate) mod insight;

use ratchet_core::page::{ArchiveScope, JobFilter, ListCursor, ListOrder, Page};
use ratchet_core::{JobHead, JobId, JobRecord, StoreError};

use crate::archive::archived;
use crate::job_row;
use crate::list::job_index::{ARCHIVE, Direction, UNARCHIVED};
use crate::list::query::check_limit;
use crate::list::scan::{Found, IndexScan};
use crate::waist::conn::Conn;

/// Lists a page of jobs.
///
/// A page examines a bounded number of index entries, so it may be shorter than asked for and still have a next one.
pub async fn list(
    conn: &mut dyn Conn,
    filter: &JobFilter,
    after: Option<ListCursor>,
    limit: usize,
) -> Result<Page<JobRecord, ListCursor>, StoreError> {
    check_limit(limit)?;
    filter.check_cursor(after).map_err(|error| StoreError::refused("listing jobs", error))?;
    let range = filter.id_range(after);
    let (direction, cursor): (_, fn(JobId) -> ListCursor) = match filter.order {
        ListOrder::Newest => (Direction::NewestFirst, ListCursor::newest),
        ListOrder::Oldest => (Direction::OldestFirst, ListCursor::oldest),
        ListOrder::Priority => return by_priority(conn, filter, after, limit).await,
    };
    let Page { items, next } = in_direction(conn, filter, direction, range, limit).await?;
    Ok(Page { items, next: next.map(cursor) })
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
        let range = filter.id_range(begin);
        let page = in_direction(conn, &level, Direction::NewestFirst, range, left).await?;
        items.extend(page.items);
        if let Some(last) = page.next {
            return Ok(Page { items, next: Some(ListCursor::of_priority(priority, last)) });
        }
    }
    Ok(Page { items, next: None })
}

/// A page of ids, and the job behind which the next page begins.
pub(crate) struct PageOfIds {
    pub(crate) ids: Vec<JobId>,
    pub(crate) next: Option<JobId>,
}

/// Finds the jobs of one page, and then reads them.
async fn in_direction(
    conn: &mut dyn Conn,
    filter: &JobFilter,
    direction: Direction,
    range: (JobId, JobId),
    limit: usize,
) -> Result<Page<JobRecord, JobId>, StoreError> {
    let mut scans = Vec::new();
    if filter.archive.has_live() {
        scans.extend(scan::scans(&UNARCHIVED, filter));
    }
    // Last: a job that is moved between two scans is seen twice, and not missed.
    if filter.archive.has_archived() {
        scans.extend(scan::scans(&ARCHIVE, filter));
    }
    let PageOfIds { ids, next } = page_of_ids(conn, &scans, filter, direction, range, limit).await?;
    let mut items = match filter.archive {
        ArchiveScope::Live => job_row::find(conn, &ids).await?,
        ArchiveScope::Archived => archived::find_archived(conn, &ids).await?,
        ArchiveScope::Both => archived::find(conn, &ids).await?,
    };
    // Some may have changed since they were found.
    items.retain(|job| filter.passes(&JobHead::of(job)));
    Ok(Page { items, next })
}

/// Finds the jobs of one page, which may be shorter than asked for and still have a next one: see [`scan::EXAMINED_MAX`].
pub(crate) async fn page_of_ids(
    conn: &mut dyn Conn,
    scans: &[IndexScan],
    filter: &JobFilter,
    direction: Direction,
    range: (JobId, JobId),
    limit: usize,
) -> Result<PageOfIds, StoreError> {
    let mut found: Vec<JobId> = Vec::new();
    // The part of the range that all scans have examined, and its last job if that is not the whole range.
    let (mut part, mut reach) = (range, None);
    for scan in scans {
        // One more than asked for shows whether there is a next page.
        let Found { ids, reach: last } = scan.find(conn, filter, direction, part, limit + 1).await?;
        found.extend(ids);
        if let Some(last) = last {
            (part, reach) = (direction.up_to(part, last), Some(last));
        }
    }
    found.retain(|id| (part.0..part.1).contains(id));
    direction.sort(&mut found);
    let more = found.len() > limit;
    found.truncate(limit);
    let next = if more { found.last().copied() } else { reach };
    Ok(PageOfIds { ids: found, next })
}
