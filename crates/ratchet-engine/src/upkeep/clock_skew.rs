//! How far the node's clock is from the database's.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Between two measurements.
pub(crate) const MEASURE_EVERY: Duration = Duration::from_mins(1);
/// A measurement whose way there and back took longer says too little.
pub(crate) const ROUND_TRIP_MAX: Duration = Duration::from_millis(500);

/// A skew beyond this is worth a warning, and so is a change by as much.
const WARN_BEYOND_US: i64 = 1_000_000;
/// The same skew is warned of once in so long.
const WARN_EVERY: Duration = Duration::from_mins(10);

/// The node's clock minus the database's, in microseconds: the database was read half way between the two local reads,
/// as far as anyone can know. `None` if that took too long.
pub(crate) fn skew_us(before: Timestamp, database: Timestamp, after: Timestamp, took: Duration) -> Option<i64> {
    if took > ROUND_TRIP_MAX {
        return None;
    }
    let (before, after) = (before.as_microsecond(), after.as_microsecond());
    Some(before + (after - before) / 2 - database.as_microsecond())
}

/// Decides when a skew is worth a warning.
#[derive(Debug, Default)]
pub(crate) struct SkewWarning {
    last: Option<(Instant, i64)>,
}

impl SkewWarning {
    /// Whether to warn of this skew now.
    pub(crate) fn is_due(&mut self, skew_us: i64, now: Instant) -> bool {
        let large = skew_us.unsigned_abs() > WARN_BEYOND_US.unsigned_abs();
        let news = self.last.is_none_or(|(at, told)| {
            now.duration_since(at) >= WARN_EVERY || skew_us.abs_diff(told) > WARN_BEYOND_US.unsigned_abs()
        });
        if large && news {
            self.last = Some((now, skew_us));
        }
        large && news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skew_is_the_local_midpoint_minus_the_databases_time() {
        let at = |us: i64| Timestamp::from_microsecond(us).unwrap();
        let check = |before, database, after, took_ms, expected| {
            assert_eq!(skew_us(at(before), at(database), at(after), Duration::from_millis(took_ms)), expected);
        };
        check(1_000, 1_000, 1_000, 0, Some(0));
        check(1_000, 1_500, 2_000, 1, Some(0));
        check(91_000_000, 1_000_500, 91_001_000, 1, Some(90_000_000));
        check(0, 90_000_000, 100, 1, Some(-89_999_950));
        check(0, 0, 500_000, 500, Some(250_000));
        check(0, 0, 501_000, 501, None);
        // A clock that was set back in between: what counts as time is the monotonic one.
        check(9_000, 5_000, 1_000, 1, Some(0));
    }

    #[test]
    fn a_large_skew_is_warned_of_when_it_is_news() {
        let begun = Instant::now();
        let mut warning = SkewWarning::default();
        let mut check = |minutes: u64, skew_us: i64, expected: bool| {
            assert_eq!(warning.is_due(skew_us, begun + Duration::from_mins(minutes)), expected, "{minutes} {skew_us}");
        };
        check(0, 0, false);
        check(1, 1_000_000, false);
        check(2, -1_000_001, true);
        check(3, -1_000_001, false);
        // It changed by a second, not by more.
        check(4, -2_000_001, false);
        check(5, -2_000_002, true);
        check(6, 2_000_000, true);
        check(7, 500_000, false);
        check(8, 2_000_000, false);
        check(15, 2_000_000, false);
        check(16, 2_000_000, true);
        check(17, i64::MIN, true);
        check(18, i64::MAX, true);
    }
}
