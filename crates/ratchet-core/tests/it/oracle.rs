//! Schedules the slow way: looks at a zone's clock again and again, and asks of each time whether it is named.
//!
//! Written from the documentation of the expressions and of the policies, and on purpose without a line of the code
//! that it judges. It finds the days of a month by looking at the calendar around a date, reads ranges by walking them,
//! and knows shifts of the clock only from what the clock shows before and after.

use std::collections::{HashMap, HashSet};

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan};
use ratchet_core::schedule::{DstGap, DstOverlap, DstPolicy};

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// How often it looks for changes.
const LOOK: SignedDuration = SignedDuration::from_hours(3);

pub(crate) fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// An expression whose second is 0.
pub(crate) struct Expression {
    fields: Vec<String>,
    hours: Vec<bool>,
    minutes: Vec<bool>,
}

impl Expression {
    pub(crate) fn new(text: &str) -> Self {
        let fields: Vec<String> = text.split(' ').map(str::to_uppercase).collect();
        assert_eq!(fields[0], "0", "the oracle looks once a minute");
        let list = |field: &str, last: i32| (0..=last).map(|value| list_holds(field, value, 0, last, &[])).collect();
        Self { hours: list(&fields[2], 23), minutes: list(&fields[1], 59), fields }
    }

    fn names(&self, wall: DateTime, dates: &mut HashMap<Date, bool>) -> bool {
        wall.second() == 0
            && self.minutes[usize::try_from(wall.minute()).unwrap()]
            && self.hours[usize::try_from(wall.hour()).unwrap()]
            && *dates.entry(wall.date()).or_insert_with(|| self.names_date(wall.date()))
    }

    pub(crate) fn names_date(&self, date: Date) -> bool {
        let year = self.fields.get(6).is_none_or(|years| list_holds(years, date.year().into(), 1970, 2199, &[]));
        year && (1970..=2199).contains(&date.year())
            && list_holds(&self.fields[4], date.month().into(), 1, 12, &MONTHS)
            && self.fields[3].split(',').any(|item| names_day_of_month(item, date))
            && self.fields[5].split(',').any(|item| names_day_of_week(item, date))
    }

    fn is_rhythm(&self) -> bool {
        self.hours.iter().all(|named| *named)
    }

    fn fires_in_both_passes(&self) -> bool {
        self.is_rhythm() || self.minutes.iter().filter(|named| **named).count() > 1
    }

    /// The fires from `from` to before `to`, both whole minutes.
    pub(crate) fn fires(&self, clock: &Clock, dst: DstPolicy) -> Vec<Timestamp> {
        let mut dates = HashMap::new();
        let mut fires = Vec::new();
        for (index, (instant, wall)) in clock.minutes.iter().enumerate() {
            if *instant < clock.from || *instant >= clock.to {
                continue;
            }
            let (first, last) = clock.shown[wall];
            let passes = match dst.overlap {
                DstOverlap::ByPattern if self.fires_in_both_passes() => DstOverlap::Both,
                DstOverlap::ByPattern => DstOverlap::First,
                given => given,
            };
            let right_pass = match passes {
                DstOverlap::First => *instant == first,
                DstOverlap::Last => *instant == last,
                _ => true,
            };
            let fires_itself = right_pass && self.names(*wall, &mut dates);
            let mut skipped = clock.skipped.get(&index).into_iter().flatten();
            let makes_up = dst.gap == DstGap::AtShift && !self.is_rhythm();
            if fires_itself || (makes_up && skipped.any(|wall| self.names(*wall, &mut dates))) {
                fires.push(*instant);
            }
        }
        fires
    }
}

/// What a zone's clock shows, minute by minute, in the hours around a change, and before and after them for as long as
/// the change could matter.
pub(crate) struct Clock {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    minutes: Vec<(Timestamp, DateTime)>,
    /// When a time is shown first and last.
    shown: HashMap<DateTime, (Timestamp, Timestamp)>,
    /// The times that are never shown, by the place in `minutes` that comes after them.
    skipped: HashMap<usize, Vec<DateTime>>,
}

impl Clock {
    /// Ordinary changes are of some hours at most; around greater ones it looks at days.
    pub(crate) fn around(zone: &TimeZone, shift: Timestamp) -> Self {
        let (before, after) = (zone.to_offset(shift), zone.to_offset(shift + LOOK));
        let moved = i64::from((after.seconds() - before.seconds()).abs());
        let margin = SignedDuration::from_hours(if moved < 3 * 3_600 { 4 } else { 26 });
        let (from, to) = (shift - margin, shift + margin);
        let mut minutes = Vec::new();
        let mut shown = HashMap::new();
        let mut at = from - margin;
        while at < to + margin {
            let wall = zone.to_datetime(at);
            minutes.push((at, wall));
            shown.entry(wall).or_insert((at, at)).1 = at;
            at += SignedDuration::from_mins(1);
        }
        let mut skipped = HashMap::new();
        for (index, pair) in minutes.windows(2).enumerate() {
            let mut wall = pair[0].1 + SignedDuration::from_mins(1);
            while wall < pair[1].1 {
                if !shown.contains_key(&wall) {
                    skipped.entry(index + 1).or_insert_with(Vec::new).push(wall);
                }
                wall += SignedDuration::from_mins(1);
            }
        }
        Self { from, to, minutes, shown, skipped }
    }
}

/// The instants at which, or up to three hours after which, a zone's clock is changed.
pub(crate) fn shifts(zone: &TimeZone, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
    let mut found = Vec::new();
    let mut at = from;
    let mut offset = zone.to_offset(at);
    while at < to {
        at += LOOK;
        let now = zone.to_offset(at);
        if now != offset {
            found.push(at - LOOK);
            offset = now;
        }
    }
    found
}

/// Whether a list names a value, by walking each of its ranges one by one.
fn list_holds(list: &str, value: i32, first: i32, last: i32, words: &[&str]) -> bool {
    let number = |text: &str| -> i32 {
        let word = words.iter().position(|word| *word == text);
        word.map_or_else(|| text.parse().unwrap(), |at| i32::try_from(at).unwrap() + 1)
    };
    list.split(',').any(|item| {
        let (range, step) = item.split_once('/').unwrap_or((item, ""));
        let every: i32 = if step.is_empty() { 1 } else { step.parse().unwrap() };
        let (mut at, end) = match range.split_once('-') {
            Some((from, to)) => (number(from), number(to)),
            None if range == "*" => (first, last),
            None if step.is_empty() => (number(range), number(range)),
            None => (number(range), last),
        };
        let mut walked = 0;
        loop {
            if at == value && walked % every == 0 {
                return true;
            }
            if at == end {
                return false;
            }
            at = if at == last { first } else { at + 1 };
            walked += 1;
        }
    })
}

fn days(date: Date, days: i32) -> Date {
    date.checked_add(days.days()).unwrap()
}

fn is_workday(date: Date) -> bool {
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

fn is_last_of_month(date: Date) -> bool {
    days(date, 1).day() == 1
}

/// All dates of the month of a date.
fn month_of(date: Date) -> Vec<Date> {
    (-31..=31).map(|offset| days(date, offset)).filter(|day| day.first_of_month() == date.first_of_month()).collect()
}

fn names_day_of_month(item: &str, date: Date) -> bool {
    if matches!(item, "?" | "*") {
        return true;
    }
    let (target, workday) = item.strip_suffix('W').map_or((item, false), |target| (target, true));
    let month = month_of(date);
    let named: HashSet<Date> = if let Some(offset) = target.strip_prefix('L') {
        let offset = offset.strip_prefix('-').map_or(0, |offset| offset.parse().unwrap());
        month
            .iter()
            .copied()
            .filter(|day| is_last_of_month(days(*day, offset)) && month.contains(&days(*day, offset)))
            .collect()
    } else {
        month.iter().copied().filter(|day| list_holds(target, day.day().into(), 1, 31, &[])).collect()
    };
    if !workday {
        return named.contains(&date);
    }
    named.into_iter().any(|target| {
        let workdays = month.iter().copied().filter(|day| is_workday(*day));
        workdays.min_by_key(|day| (i32::from(day.day()) - i32::from(target.day())).abs()) == Some(date)
    })
}

fn names_day_of_week(item: &str, date: Date) -> bool {
    if matches!(item, "?" | "*") {
        return true;
    }
    let weekday = 1 + i32::from(date.weekday().to_sunday_zero_offset());
    let is = |text: &str| list_holds(text, weekday, 1, 7, &WEEKDAYS);
    let month = month_of(date);
    if item == "L" {
        date.weekday() == Weekday::Saturday
    } else if let Some(text) = item.strip_suffix('L') {
        is(text) && !month.contains(&days(date, 7))
    } else if let Some((text, nth)) = item.split_once('#') {
        let same = month.iter().filter(|day| day.weekday() == date.weekday() && **day <= date).count();
        is(text) && same == nth.parse::<usize>().unwrap()
    } else {
        is(item)
    }
}
