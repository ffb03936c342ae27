//! Skips dead index entries at the head of a lane.
//!
//! A claimed job leaves a dead entry in the claim index. Usually it is soon cleared away. But while an old snapshot is open (a
//! backup, a report, a forgotten transaction) PostgreSQL retains it, and every look steps over all of them again. So a store
//! remembers a resume point for each lane, and looks from the start only now and then: a job may arrive before the resume
//! point, because it was rescued or deferred, or because the transaction that stored it was slow.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ratchet_core::clock;

use crate::claim::lane::Lane;

/// A store that has taken fewer jobs has left nothing to step over.
const TAKEN_MIN: u64 = 1_000;
/// Looks from the start that take no longer than this are good enough.
const CHEAP: Duration = Duration::from_millis(1);
/// Up to this long, a look from a resume point that does not find enough is followed by one from the start: then nothing that
/// is due is passed over while there is room for it.
const BEARABLE: Duration = Duration::from_millis(20);
/// Looks from the start take about a tenth of the time.
const APART_TIMES: u32 = 9;
const APART_MAX: Duration = Duration::from_secs(5);
/// How long resume points are unused after they saved no time: the lanes are many, or the database is slow.
const USELESS_FOR: Duration = Duration::from_secs(1);
/// The least distance of a resume point from the present: transactions that store jobs take a moment to commit.
const BEHIND: Duration = Duration::from_millis(250);
/// How many looks from the start are remembered. The quickest of them counts: what is in the way slows all of them.
const REMEMBERED: usize = 3;

/// The lanes of a look. Each class has its own resume points and times: a look at the few lanes of one class says nothing about
/// those of the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LaneClass {
    /// Those of jobs that need no permit and are not on probation.
    Ordinary,
    /// The others.
    Special,
}

#[derive(Debug, Default)]
pub(crate) struct ResumePoints {
    ordinary: Mutex<Inner>,
    special: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    taken: u64,
    /// How long the last looks from the start took.
    full: [Duration; REMEMBERED],
    fulls: usize,
    /// Until when looks begin at the resume points.
    until: Option<Instant>,
    /// Until when they do not, because it was of no use.
    useless_until: Option<Instant>,
    by_lane: HashMap<Key, Timestamp>,
}

type Key = (bool, String, String, String, u8);

fn key(lane: &Lane<'_>) -> Key {
    (lane.probation, lane.resource.to_string(), lane.queue.to_owned(), lane.kind.to_owned(), lane.priority.level())
}

impl Inner {
    /// How long a look from the start takes, at the least.
    fn cost(&self) -> Duration {
        self.full.into_iter().min().unwrap_or_default()
    }
}

impl ResumePoints {
    fn lock(&self, sort: LaneClass) -> MutexGuard<'_, Inner> {
        let inner = match sort {
            LaneClass::Ordinary => &self.ordinary,
            LaneClass::Special => &self.special,
        };
        inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jobs were taken.
    pub(crate) fn taken(&self, count: usize) {
        for sort in [LaneClass::Ordinary, LaneClass::Special] {
            let mut inner = self.lock(sort);
            inner.taken = inner.taken.saturating_add(count as u64);
        }
    }

    /// Where a look at these lanes begins now; `None` if it begins at the start.
    pub(crate) fn begin(&self, sort: LaneClass, lanes: &[Lane<'_>], now: Instant) -> Option<Vec<Option<Timestamp>>> {
        let inner = self.lock(sort);
        inner.until.filter(|until| now < *until)?;
        Some(lanes.iter().map(|lane| inner.by_lane.get(&key(lane)).copied()).collect())
    }

    /// Returns whether a look from the resume points is enough although it found too little.
    pub(crate) fn will_do(&self, sort: LaneClass) -> bool {
        self.lock(sort).cost() > BEARABLE
    }

    /// Returns the time until the next look from the start, if jobs before a resume point are passed over until then.
    pub(crate) fn looks_at_all_in(&self, sort: LaneClass, now: Instant) -> Option<Duration> {
        let inner = self.lock(sort);
        let until = inner.until.filter(|_| inner.cost() > BEARABLE)?;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// A look from the start took so long, by the database's `present`.
    pub(crate) fn looked_at_all(
        &self,
        sort: LaneClass,
        lanes: &[Lane<'_>],
        present: Timestamp,
        (began, ended): (Instant, Instant),
    ) {
        let mut inner = self.lock(sort);
        let took = ended.duration_since(began);
        let place = inner.fulls % REMEMBERED;
        inner.full[place] = took;
        inner.fulls = inner.fulls.wrapping_add(1);
        let helps = inner.useless_until.is_none_or(|until| ended >= until);
        let costly = inner.taken >= TAKEN_MIN && inner.cost() > CHEAP;
        inner.until = (costly && helps).then(|| ended + (took * APART_TIMES).min(APART_MAX));
        inner.by_lane.clear();
        if inner.until.is_some() {
            inner.by_lane.extend(lanes.iter().map(|lane| (key(lane), resume_point(lane, present))));
        }
    }

    /// Records a look from the resume points, and where the next one begins.
    pub(crate) fn looked(
        &self,
        sort: LaneClass,
        lanes: &[Lane<'_>],
        present: Timestamp,
        (began, ended): (Instant, Instant),
    ) {
        let mut inner = self.lock(sort);
        if ended.duration_since(began) * 2 > inner.cost() {
            (inner.until, inner.useless_until) = (None, Some(ended + USELESS_FOR));
            return;
        }
        for lane in lanes {
            inner.by_lane.insert(key(lane), resume_point(lane, present));
        }
    }
}

/// Returns the time before which a lane has no job that is due.
fn resume_point(lane: &Lane<'_>, present: Timestamp) -> Timestamp {
    let latest = clock::earlier(present, BEHIND);
    lane.first().map_or(latest, |(first, _)| latest.min(first))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use ratchet_core::{JobId, Priority};

    use super::LaneClass::{Ordinary, Special};
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    /// A lane whose first job was due then.
    fn lane(kind: &'static str, first: Option<i64>) -> Lane<'static> {
        let mut lane = Lane::new(0, false, Cow::Borrowed(""), ("default", kind, Priority::default()));
        if let Some(second) = first {
            lane.push((at(second), JobId(uuid::Uuid::nil())));
        }
        lane
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The resume points after `taken` jobs and three looks from the start of these durations, and the end of the last one.
    fn after(taken: usize, looks: [u64; 3], lanes: &[Lane<'_>]) -> (ResumePoints, Instant) {
        let (resume_points, mut now) = (ResumePoints::default(), Instant::now());
        resume_points.taken(taken);
        for look in looks {
            resume_points.looked_at_all(Ordinary, lanes, at(100), (now, now + ms(look)));
            now += ms(look);
        }
        (resume_points, now)
    }

    #[test]
    fn looks_begin_at_a_resume_point_only_if_the_start_is_full_of_what_is_gone() {
        let lanes = [lane("a", Some(40)), lane("b", None)];
        let begins = |taken, looks| {
            let (resume_points, now) = after(taken, looks, &lanes);
            resume_points.begin(Ordinary, &lanes, now)
        };
        assert_eq!(begins(999, [10, 10, 10]), None, "too few were taken to be in the way");
        assert_eq!(begins(1_000, [10, 10, 1]), None, "the machine was slow, and not the look");
        let behind = at(100).checked_sub(BEHIND).unwrap();
        assert_eq!(begins(1_000, [10, 10, 10]), Some(vec![Some(at(40)), Some(behind)]));
    }

    #[test]
    fn looks_from_the_start_take_a_tenth_of_the_time() {
        let lanes = [lane("a", Some(40))];
        let (resume_points, now) = after(1_000, [10, 10, 10], &lanes);
        assert!(
            resume_points.begin(Ordinary, &lanes, now + ms(89)).is_some()
                && resume_points.begin(Ordinary, &lanes, now + ms(90)).is_none()
        );
        let (resume_points, now) = after(1_000, [2_000, 2_000, 2_000], &lanes);
        assert!(
            resume_points.begin(Ordinary, &lanes, now + ms(4_999)).is_some()
                && resume_points.begin(Ordinary, &lanes, now + APART_MAX).is_none()
        );
    }

    #[test]
    fn resume_points_follow_the_jobs_that_are_left() {
        let (resume_points, now) = after(1_000, [10, 10, 10], &[lane("a", Some(40))]);
        let other = lane("other", Some(7));
        resume_points.looked(Ordinary, &[lane("a", Some(50))], at(101), (now, now + ms(1)));
        assert_eq!(
            resume_points.begin(Ordinary, &[lane("a", None), other], now),
            Some(vec![Some(at(50)), None]),
            "unknown lanes have none"
        );
    }

    #[test]
    fn resume_points_that_save_no_time_are_unused_for_a_while() {
        let lanes = [lane("a", Some(40))];
        let (resume_points, now) = after(1_000, [10, 10, 10], &lanes);
        resume_points.looked(Ordinary, &lanes, at(100), (now, now + ms(6)));
        let now = now + ms(6);
        assert_eq!(resume_points.begin(Ordinary, &lanes, now), None);
        resume_points.looked_at_all(Ordinary, &lanes, at(100), (now, now + ms(10)));
        assert_eq!(resume_points.begin(Ordinary, &lanes, now + ms(10)), None);
        let later = now + USELESS_FOR;
        resume_points.looked_at_all(Ordinary, &lanes, at(100), (later, later + ms(10)));
        assert!(resume_points.begin(Ordinary, &lanes, later + ms(10)).is_some());
    }

    #[test]
    fn only_where_the_start_costs_much_a_look_that_finds_too_little_will_do() {
        let lanes = [lane("a", Some(40))];
        assert!(!after(1_000, [20, 20, 20], &lanes).0.will_do(Ordinary));
        assert!(after(1_000, [21, 21, 21], &lanes).0.will_do(Ordinary));
    }

    #[test]
    fn looks_at_special_lanes_change_nothing_for_ordinary_ones() {
        let lanes = [lane("a", Some(40))];
        let (resume_points, now) = after(1_000, [30, 30, 30], &lanes);
        resume_points.looked_at_all(Special, &[lane("limited", None)], at(100), (now, now + Duration::from_micros(10)));
        assert_eq!(resume_points.begin(Ordinary, &lanes, now), Some(vec![Some(at(40))]));
        assert!(resume_points.will_do(Ordinary) && !resume_points.will_do(Special));
        assert_eq!(resume_points.begin(Special, &lanes, now), None);
    }

    #[test]
    fn what_is_passed_over_is_looked_for_when_the_resume_points_end() {
        let lanes = [lane("a", Some(40))];
        let (resume_points, now) = after(1_000, [30, 30, 30], &lanes);
        assert_eq!(resume_points.looks_at_all_in(Ordinary, now), Some(ms(270)));
        assert_eq!(resume_points.looks_at_all_in(Ordinary, now + ms(270)), None);
        let (resume_points, now) = after(1_000, [10, 10, 10], &lanes);
        assert_eq!(resume_points.looks_at_all_in(Ordinary, now), None, "where it is bearable nothing is passed over");
    }
}
