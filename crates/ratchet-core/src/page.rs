//! Looking through jobs, a page at a time.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::name::{BusinessKey, Kind, Principal, QueueName, Tag};
use crate::priority::Priority;
use crate::spec::JobType;
use crate::state::JobState;

/// Which jobs to list or to count; every field that is set narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In any of these states; empty means all.
    pub states: Vec<JobState>,
    /// Of this kind.
    pub kind: Option<Kind>,
    /// In this queue.
    pub queue: Option<QueueName>,
    /// With this tag.
    pub tag: Option<Tag>,
    /// Children of this batch or schedule.
    pub parent: Option<JobId>,
    /// With this business key, held or once held.
    pub business_key: Option<BusinessKey>,
    /// Submitted on behalf of this principal.
    pub principal: Option<Principal>,
    /// Of this priority.
    pub priority: Option<Priority>,
    /// That came to be this way.
    pub job_type: Option<JobType>,
    /// Made at this time or later, as the id says. A job that follows from another counts with that one.
    pub made_from: Option<Timestamp>,
    /// Made before this time, as the id says.
    pub made_until: Option<Timestamp>,
    /// Ended at this time or later.
    pub ended_from: Option<Timestamp>,
    /// Ended before this time.
    pub ended_until: Option<Timestamp>,
    /// Whether jobs in the archive are looked at.
    pub archive: ArchiveScope,
    /// In which order they are listed.
    pub order: ListOrder,
}

/// The order of a list of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ListOrder {
    /// Those that were made last first.
    #[default]
    Newest,
    /// Those that were made first first.
    Oldest,
    /// The highest priority first, and of each the newest first.
    Priority,
}

impl ListOrder {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::Newest, Self::Oldest, Self::Priority];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::Priority => "priority",
        }
    }
}

impl FromStr for ListOrder {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        let known = Self::ALL.into_iter().find(|order| order.as_str() == text);
        known.ok_or_else(|| InvalidInput::new("order", format!("is {text:?}; use newest, oldest or priority")))
    }
}

/// Where to look for jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ArchiveScope {
    /// Among jobs that have not been archived.
    #[default]
    Live,
    /// In the archive.
    Archived,
    /// In both: one order and one cursor, and every job once, even if it is archived meanwhile.
    Both,
}

impl ArchiveScope {
    /// Whether jobs that have not been archived are looked at.
    pub const fn has_live(self) -> bool {
        matches!(self, Self::Live | Self::Both)
    }

    /// Whether the archive is looked at.
    pub const fn has_archived(self) -> bool {
        matches!(self, Self::Archived | Self::Both)
    }
}

impl JobFilter {
    /// The ids that can pass, as the first that can and the first that cannot any more: by the cursor and the times.
    pub fn id_range(&self, after: Option<ListCursor>) -> (JobId, JobId) {
        let from = self.made_from.map_or(JobId(Uuid::nil()), JobId::floor);
        let until = self.made_until.map_or(JobId(Uuid::max()), JobId::floor);
        match after {
            None => (from, until),
            Some(ListCursor { order: ListOrder::Oldest, last, .. }) => (from.max(last.following()), until),
            Some(ListCursor { order: ListOrder::Newest | ListOrder::Priority, last, .. }) => (from, until.min(last)),
        }
    }

    /// Refuses a cursor that comes from a list in another order: it would lead somewhere, and jobs would be missed.
    pub fn check_cursor(&self, after: Option<ListCursor>) -> Result<(), InvalidInput> {
        let (wanted, order) = (self.order.as_str(), after.map_or(self.order, |cursor| cursor.order).as_str());
        if wanted == order {
            return Ok(());
        }
        let problem =
            format!("is of a list in the order {order:?}, and {wanted:?} is asked for; begin with the first page");
        Err(InvalidInput::new("after", problem))
    }

    /// The priorities that a list in the order of priorities goes through after a cursor, the highest first.
    pub fn priorities(&self, after: Option<ListCursor>) -> impl Iterator<Item = Priority> {
        let (only, highest) = (self.priority, after.and_then(|cursor| cursor.priority));
        let left = move |priority: &Priority| {
            only.is_none_or(|only| *priority == only) && highest.is_none_or(|highest| *priority <= highest)
        };
        Priority::ALL.into_iter().rev().filter(left)
    }
}

/// Where the next page begins: after this job, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCursor(pub JobId);

impl fmt::Display for JobCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Where the next page of a list begins, which is good for lists in the same order only.
///
/// As text it is the id of a job, and in other orders than newest first the order before it: `oldest:ID`, `priority:HIGH:ID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListCursor {
    order: ListOrder,
    priority: Option<Priority>,
    last: JobId,
}

impl ListCursor {
    /// After this job in the order of the newest first.
    pub const fn newest(last: JobId) -> Self {
        Self { order: ListOrder::Newest, priority: None, last }
    }

    /// After this job in the order of the oldest first.
    pub const fn oldest(last: JobId) -> Self {
        Self { order: ListOrder::Oldest, priority: None, last }
    }

    /// After this job among those of a priority in the order of priorities.
    pub const fn of_priority(priority: Priority, last: JobId) -> Self {
        Self { order: ListOrder::Priority, priority: Some(priority), last }
    }

    /// Before all jobs of a priority.
    pub const fn before_priority(priority: Priority) -> Self {
        Self::of_priority(priority, JobId(Uuid::max()))
    }

    /// After which job.
    pub const fn last(self) -> JobId {
        self.last
    }

    /// Among the jobs of which priority, in the order of priorities.
    pub const fn priority(self) -> Option<Priority> {
        self.priority
    }
}

impl From<JobCursor> for ListCursor {
    fn from(JobCursor(last): JobCursor) -> Self {
        Self::newest(last)
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { order, priority, last } = self;
        match (order, priority) {
            (ListOrder::Newest, _) => write!(f, "{last}"),
            (order, None) => write!(f, "{}:{last}", order.as_str()),
            (order, Some(priority)) => write!(f, "{}:{priority}:{last}", order.as_str()),
        }
    }
}

impl FromStr for ListCursor {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        let unknown = || InvalidInput::new("after", format!("is {text:?}; give what the last line of a page names"));
        let (order, id) = text.rsplit_once(':').unwrap_or(("", text));
        let last = id.parse().map_err(|_| unknown())?;
        match order.split_once(':') {
            None if order.is_empty() => Ok(Self::newest(last)),
            None if order == ListOrder::Oldest.as_str() => Ok(Self::oldest(last)),
            Some((order, priority)) if order == ListOrder::Priority.as_str() => {
                Ok(Self::of_priority(priority.parse().map_err(|_| unknown())?, last))
            }
            _ => Err(unknown()),
        }
    }
}

/// Some of the jobs that a filter lets through, in the order that was asked for, which is newest first where none can be.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T, C = JobCursor> {
    /// The jobs. There may be fewer than asked for, even none, and more on the next page: where jobs are found by nothing but their kind
    /// or queue, a page ends after so many jobs were looked at.
    pub items: Vec<T>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<C>,
}

/// Most jobs on one page.
pub const PAGE_LIMIT_MAX: usize = 1_000;

/// Checks how many are asked for at once: 1 to [`PAGE_LIMIT_MAX`].
pub fn check_limit(limit: usize) -> Result<(), InvalidInput> {
    if (1..=PAGE_LIMIT_MAX).contains(&limit) {
        return Ok(());
    }
    Err(InvalidInput::new("limit", format!("is {limit}; give 1 to {PAGE_LIMIT_MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_from_its_own_text() {
        #[track_caller]
        fn check(cursor: ListCursor, text: &str) {
            assert_eq!(cursor.to_string(), text);
            assert_eq!(text.parse::<ListCursor>().unwrap(), cursor);
        }
        let id: JobId = "019a8b34-0000-7000-8000-000000000001".parse().unwrap();
        check(ListCursor::newest(id), &format!("{id}"));
        check(ListCursor::oldest(id), &format!("oldest:{id}"));
        check(ListCursor::of_priority(Priority::High, id), &format!("priority:HIGH:{id}"));
        for wrong in ["", "x", "oldest", "newest:1", &format!("priority:{id}"), &format!("oldest:HIGH:{id}")] {
            let error = wrong.parse::<ListCursor>().unwrap_err().to_string();
            assert!(error.contains("the last line of a page"), "{error}");
        }
    }

    #[test]
    fn a_cursor_is_good_for_its_own_order() {
        let id = JobId(Uuid::from_u128(5));
        let cursors = [ListCursor::newest(id), ListCursor::oldest(id), ListCursor::of_priority(Priority::Low, id)];
        for order in ListOrder::ALL {
            let filter = JobFilter { order, ..JobFilter::default() };
            filter.check_cursor(None).unwrap();
            for cursor in cursors {
                assert_eq!(filter.check_cursor(Some(cursor)).is_ok(), cursor.order == order, "{cursor} in {order:?}");
            }
        }
    }

    #[test]
    fn a_page_goes_on_behind_its_cursor() {
        let [two, five, six] = [2, 5, 6].map(|n| JobId(Uuid::from_u128(n)));
        let (nil, max) = (JobId(Uuid::nil()), JobId(Uuid::max()));
        let all = JobFilter::default();
        assert_eq!(all.id_range(None), (nil, max));
        assert_eq!(all.id_range(Some(ListCursor::newest(five))), (nil, five));
        assert_eq!(all.id_range(Some(ListCursor::oldest(five))), (six, max));
        assert_eq!(all.id_range(Some(ListCursor::oldest(max))), (max, max), "there is nothing behind the last");
        let low = ListCursor::of_priority(Priority::Low, two);
        assert_eq!(all.priorities(Some(low)).collect::<Vec<_>>(), [Priority::Low, Priority::Lowest]);
        let high = JobFilter { priority: Some(Priority::High), ..all.clone() };
        assert_eq!(high.priorities(None).collect::<Vec<_>>(), [Priority::High]);
        assert_eq!(high.priorities(Some(low)).count(), 0);
        assert_eq!(all.priorities(None).next(), Some(Priority::Critical));
    }
}
