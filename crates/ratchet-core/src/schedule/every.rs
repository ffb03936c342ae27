//! Fires at a fixed distance.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::last_time;
use crate::invalid::InvalidInput;
use crate::limits;

/// Fires at an instant, the anchor, and then at a fixed distance for ever.
///
/// Every fire is the anchor plus a multiple of the interval, so a late one does not move those after it. No time zone
/// is involved: a day is 24 hours, also when clocks change.
///
/// ```
/// use std::time::Duration;
/// use ratchet_core::schedule::Every;
///
/// let anchor = "2026-01-01T00:00:10Z".parse().unwrap();
/// let every = Every::new(Duration::from_secs(60), anchor)?;
/// assert_eq!(every.next_after("2025-01-01T00:00:00Z".parse().unwrap()), Some(anchor));
/// assert_eq!(every.next_after(anchor).unwrap().to_string(), "2026-01-01T00:01:10Z");
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Every {
    interval: Duration,
    anchor: Timestamp,
}

#[derive(Deserialize)]
struct Unchecked {
    interval: Duration,
    anchor: Timestamp,
}

impl Every {
    /// The shortest interval.
    pub const INTERVAL_MIN: Duration = Duration::from_secs(1);
    /// The longest interval: ten years of 365 days.
    pub const INTERVAL_MAX: Duration = limits::DURATION_MAX;

    /// Fires at `anchor`, and every `interval` from then on. The anchor is cut to microseconds, as times are stored.
    pub fn new(interval: Duration, anchor: Timestamp) -> Result<Self, InvalidInput> {
        let refused = |limit: String| Err(InvalidInput::new("interval", format!("is {interval:?}; {limit}")));
        if interval < Self::INTERVAL_MIN {
            return refused(format!("the least is {:?}", Self::INTERVAL_MIN));
        }
        if interval > Self::INTERVAL_MAX {
            return refused(format!("the limit is 10 years ({:?})", Self::INTERVAL_MAX));
        }
        if !interval.subsec_nanos().is_multiple_of(1_000) {
            return refused("times are stored in microseconds, so give whole ones".to_owned());
        }
        let anchor = Timestamp::from_microsecond(anchor.as_microsecond()).unwrap_or(anchor);
        Ok(Self { interval, anchor })
    }

    /// The distance between two fires.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// The first fire.
    pub const fn anchor(&self) -> Timestamp {
        self.anchor
    }

    /// The first fire after `after`; none if time ends before.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.fire(self.fires_until(after)).filter(|fire| *fire <= last_time())
    }

    /// The last fire before `before`; none before the anchor.
    pub fn previous_before(&self, before: Timestamp) -> Option<Timestamp> {
        let fires = self.fires_until(before);
        let last = self.fire(fires.checked_sub(1)?)?;
        if last < before { Some(last) } else { self.fire(fires.checked_sub(2)?) }
    }

    /// How many fires lie after `after`, up to and with `until`.
    pub fn fires_between(&self, after: Timestamp, until: Timestamp) -> u64 {
        self.fires_until(until).saturating_sub(self.fires_until(after))
    }

    /// How many fires lie up to and with `until`. All of time has 630 billion seconds.
    fn fires_until(&self, until: Timestamp) -> u64 {
        let nanos = until.as_nanosecond() - self.anchor.as_nanosecond();
        u128::try_from(nanos).map_or(0, |nanos| {
            u64::try_from(nanos / self.interval.as_nanos() + 1).expect("an interval is at least a second")
        })
    }

    /// The fire of this number, the anchor being 0.
    fn fire(&self, number: u64) -> Option<Timestamp> {
        let nanos = i128::try_from(self.interval.as_nanos()).ok()?.checked_mul(i128::from(number))?;
        Timestamp::from_nanosecond(self.anchor.as_nanosecond().checked_add(nanos)?).ok()
    }
}

impl TryFrom<Unchecked> for Every {
    type Error = InvalidInput;
    fn try_from(unchecked: Unchecked) -> Result<Self, InvalidInput> {
        Self::new(unchecked.interval, unchecked.anchor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn intervals_do_not_drift() {
        let every = Every::new(Duration::from_millis(1_500), at("2026-01-01T00:00:00.0000005Z")).unwrap();
        let check = |from: &str, next: Option<&str>, previous: Option<&str>| {
            assert_eq!(every.next_after(at(from)), next.map(at), "next after {from}");
            assert_eq!(every.previous_before(at(from)), previous.map(at), "previous before {from}");
        };
        check("2025-12-31T23:59:59Z", Some("2026-01-01T00:00:00Z"), None);
        check("2026-01-01T00:00:00Z", Some("2026-01-01T00:00:01.5Z"), None);
        check("2026-01-01T00:00:00.000000001Z", Some("2026-01-01T00:00:01.5Z"), Some("2026-01-01T00:00:00Z"));
        check("2026-01-01T00:00:01.5Z", Some("2026-01-01T00:00:03Z"), Some("2026-01-01T00:00:00Z"));
        // Ten years of 1.5 s later it is still exact: 3,652 days are a whole number of them.
        check("2036-01-01T00:00:00Z", Some("2036-01-01T00:00:01.5Z"), Some("2035-12-31T23:59:58.5Z"));
        check("9999-12-30T22:00:00.9999Z", None, Some("9999-12-30T22:00:00Z"));
    }

    #[test]
    fn intervals_have_limits() {
        let check = |interval, expected: &str| {
            let text = Every::new(interval, Timestamp::UNIX_EPOCH).map_or_else(|e| e.to_string(), |_| String::new());
            assert_eq!(text, expected);
        };
        check(Duration::from_secs(1), "");
        check(Every::INTERVAL_MAX, "");
        check(Duration::from_millis(999), "`interval` is 999ms; the least is 1s");
        check(
            Every::INTERVAL_MAX + Duration::from_secs(1),
            "`interval` is 315360001s; the limit is 10 years (315360000s)",
        );
        check(
            Duration::from_nanos(1_000_000_500),
            "`interval` is 1.0000005s; times are stored in microseconds, so give whole ones",
        );
    }
}
