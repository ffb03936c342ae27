//! Walking indexes for the jobs of a filter.

use ratchet_core::page::{ArchiveScope, JobFilter, ListOrder};
use ratchet_core::{JobId, JobState, StoreError};

use crate::list::heads;
use crate::list::job_index::{Direction, JobIndex, JobIndexes, UNARCHIVED};
use crate::waist::conn::Conn;
use crate::waist::value::Value;

/// The number of jobs that are examined in one index for a page. Then the page ends, however few jobs it has: so a page of a
/// kind that nobody has used for years takes about as long as one of a kind that is used all the time.
pub(crate) const EXAMINED_MAX: usize = 2_000;
const _: () = assert!(ratchet_core::page::PAGE_LIMIT_MAX < EXAMINED_MAX, "a page fits in what is examined for it");

/// The number of jobs that are examined first; then twice as many, until a page is full.
const EXAMINED_FIRST: usize = 256;

/// An index to walk, and what to check of the jobs that it leads to.
pub(crate) struct IndexScan {
    indexes: &'static JobIndexes,
    index: &'static JobIndex,
    lead: Option<Value>,
    /// Whether the filter asks for more than the index knows, so that heads are read.
    narrowed: bool,
}

/// What a walk has found.
pub(crate) struct Found {
    /// The jobs that pass, in order.
    pub(crate) ids: Vec<JobId>,
    /// The last job that was examined, if there may be more behind it.
    pub(crate) reach: Option<JobId>,
}

/// Returns the scans that together lead to all jobs of a filter in one place: of the narrowest index, or of one by each state.
///
/// Jobs that have not ended come first: one that ends between two scans is seen twice, and not missed.
pub(crate) fn scans(indexes: &'static JobIndexes, filter: &JobFilter) -> Vec<IndexScan> {
    let led = |index: &'static JobIndex, lead: Value, known: JobFilter| {
        vec![IndexScan { indexes, index, lead: Some(lead), narrowed: narrows(known) }]
    };
    let JobFilter { tag, business_key, parent, principal, .. } = filter;
    let known = filter.clone();
    if let Some(tag) = tag {
        return led(&indexes.by_tag, tag.as_str().into(), JobFilter { tag: None, ..known });
    }
    if let Some(key) = business_key {
        return led(&indexes.by_business_key, key.as_str().into(), JobFilter { business_key: None, ..known });
    }
    if let Some(parent) = parent {
        return led(&indexes.by_parent, (*parent).into(), JobFilter { parent: None, ..known });
    }
    if let Some(principal) = principal {
        return led(&indexes.by_principal, principal.as_str().into(), JobFilter { principal: None, ..known });
    }
    let unled = |index, narrowed| IndexScan { indexes, index, lead: None, narrowed };
    if filter.states.is_empty() {
        return vec![unled(&indexes.all, narrows(known))];
    }
    let states = JobState::ALL.into_iter().filter(|state| filter.states.contains(state));
    let (ended, live): (Vec<JobState>, Vec<JobState>) = states.partition(|state| state.is_terminal());
    let live = indexes.live.as_ref().filter(|_| !live.is_empty()).map(|of| match live[..] {
        [JobState::Running] => unled(&of.running, narrows(JobFilter { states: Vec::new(), ..known })),
        _ => unled(&of.all, true),
    });
    live.into_iter().chain(ended.into_iter().map(|state| by_end(indexes, state, filter))).collect()
}

/// Returns the scan of the dead letters of a filter.
pub(crate) fn dead_letters(filter: &JobFilter) -> IndexScan {
    by_end(&UNARCHIVED, JobState::Failed, filter)
}

fn by_end(indexes: &'static JobIndexes, state: JobState, filter: &JobFilter) -> IndexScan {
    let narrowed = narrows(JobFilter { states: Vec::new(), ..filter.clone() });
    IndexScan { indexes, index: &indexes.by_end, lead: Some(state.into()), narrowed }
}

/// Returns whether a filter, without what an index knows, leaves anything to check. Every index knows the ids and so the times
/// at which jobs were created.
fn narrows(rest: JobFilter) -> bool {
    let (archive, order) = (ArchiveScope::default(), ListOrder::default());
    JobFilter { made_from: None, made_until: None, archive, order, ..rest } != JobFilter::default()
}

impl IndexScan {
    /// Finds at least `wanted` jobs of a range that pass, fewer only if there are no more or too many had to be examined.
    pub(crate) async fn find(
        &self,
        conn: &mut dyn Conn,
        filter: &JobFilter,
        direction: Direction,
        mut range: (JobId, JobId),
        wanted: usize,
    ) -> Result<Found, StoreError> {
        let mut found = Vec::new();
        let mut left = EXAMINED_MAX;
        let mut count = if self.narrowed { wanted.max(EXAMINED_FIRST) } else { wanted };
        loop {
            let ids = self.ids(conn, direction, range, count).await?;
            let last = ids.last().copied().filter(|_| ids.len() == count);
            left -= count;
            found.extend(if self.narrowed { heads::passing(conn, self.indexes, filter, ids).await? } else { ids });
            match last {
                Some(last) if found.len() < wanted && left > 0 => range = direction.behind(range, last),
                reach => return Ok(Found { ids: found, reach }),
            }
            count = (2 * count).min(left);
        }
    }

    /// Reads up to `count` ids of a range: the range is exhausted if there are fewer.
    pub(crate) async fn ids(
        &self,
        conn: &mut dyn Conn,
        direction: Direction,
        range: (JobId, JobId),
        count: usize,
    ) -> Result<Vec<JobId>, StoreError> {
        self.index.ids(conn, direction, self.lead.as_ref(), range, count).await
    }
}
