//! Looking through jobs, a page at a time.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::job_head::JobHead;
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
    /// Returns whether a job passes. Which tables are read for it is up to [`archive`](Self::archive).
    pub fn passes(&self, job: &JobHead<'_>) -> bool {
        // Every field is named, so that a new one cannot be forgotten here.
        let Self {
            states,
            kind,
            queue,
            tag,
            parent,
            business_key,
            principal,
            priority,
            job_type,
            made_from: _,
            made_until: _,
            ended_from,
            ended_until,
            archive: _,
            order: _,
        } = self;
        let (made_from, made_until) = self.id_range(None);
        (made_from..made_until).contains(&job.id)
            && (states.is_empty() || states.iter().any(|state| state.as_str() == job.state))
            && kind.as_ref().is_none_or(|kind| kind.as_str() == job.kind)
            && queue.as_ref().is_none_or(|queue| queue.as_str() == job.queue)
            && tag.as_ref().is_none_or(|tag| job.tags.contains(tag))
            && parent.is_none_or(|parent| job.parent == Some(parent))
            && business_key.as_ref().is_none_or(|key| job.business_key == Some(key.as_str()))
            && principal.as_ref().is_none_or(|principal| job.principal == Some(principal.as_str()))
            && priority.is_none_or(|priority| i64::from(priority.level()) == job.priority)
            && job_type.is_none_or(|job_type| job_type.as_str() == job.job_type)
            && ended_from.is_none_or(|from| job.terminated_at.is_some_and(|at| at >= from))
            && ended_until.is_none_or(|until| job.terminated_at.is_some_and(|at| at < until))
    }

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
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_field_of_a_filter_narrows() {
        let time = |ms| Timestamp::from_millisecond(ms).unwrap();
        let parent = JobId(Uuid::from_u128(7));
        let tags = ["red", "blue"].map(|tag| Tag::new(tag).unwrap());
        let ended = JobHead {
            id: JobId::floor(time(5_000)),
            state: JobState::Failed.as_str(),
            kind: "work",
            queue: "default",
            job_type: JobType::Callback.as_str(),
            priority: Priority::High.level().into(),
            tags: Cow::Borrowed(&tags),
            business_key: Some("order-1"),
            parent: Some(parent),
            principal: Some("ann"),
            terminated_at: Some(time(9_000)),
            picked_by: None,
            params: Cow::Owned(BTreeMap::new()),
        };
        // One without anything that a job may lack, of a newer version.
        let live = JobHead {
            state: "UNKNOWN",
            job_type: "UNKNOWN",
            priority: 1_000,
            tags: Cow::Borrowed(&[]),
            business_key: None,
            parent: None,
            principal: None,
            terminated_at: None,
            ..ended.clone()
        };
        let all = JobFilter::default;
        let check = |name: &str, filter: JobFilter, passes_ended: bool, passes_live: bool| {
            let passes = (filter.passes(&ended), filter.passes(&live));
            assert_eq!(passes, (passes_ended, passes_live), "{name}: {filter:?}");
        };
        let states = |states: &[JobState]| JobFilter { states: states.to_vec(), ..all() };
        let kind = |name| JobFilter { kind: Some(Kind::new(name).unwrap()), ..all() };
        let queue = |name| JobFilter { queue: Some(QueueName::new(name).unwrap()), ..all() };
        let tag = |name| JobFilter { tag: Some(Tag::new(name).unwrap()), ..all() };
        let key = |name| JobFilter { business_key: Some(BusinessKey::new(name).unwrap()), ..all() };
        let principal = |name| JobFilter { principal: Some(Principal::new(name).unwrap()), ..all() };
        let made_from = |ms| JobFilter { made_from: Some(time(ms)), ..all() };
        let made_until = |ms| JobFilter { made_until: Some(time(ms)), ..all() };
        let ended_from = |ms| JobFilter { ended_from: Some(time(ms)), ..all() };
        let ended_until = |ms| JobFilter { ended_until: Some(time(ms)), ..all() };
        check("nothing", all(), true, true);
        check("state", states(&[JobState::Failed]), true, false);
        check("one of the states", states(&[JobState::Pending, JobState::Failed]), true, false);
        check("other states", states(&[JobState::Pending, JobState::Running]), false, false);
        check("kind", kind("work"), true, true);
        check("other kind", kind("worker"), false, false);
        check("queue", queue("default"), true, true);
        check("other queue", queue("defaults"), false, false);
        check("tag", tag("blue"), true, false);
        check("other tag", tag("blu"), false, false);
        check("parent", JobFilter { parent: Some(parent), ..all() }, true, false);
        check("other parent", JobFilter { parent: Some(parent.following()), ..all() }, false, false);
        check("business key", key("order-1"), true, false);
        check("other business key", key("order-2"), false, false);
        check("principal", principal("ann"), true, false);
        check("other principal", principal("an"), false, false);
        check("priority", JobFilter { priority: Some(Priority::High), ..all() }, true, false);
        check("other priority", JobFilter { priority: Some(Priority::Low), ..all() }, false, false);
        check("type", JobFilter { job_type: Some(JobType::Callback), ..all() }, true, false);
        check("other type", JobFilter { job_type: Some(JobType::Single), ..all() }, false, false);
        check("made from then on", made_from(5_000), true, true);
        check("made later", made_from(5_001), false, false);
        check("made before", made_until(5_001), true, true);
        check("made earlier", made_until(5_000), false, false);
        check("ended from then on", ended_from(9_000), true, false);
        check("ended later", ended_from(9_001), false, false);
        check("ended before", ended_until(9_001), true, false);
        check("ended earlier", ended_until(9_000), false, false);
        check("two that hold", JobFilter { tag: tag("red").tag, ..kind("work") }, true, false);
        check("one of two", JobFilter { tag: tag("red").tag, ..kind("worker") }, false, false);
        check(
            "where and in which order",
            JobFilter { archive: ArchiveScope::Archived, order: ListOrder::Oldest, ..all() },
            true,
            true,
        );
    }

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
