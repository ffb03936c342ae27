//! Times and durations as people say them.

use std::time::Duration;

use ratchet::Timestamp;
use ratchet_core::clock;

/// `850 µs`, `12 ms`, `3.4 s`, `5 min`, `2 h 5 min`, `3 d 4 h`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let pair = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    };
    match duration {
        d if d < Duration::from_millis(1) => format!("{} µs", d.as_micros()),
        d if d < Duration::from_secs(1) => format!("{} ms", d.as_millis()),
        d if d < Duration::from_mins(1) => format!("{:.1} s", d.as_secs_f64()),
        _ if minutes < 60 => pair(minutes, "min", seconds % 60, "s"),
        _ if hours < 24 => pair(hours, "h", minutes % 60, "min"),
        _ => pair(days, "d", hours % 24, "h"),
    }
}

/// One unit is enough for something that is over: `12 s ago`.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    format!("{} ago", short(clock::elapsed(then, now)))
}

/// `in 5 min`, or `3 s ago`.
pub(crate) fn relative(then: Timestamp, now: Timestamp) -> String {
    if then > now { format!("in {}", short(clock::elapsed(now, then))) } else { ago(then, now) }
}

/// `12 s`, `5 min`, `3 h`, `40 d`.
pub(crate) fn short(duration: Duration) -> String {
    match duration.as_secs() {
        s if s < 60 => format!("{s} s"),
        s if s < 3_600 => format!("{} min", s / 60),
        s if s < 172_800 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    }
}

/// Milliseconds with fractions, for JSON.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// A time as people write it, with its offset.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    let wrong = |_| format!("{text:?} is no time; write 2026-01-31T08:00Z, or 2026-01-31T08:00+01 with another offset");
    text.parse().map_err(wrong)
}

/// A duration as people write it: `90s`, `15m`, `24h`, `1h30m`, `7d`.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration; write 90s, 15m, 24h, 1h30m or 7d");
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u32 = rest[..digits].parse().map_err(|_| wrong())?;
        let after = &rest[digits..];
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let unit = match &after[..letters] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" | "min" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            "d" => Duration::from_hours(24),
            _ => return Err(wrong()),
        };
        total = unit.checked_mul(number).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        rest = &after[letters..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_offset() {
        let check = |text, second| assert_eq!(time(text).map(Timestamp::as_second).ok(), second, "{text}");
        check("2026-01-31T08:00Z", Some(1_769_846_400));
        check("2026-01-31T08:00+01", Some(1_769_842_800));
        check("2026-01-31T08:00:00.5Z", Some(1_769_846_400));
        for wrong in ["1h", "2026-01-31", "2026-01-31T08:00", ""] {
            assert!(time(wrong).unwrap_err().contains("write 2026-01-31T08:00Z"), "{wrong}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(parse(text).ok(), seconds.map(Duration::from_secs), "{text:?}");
        };
        check("90s", Some(90));
        check("15m", Some(900));
        check("15min", Some(900));
        check("1h30m", Some(5_400));
        check("7d", Some(604_800));
        check("2000ms", Some(2));
        for wrong in ["", "5", "h", "5y", "-5s", "1.5h", "5 m", "99999999999d"] {
            check(wrong, None);
        }
    }

    #[test]
    fn durations_read_well() {
        let check = |millis: u64, expected: &str| assert_eq!(duration(Duration::from_millis(millis)), expected);
        check(0, "0 µs");
        check(12, "12 ms");
        check(3_400, "3.4 s");
        check(60_000, "1 min");
        check(65_000, "1 min 5 s");
        check(7_500_000, "2 h 5 min");
        check(273_600_000, "3 d 4 h");
    }

    #[test]
    fn times_are_told_from_now() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let check = |then, expected: &str| assert_eq!(relative(at(then), at(1_000_000)), expected);
        check(1_000_000, "0 s ago");
        check(999_941, "59 s ago");
        check(1_000_300, "in 5 min");
        check(913_600, "24 h ago");
        check(0, "11 d ago");
    }
}
