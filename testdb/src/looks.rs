//! Looks at a long [history] that must cost about the same however long it is, for the tests of stores that count what
//! theirs reads.

use std::time::Duration;

use ratchet_core::insight::LaneRange;
use ratchet_core::page::{ArchiveScope, JobFilter, ListCursor, ListOrder};
use ratchet_core::store::{ArchiveRequest, Removal, WaitingLane};
use ratchet_core::{CountBy, JobId, JobState, Timestamp};
use ratchet_store_sql::{Conn, calls};

use crate::history;

/// Jobs of a page, a portion, an answer.
const FEW: usize = 10;

/// One look.
#[derive(Debug, Clone)]
pub enum Look {
    /// A page of a list, which begins there.
    List(JobFilter, Option<ListCursor>),
    /// A count of a few jobs.
    Count(JobFilter),
    /// A page of dead letters.
    DeadLetters,
    /// What ended last.
    RecentEnds,
    /// How many have failed, up to a few.
    CountEnded,
    /// Where jobs wait, and how many, up to a few.
    Waiting,
    /// How many run.
    Running,
    /// Moves a few to the archive; whoever looks rolls back.
    Archive(JobState),
    /// Looks for jobs to move to the archive where all are too young.
    ArchiveNone(JobState),
}

/// Every look, with its name. The history ended at about this time.
pub fn looks(now: Timestamp) -> Vec<(String, Look)> {
    let middle = JobId::floor(now - Duration::from_hours(40 * 24));
    let long_ago = now - Duration::from_hours(1_000 * 24);
    let mut looks = Vec::new();
    for (name, filter) in history::lists() {
        for (scope, archive) in [("", ArchiveScope::Live), (", archive too", ArchiveScope::Both)] {
            let filter = JobFilter { archive, ..filter.clone() };
            let deep = match filter.order {
                ListOrder::Newest => Some(ListCursor::newest(middle)),
                ListOrder::Oldest => Some(ListCursor::oldest(middle)),
                ListOrder::Priority => None,
            };
            looks.push((format!("{name}{scope}"), Look::List(filter.clone(), None)));
            looks.extend(deep.map(|deep| (format!("{name}{scope}, far in"), Look::List(filter, Some(deep)))));
        }
    }
    let few = JobFilter { made_from: Some(now - Duration::from_millis(100)), ..JobFilter::default() };
    // Of the many that have ended, none was made so late: a look that goes on past them would show.
    for (name, filter) in [
        ("of late by state", JobFilter { states: vec![JobState::Succeeded], ..few.clone() }),
        (
            "of late by state and kind",
            JobFilter { states: vec![JobState::Succeeded], kind: history::kind(), ..few.clone() },
        ),
    ] {
        looks.push((name.to_owned(), Look::List(filter.clone(), None)));
        let oldest = JobFilter { order: ListOrder::Oldest, made_from: None, made_until: Some(long_ago), ..filter };
        looks.push((format!("{name}, oldest first"), Look::List(oldest, None)));
    }
    looks.push(("count of some".to_owned(), Look::Count(few)));
    for (name, look) in [
        ("dead letters", Look::DeadLetters),
        ("recent ends", Look::RecentEnds),
        ("count of ended", Look::CountEnded),
        ("waiting", Look::Waiting),
        ("running", Look::Running),
        ("archive failed", Look::Archive(JobState::Failed)),
        ("archive succeeded", Look::Archive(JobState::Succeeded)),
        ("archive none", Look::ArchiveNone(JobState::Succeeded)),
    ] {
        looks.push((name.to_owned(), look));
    }
    looks
}

impl Look {
    /// Takes it.
    ///
    /// # Panics
    /// If the store fails, or does not find what there is plenty of.
    pub async fn take(&self, conn: &mut dyn Conn) {
        let all = JobFilter::default();
        match self {
            Self::List(filter, after) => {
                calls::list(conn, filter, *after, FEW).await.expect("a page");
            }
            Self::Count(filter) => {
                calls::count(conn, filter, &CountBy::State).await.expect("a count");
            }
            Self::DeadLetters => {
                let page = calls::dead_letters(conn, &all, None, FEW).await.expect("dead letters");
                assert_eq!(page.items.len(), FEW);
            }
            Self::RecentEnds => {
                let ends = calls::recent_ends(conn, JobState::Failed, FEW).await.expect("ends");
                assert_eq!(ends.len(), FEW);
            }
            Self::CountEnded => {
                let failed = calls::count_ended(conn, JobState::Failed, FEW as u64).await.expect("a count");
                assert_eq!(failed, FEW as u64);
            }
            Self::Waiting => {
                let lanes = calls::waiting_lanes(conn).await.expect("lanes");
                let ranges: Vec<LaneRange> = lanes.into_iter().map(whole).collect();
                assert!(!ranges.is_empty());
                calls::count_waiting(conn, &ranges, FEW as u64).await.expect("counts");
            }
            Self::Running => {
                calls::running_by_queue(conn).await.expect("counts");
            }
            Self::Archive(state) => {
                assert_eq!(archive_older_than(conn, *state, Duration::from_hours(24)).await, FEW as u64);
            }
            Self::ArchiveNone(state) => {
                assert_eq!(archive_older_than(conn, *state, Duration::from_hours(1_000 * 24)).await, 0);
            }
        }
    }
}

async fn archive_older_than(conn: &mut dyn Conn, state: JobState, age: Duration) -> u64 {
    let request = ArchiveRequest { removal: Removal::Archive, state, age, after: None, limit: FEW, only: None };
    calls::archive(conn, &request).await.expect("a portion").moved
}

fn whole(lane: WaitingLane) -> LaneRange {
    let WaitingLane { probation, resource, queue, kind, priority, .. } = lane;
    LaneRange { probation, resource, queue, kind, priority, before: None }
}

/// Whether looks cost about as much of many jobs as of few: five times as many. A little more is read where the fewer ones were all
/// looked at.
///
/// # Panics
/// If one costs more.
pub fn assert_alike(unit: &str, few: &[(String, i64)], many: &[(String, i64)]) {
    for ((name, few), (_, many)) in few.iter().zip(many) {
        println!("{name}: {few} {unit} at 40,000, {many} at 200,000");
    }
    for ((name, few), (_, many)) in few.iter().zip(many) {
        assert!(*few > 0 && *many <= few * 4, "{name} takes {many} {unit} at 200,000, {few} at 40,000");
    }
}
