//! The fires of a cron expression in a time zone.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::dst::{DstGap, DstOverlap, DstPolicy};
use super::expression::CronExpression;
use super::stretch::{Pass, Stretch};
use super::zone::Zone;

/// Fires whenever a clock in a certain zone shows a time that an expression names.
///
/// ```
/// use ratchet_core::schedule::{Cron, CronExpression, Zone};
///
/// let cron = Cron::new(CronExpression::new("0 0 9 ? * MON-FRI")?).in_zone(Zone::new("Europe/Berlin")?);
/// let friday_evening = "2026-07-03T18:00:00Z".parse().unwrap();
/// assert_eq!(cron.next_after(friday_evening).unwrap().to_string(), "2026-07-06T07:00:00Z");
/// assert_eq!(cron.previous_before(friday_evening).unwrap().to_string(), "2026-07-03T07:00:00Z");
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cron {
    /// Which times fire.
    pub expression: CronExpression,
    /// On whose clock.
    #[serde(default)]
    pub zone: Zone,
    /// What happens when that clock is changed.
    #[serde(default)]
    pub dst: DstPolicy,
}

const SECOND: SignedDuration = SignedDuration::from_secs(1);
/// More than any clock differs from UTC.
const OFFSET_MAX: SignedDuration = SignedDuration::from_hours(48);
/// Before every fire: the last days of 1969, in UTC.
const BEFORE_ALL: Timestamp = Timestamp::constant(-4 * 86_400, 0);
/// After every fire: the first days of 2200, in UTC.
const AFTER_ALL: Timestamp = Timestamp::constant(7_258_118_400 + 4 * 86_400, 0);

impl Cron {
    /// The expression on a clock that shows UTC.
    pub fn new(expression: CronExpression) -> Self {
        Self { expression, zone: Zone::UTC, dst: DstPolicy::default() }
    }

    /// The same in another zone.
    #[must_use]
    pub fn in_zone(mut self, zone: Zone) -> Self {
        self.zone = zone;
        self
    }

    /// The same with another rule for changes of the clock.
    #[must_use]
    pub fn with_dst(mut self, dst: DstPolicy) -> Self {
        self.dst = dst;
        self
    }

    /// The first fire after `after`; none if its years are over.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let mut from = floor(after).checked_add(SECOND).ok()?.max(BEFORE_ALL);
        loop {
            from = self.leap_forward(from)?;
            let stretch = self.stretch(from);
            if stretch.start() == from && self.fires_at_start(&stretch) {
                return Some(from);
            }
            let (first, end) = stretch.walls(self.pass());
            let wall = self.expression.pattern().next_from(first.max(stretch.wall(from)));
            if let Some(wall) = wall.filter(|wall| *wall < end) {
                return stretch.offset.to_timestamp(wall).ok();
            }
            from = stretch.end()?;
        }
    }

    /// The last fire before `before`; none if there was none since 1970.
    pub fn previous_before(&self, before: Timestamp) -> Option<Timestamp> {
        let mut until = ceiling(before).checked_sub(SECOND).ok()?.min(AFTER_ALL);
        loop {
            until = self.leap_back(until)?;
            let stretch = self.stretch(until);
            let (first, end) = stretch.walls(self.pass());
            let last = end.checked_sub(SECOND).ok()?.min(stretch.wall(until));
            let wall = self.expression.pattern().previous_from(last);
            if let Some(wall) = wall.filter(|wall| *wall >= first) {
                return stretch.offset.to_timestamp(wall).ok();
            }
            if self.fires_at_start(&stretch) {
                return Some(stretch.start());
            }
            until = stretch.start().checked_sub(SECOND).ok()?;
        }
    }

    /// How many fires lie after `after`, up to and with `until`. Counts by months, not by fires.
    pub fn fires_between(&self, after: Timestamp, until: Timestamp) -> u64 {
        let mut from = floor(after).clamp(BEFORE_ALL, AFTER_ALL) + SECOND;
        let to = floor(until).clamp(BEFORE_ALL, AFTER_ALL) + SECOND;
        let mut fires = 0;
        while from < to {
            let stretch = self.stretch(from);
            let (first, end) = stretch.walls(self.pass());
            let first = first.max(stretch.wall(from));
            let end = end.min(stretch.wall(to));
            fires += self.expression.pattern().count(first, end);
            if stretch.start() == from && self.fires_at_start(&stretch) && !self.names_within(first, end) {
                fires += 1;
            }
            let Some(next) = stretch.end() else { break };
            from = next;
        }
        fires
    }

    fn stretch(&self, instant: Timestamp) -> Stretch {
        Stretch::at(self.zone.rules(), instant)
    }

    fn pass(&self) -> Pass {
        let pattern = self.expression.pattern();
        match self.dst.overlap {
            DstOverlap::Last => Pass::Last,
            DstOverlap::Both => Pass::Both,
            DstOverlap::ByPattern if pattern.names_every_hour() || pattern.names_several_an_hour() => Pass::Both,
            DstOverlap::ByPattern | DstOverlap::First => Pass::First,
        }
    }

    /// Whether the shift that began this stretch skipped times that fire now instead.
    fn fires_at_start(&self, stretch: &Stretch) -> bool {
        let pattern = self.expression.pattern();
        if self.dst.gap == DstGap::Skip || pattern.names_every_hour() {
            return false;
        }
        stretch.gap().is_some_and(|(first, end)| pattern.next_from(first).is_some_and(|wall| wall < end))
    }

    /// Whether the first of a stretch's times is named, and so was counted with the others.
    fn names_within(&self, first: DateTime, end: DateTime) -> bool {
        first < end && self.expression.pattern().names(first)
    }

    /// Goes on to shortly before the next wall-clock time that is named, wherever in the world the clock hangs. Without
    /// it, a rare date would be searched from one shift of the clock to the next.
    fn leap_forward(&self, from: Timestamp) -> Option<Timestamp> {
        let wall = Offset::UTC.to_datetime(from.checked_sub(OFFSET_MAX).ok()?);
        let next = Offset::UTC.to_timestamp(self.expression.pattern().next_from(wall)?).ok()?;
        Some(from.max(next.checked_sub(OFFSET_MAX).ok()?))
    }

    fn leap_back(&self, until: Timestamp) -> Option<Timestamp> {
        let wall = Offset::UTC.to_datetime(until.checked_add(OFFSET_MAX).ok()?);
        let previous = Offset::UTC.to_timestamp(self.expression.pattern().previous_from(wall)?).ok()?;
        Some(until.min(previous.checked_add(OFFSET_MAX).ok()?))
    }
}

/// The whole second that an instant lies in.
fn floor(instant: Timestamp) -> Timestamp {
    let second = instant.as_second() - i64::from(instant.subsec_nanosecond() < 0);
    Timestamp::from_second(second).unwrap_or(Timestamp::MIN)
}

/// The first whole second that is not before an instant.
fn ceiling(instant: Timestamp) -> Timestamp {
    let second = instant.as_second() + i64::from(instant.subsec_nanosecond() > 0);
    Timestamp::from_second(second).unwrap_or(AFTER_ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cron(expression: &str, zone: &str) -> Cron {
        Cron::new(CronExpression::new(expression).unwrap()).in_zone(Zone::new(zone).unwrap())
    }

    /// The fires after an instant, as the zone's clock shows them.
    fn walls(cron: &Cron, after: &str, count: usize) -> Vec<String> {
        let fires = std::iter::successors(cron.next_after(at(after)), |fire| cron.next_after(*fire));
        fires.take(count).map(|fire| cron.zone.rules().to_offset(fire).to_datetime(fire).to_string()).collect()
    }

    #[test]
    fn the_usual_expressions_fire_when_they_say() {
        // 2026-01-01 is a Thursday.
        let check = |expression: &str, expected: &[&str]| {
            let fires = walls(&cron(expression, "UTC"), "2026-01-01T00:00:00Z", expected.len());
            assert_eq!(fires, expected, "{expression}");
        };
        check("0 0 12 * * ?", &["2026-01-01T12:00:00", "2026-01-02T12:00:00"]);
        check("0 15 10 ? * *", &["2026-01-01T10:15:00", "2026-01-02T10:15:00"]);
        check("0 15 10 * * ? 2027", &["2027-01-01T10:15:00", "2027-01-02T10:15:00"]);
        check("0 * 14 * * ?", &["2026-01-01T14:00:00", "2026-01-01T14:01:00", "2026-01-01T14:02:00"]);
        check("0 0/5 14,18 * * ?", &["2026-01-01T14:00:00", "2026-01-01T14:05:00", "2026-01-01T14:10:00"]);
        check("0 55/5 14,18 * * ?", &["2026-01-01T14:55:00", "2026-01-01T18:55:00", "2026-01-02T14:55:00"]);
        check(
            "0 0-2 14 * * ?",
            &["2026-01-01T14:00:00", "2026-01-01T14:01:00", "2026-01-01T14:02:00", "2026-01-02T14:00:00"],
        );
        check("0 10,44 14 ? 3 WED", &["2026-03-04T14:10:00", "2026-03-04T14:44:00", "2026-03-11T14:10:00"]);
        check("0 15 10 ? * MON-FRI", &["2026-01-01T10:15:00", "2026-01-02T10:15:00", "2026-01-05T10:15:00"]);
        check("0 15 10 15 * ?", &["2026-01-15T10:15:00", "2026-02-15T10:15:00"]);
        check("0 15 10 L * ?", &["2026-01-31T10:15:00", "2026-02-28T10:15:00", "2026-03-31T10:15:00"]);
        check("0 15 10 L-2 * ?", &["2026-01-29T10:15:00", "2026-02-26T10:15:00", "2026-03-29T10:15:00"]);
        check("0 15 10 LW * ?", &["2026-01-30T10:15:00", "2026-02-27T10:15:00", "2026-03-31T10:15:00"]);
        check("0 15 10 ? * 6L", &["2026-01-30T10:15:00", "2026-02-27T10:15:00", "2026-03-27T10:15:00"]);
        check("0 15 10 ? * 6L 2028-2029", &["2028-01-28T10:15:00", "2028-02-25T10:15:00"]);
        check("0 15 10 ? * 6#3", &["2026-01-16T10:15:00", "2026-02-20T10:15:00"]);
        check("0 0 12 1/5 * ?", &["2026-01-01T12:00:00", "2026-01-06T12:00:00", "2026-01-11T12:00:00"]);
        check("0 11 11 11 11 ?", &["2026-11-11T11:11:00", "2027-11-11T11:11:00"]);
        check("* * * * * ?", &["2026-01-01T00:00:01", "2026-01-01T00:00:02"]);
        check("30 59 23 31 12 ?", &["2026-12-31T23:59:30", "2027-12-31T23:59:30"]);
        check("0 0 22-2/2 * * ?", &["2026-01-01T02:00:00", "2026-01-01T22:00:00", "2026-01-02T00:00:00"]);
        check("0 0 0 ? 2 SUN#5", &["2032-02-29T00:00:00", "2060-02-29T00:00:00"]);
    }

    #[test]
    fn a_fire_is_strictly_after_and_strictly_before() {
        let daily = cron("0 0 0 * * ?", "UTC");
        let check = |from: &str, next: &str, previous: &str| {
            assert_eq!(daily.next_after(at(from)), Some(at(next)), "next after {from}");
            assert_eq!(daily.previous_before(at(from)), Some(at(previous)), "previous before {from}");
        };
        check("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z");
        check("2026-01-01T23:59:59.999999999Z", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z");
        check("2026-01-02T00:00:00.000000001Z", "2026-01-03T00:00:00Z", "2026-01-02T00:00:00Z");
    }

    #[test]
    fn time_before_1970_and_after_2199_is_empty() {
        let daily = cron("0 0 0 * * ?", "Pacific/Kiritimati");
        let first = daily.next_after(Timestamp::MIN).unwrap();
        let last = daily.previous_before(Timestamp::MAX).unwrap();
        assert_eq!(walls(&daily, "1900-01-01T00:00:00Z", 1), ["1970-01-01T00:00:00"]);
        assert_eq!(daily.zone.rules().to_offset(last).to_datetime(last).to_string(), "2199-12-31T00:00:00");
        assert_eq!(daily.previous_before(first), None);
        assert_eq!(daily.previous_before(Timestamp::MIN), None);
        assert_eq!(daily.next_after(last), None);
        assert_eq!(daily.next_after(Timestamp::MAX), None);
        // 230 years are 84,006 days, less the one that Kiritimati skipped when it moved across the date line, which
        // fires at the shift, midnight, and there it meets the next day's fire.
        assert_eq!(daily.fires_between(Timestamp::MIN, Timestamp::MAX), 84_005);
        // In the east, 1970 begins before the epoch.
        let berlin = cron("0 0 0 1 1 ?", "Europe/Berlin");
        assert_eq!(berlin.next_after(at("1969-12-31T22:59:59.5Z")), Some(at("1969-12-31T23:00:00Z")));
        assert_eq!(berlin.previous_before(at("1969-12-31T23:00:00.5Z")), Some(at("1969-12-31T23:00:00Z")));
        assert_eq!(cron("0 0 0 1 1 ? 2025", "UTC").next_after(at("2026-01-01T00:00:00Z")), None);
    }

    #[test]
    fn changes_of_the_clock_follow_the_table() {
        let check = |zone: &str, expression: &str, after: &str, expected: &[&str]| {
            assert_eq!(walls(&cron(expression, zone), after, expected.len()), expected, "{expression} in {zone}");
        };
        let (spring, autumn) = ("2026-03-29T00:30:00Z", "2026-10-24T23:30:00Z");
        let berlin = "Europe/Berlin";
        // Spring: 02:00 becomes 03:00. It is 01:30 now.
        check(berlin, "0 30 2 * * ?", spring, &["2026-03-29T03:00:00", "2026-03-30T02:30:00"]);
        check(berlin, "0 0/15 2 * * ?", spring, &["2026-03-29T03:00:00", "2026-03-30T02:00:00"]);
        check(berlin, "0 30 2,3 * * ?", spring, &["2026-03-29T03:00:00", "2026-03-29T03:30:00"]);
        check(berlin, "0 0 2,3 * * ?", spring, &["2026-03-29T03:00:00", "2026-03-30T02:00:00"]);
        check(berlin, "0 0 */2 * * ?", spring, &["2026-03-29T03:00:00", "2026-03-29T04:00:00"]);
        check(berlin, "0 45 * * * ?", spring, &["2026-03-29T01:45:00", "2026-03-29T03:45:00"]);
        check(berlin, "0 5/20 * * * ?", spring, &["2026-03-29T01:45:00", "2026-03-29T03:05:00"]);
        check(berlin, "0 0 * * * ?", spring, &["2026-03-29T03:00:00", "2026-03-29T04:00:00"]);
        // Autumn: 03:00 becomes 02:00. It is 01:30 now.
        check(berlin, "0 30 2 * * ?", autumn, &["2026-10-25T02:30:00", "2026-10-26T02:30:00"]);
        check(berlin, "0 0 * * * ?", autumn, &["2026-10-25T02:00:00", "2026-10-25T02:00:00", "2026-10-25T03:00:00"]);
        check(
            berlin,
            "0 0/30 2 * * ?",
            autumn,
            &[
                "2026-10-25T02:00:00",
                "2026-10-25T02:30:00",
                "2026-10-25T02:00:00",
                "2026-10-25T02:30:00",
                "2026-10-26T02:00:00",
            ],
        );
        check(berlin, "0 30 0/2 * * ?", autumn, &["2026-10-25T02:30:00", "2026-10-25T04:30:00"]);
        // Lord Howe moves by half an hour, at 02:00.
        let lord_howe = "Australia/Lord_Howe";
        check(lord_howe, "0 15 2 * * ?", "2026-10-03T12:00:00Z", &["2026-10-04T02:30:00", "2026-10-05T02:15:00"]);
        check(lord_howe, "0 45 1 * * ?", "2026-04-04T12:00:00Z", &["2026-04-05T01:45:00", "2026-04-06T01:45:00"]);
        check(
            lord_howe,
            "0 0/15 1 * * ?",
            "2026-04-04T14:29:00Z",
            &[
                "2026-04-05T01:30:00",
                "2026-04-05T01:45:00",
                "2026-04-05T01:30:00",
                "2026-04-05T01:45:00",
                "2026-04-06T01:00:00",
            ],
        );
        // Apia went from the 29th of December 2011 to the 31st.
        let apia = "Pacific/Apia";
        check(apia, "0 0 9 * * ?", "2011-12-30T00:00:00Z", &["2011-12-31T00:00:00", "2011-12-31T09:00:00"]);
        check(apia, "0 0 9 ? * FRI", "2011-12-30T00:00:00Z", &["2011-12-31T00:00:00", "2012-01-06T09:00:00"]);
        check(apia, "0 0 0 * * ?", "2011-12-30T00:00:00Z", &["2011-12-31T00:00:00", "2012-01-01T00:00:00"]);
        // Troll moves by two hours, from 01:00 to 03:00 and back.
        let troll = "Antarctica/Troll";
        check(troll, "0 30 1,2 * * ?", "2026-03-28T12:00:00Z", &["2026-03-29T03:00:00", "2026-03-30T01:30:00"]);
        check(
            troll,
            "0 30 1,2 * * ?",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T01:30:00", "2026-10-25T02:30:00", "2026-10-26T01:30:00"],
        );
        // Casablanca goes back before Ramadan and forward after it.
        let casablanca = "Africa/Casablanca";
        check(casablanca, "0 30 2 * * ?", "2026-02-14T12:00:00Z", &["2026-02-15T02:30:00", "2026-02-16T02:30:00"]);
        check(casablanca, "0 30 2 * * ?", "2026-03-21T12:00:00Z", &["2026-03-22T03:00:00", "2026-03-23T02:30:00"]);
        // Midnight is the hour that Cairo skips.
        check("Africa/Cairo", "0 0 0 * * ?", "2026-04-23T12:00:00Z", &["2026-04-24T01:00:00", "2026-04-25T00:00:00"]);
    }

    #[test]
    fn a_policy_of_ones_own_is_heeded() {
        let check = |gap, overlap, expression: &str, after: &str, expected: &[&str]| {
            let berlin = cron(expression, "Europe/Berlin").with_dst(DstPolicy { gap, overlap });
            let fires = std::iter::successors(berlin.next_after(at(after)), |fire| berlin.next_after(*fire));
            let fires: Vec<String> = fires.take(expected.len()).map(|fire| fire.to_string()).collect();
            assert_eq!(fires, expected, "{expression} {:?}", berlin.dst);
        };
        let (spring, autumn) = ("2026-03-28T12:00:00Z", "2026-10-24T23:45:00Z");
        let fixed = "0 30 2 * * ?";
        check(DstGap::Skip, DstOverlap::ByPattern, fixed, spring, &["2026-03-30T00:30:00Z"]);
        check(DstGap::AtShift, DstOverlap::Last, fixed, autumn, &["2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"]);
        check(DstGap::AtShift, DstOverlap::Both, fixed, autumn, &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]);
        let hourly = "0 0 * * * ?";
        check(DstGap::AtShift, DstOverlap::First, hourly, autumn, &["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z"]);
        check(DstGap::AtShift, DstOverlap::Last, hourly, autumn, &["2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]);
    }
}
