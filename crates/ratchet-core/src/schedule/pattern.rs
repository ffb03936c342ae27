//! The wall-clock times that an expression names, searched field by field.

use std::collections::BTreeSet;
use std::ops::RangeBounds;

use jiff::civil::{Date, DateTime, Time};

use super::bits::Bits;
use super::days::Days;

/// What a clock on a wall must show. Knows no time zone: every wall-clock time exists once here.
///
/// A search goes by field, from year to second, so that its cost does not depend on how far away the result is: at most
/// the 2,760 months of the years 1970 to 2199, and those only for days that hardly ever come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) seconds: Bits,
    pub(super) minutes: Bits,
    pub(super) hours: Bits,
    pub(super) days: Days,
    pub(super) months: Bits,
    pub(super) years: BTreeSet<i16>,
}

impl Pattern {
    /// The first named time that is `from`, a whole second, or later.
    pub(super) fn next_from(&self, from: DateTime) -> Option<DateTime> {
        let date = self.next_date(from.date())?;
        if date > from.date() {
            return Some(date.to_datetime(self.next_time(Time::MIN)?));
        }
        match self.next_time(from.time()) {
            Some(time) => Some(date.to_datetime(time)),
            None => self.next_from(date.tomorrow().ok()?.to_datetime(Time::MIN)),
        }
    }

    /// The last named time that is `from`, a whole second, or earlier.
    pub(super) fn previous_from(&self, from: DateTime) -> Option<DateTime> {
        let date = self.previous_date(from.date())?;
        if date < from.date() {
            return Some(date.to_datetime(self.previous_time(Time::MAX)?));
        }
        match self.previous_time(from.time()) {
            Some(time) => Some(date.to_datetime(time)),
            None => self.previous_from(date.yesterday().ok()?.to_datetime(Time::MAX)),
        }
    }

    /// How many named times lie from `from` to before `to`.
    pub(super) fn count(&self, from: DateTime, to: DateTime) -> u64 {
        if from >= to {
            return 0;
        }
        let part_of_day = |at: DateTime| if self.names_date(at.date()) { self.times_before(at.time()) } else { 0 };
        self.dates_between(from.date(), to.date()) * self.times_a_day() + part_of_day(to) - part_of_day(from)
    }

    /// Whether `at` is a named time.
    pub(super) fn names(&self, at: DateTime) -> bool {
        self.next_from(at) == Some(at)
    }

    /// Whether every hour of the day is named.
    pub(super) fn names_every_hour(&self) -> bool {
        self.hours == Bits::all(0, 23)
    }

    /// Whether an hour that is named has more than one time in it.
    pub(super) fn names_several_an_hour(&self) -> bool {
        self.minutes.len() * self.seconds.len() > 1
    }

    /// Whether any date is named at all.
    pub(super) fn ever_fires(&self) -> bool {
        self.next_date(Date::MIN).is_some()
    }

    fn next_date(&self, from: Date) -> Option<Date> {
        let start = (from.year(), from.month());
        self.months(from.year()..).skip_while(|month| *month < start).find_map(|(year, month)| {
            let first = if (year, month) == start { from.day() } else { 1 };
            self.days.of(year, month).first_from(first).and_then(|day| Date::new(year, month, day).ok())
        })
    }

    fn previous_date(&self, from: Date) -> Option<Date> {
        let start = (from.year(), from.month());
        self.months(..=from.year()).rev().skip_while(|month| *month > start).find_map(|(year, month)| {
            let last = if (year, month) == start { from.day() } else { 31 };
            self.days.of(year, month).last_until(last).and_then(|day| Date::new(year, month, day).ok())
        })
    }

    fn names_date(&self, date: Date) -> bool {
        self.next_date(date) == Some(date)
    }

    /// How many named dates lie from `from` to before `to`.
    fn dates_between(&self, from: Date, to: Date) -> u64 {
        let (start, end) = ((from.year(), from.month()), (to.year(), to.month()));
        let months = self.months(from.year()..).skip_while(|month| *month < start).take_while(|month| *month <= end);
        months
            .map(|(year, month)| {
                let days = self.days.of(year, month);
                let until = if (year, month) == end { days.len_below(to.day()) } else { days.len() };
                let before = if (year, month) == start { days.len_below(from.day()) } else { 0 };
                u64::from(until - before)
            })
            .sum()
    }

    fn next_time(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        if self.hours.has(hour) {
            if self.minutes.has(minute)
                && let Some(second) = self.seconds.first_from(second)
            {
                return time(hour, minute, second);
            }
            if let Some(minute) = self.minutes.first_from(minute + 1) {
                return time(hour, minute, self.seconds.first_from(0)?);
            }
        }
        time(self.hours.first_from(hour + 1)?, self.minutes.first_from(0)?, self.seconds.first_from(0)?)
    }

    fn previous_time(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        if self.hours.has(hour) {
            if self.minutes.has(minute)
                && let Some(second) = self.seconds.last_until(second)
            {
                return time(hour, minute, second);
            }
            if let Some(minute) = self.minutes.last_until(minute - 1) {
                return time(hour, minute, self.seconds.last_until(59)?);
            }
        }
        time(self.hours.last_until(hour - 1)?, self.minutes.last_until(59)?, self.seconds.last_until(59)?)
    }

    fn times_a_day(&self) -> u64 {
        u64::from(self.hours.len()) * u64::from(self.minutes.len()) * u64::from(self.seconds.len())
    }

    /// How many named times of a day are before `time`.
    fn times_before(&self, time: Time) -> u64 {
        let (minutes, seconds) = (u64::from(self.minutes.len()), u64::from(self.seconds.len()));
        let mut times = u64::from(self.hours.len_below(time.hour())) * minutes * seconds;
        if self.hours.has(time.hour()) {
            times += u64::from(self.minutes.len_below(time.minute())) * seconds;
            if self.minutes.has(time.minute()) {
                times += u64::from(self.seconds.len_below(time.second()));
            }
        }
        times
    }

    /// The named months of those of the named years that are in the range, in order.
    fn months(&self, years: impl RangeBounds<i16>) -> impl DoubleEndedIterator<Item = (i16, i8)> {
        let of_year = move |year| (1..=12).filter(|month| self.months.has(*month)).map(move |month| (year, month));
        self.years.range(years).copied().flat_map(of_year)
    }
}

fn time(hour: i8, minute: i8, second: i8) -> Option<Time> {
    Time::new(hour, minute, second, 0).ok()
}
