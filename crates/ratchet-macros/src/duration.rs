//! Durations and backoffs as text, read while compiling.

use std::time::Duration;

/// Longest delay or timeout: ten years of 365 days. As in `ratchet_core::limits`; a test compares them.
pub(crate) const DURATION_MAX: Duration = Duration::from_hours(10 * 365 * 24);
/// Shortest timeout.
pub(crate) const TIMEOUT_MIN: Duration = Duration::from_millis(1);
/// No wait between attempts grows beyond this.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_hours(24);

/// A backoff that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backoff {
    None,
    Fixed(Duration),
    Exponential(Duration),
}

/// Shortest distance between two fires of a schedule. As in `ratchet_core::schedule`; a test compares them.
pub(crate) const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Reads the distance between two fires of a schedule.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        interval if interval < INTERVAL_MIN => Err(format!("{text:?} is too often; the least is {INTERVAL_MIN:?}")),
        interval => Ok(interval),
    }
}

/// Reads `30s`: a whole number and a unit.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let malformed = || {
        format!(
            "{text:?} is no duration; write a whole number and a unit, ms, s, m, h or d, such as \"500ms\" or \"30s\""
        )
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60 * 1_000,
        "h" => 60 * 60 * 1_000,
        "d" => 24 * 60 * 60 * 1_000,
        _ => return Err(malformed()),
    };
    if number.is_empty() {
        return Err(malformed());
    }
    // A number too large for a u64 is beyond the limit too.
    let duration = number.parse::<u64>().ok().and_then(|number| number.checked_mul(millis_per_unit));
    match duration.map(Duration::from_millis) {
        Some(duration) if duration <= DURATION_MAX => Ok(duration),
        _ => Err(format!("{text:?} is too long; the limit is 10 years (3650d)")),
    }
}

/// Reads a timeout.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    let timeout = parse_duration(text)?;
    if timeout < TIMEOUT_MIN {
        return Err(format!(
            "{text:?} leaves no time to run; the least is 1ms, and a job without `timeout` has no limit"
        ));
    }
    Ok(timeout)
}

/// Reads `none`, `fixed 500ms` or `exponential 2s`.
pub(crate) fn parse_backoff(text: &str) -> Result<Backoff, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let backoff = match words[..] {
        ["none"] => return Ok(Backoff::None),
        ["fixed", wait] => Backoff::Fixed(parse_duration(wait)?),
        ["exponential", base] => Backoff::Exponential(parse_duration(base)?),
        _ => return Err(format!("{text:?} is no backoff; write \"exponential 2s\", \"fixed 500ms\" or \"none\"")),
    };
    let (Backoff::Fixed(wait) | Backoff::Exponential(wait)) = backoff else { return Ok(backoff) };
    if wait > BACKOFF_MAX {
        return Err(format!("{text:?} is too long; no wait between attempts grows beyond 24h"));
    }
    Ok(backoff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_core() {
        assert_eq!(DURATION_MAX, ratchet_core::limits::DURATION_MAX);
        assert_eq!(TIMEOUT_MIN, ratchet_core::limits::TIMEOUT_MIN);
        assert_eq!(BACKOFF_MAX, ratchet_core::Backoff::DELAY_MAX);
    }

    #[test]
    fn durations_are_a_number_and_a_unit() {
        let check = |text: &str, expected: Result<u64, &str>| match (parse_duration(text), expected) {
            (Ok(duration), Ok(millis)) => assert_eq!(duration, Duration::from_millis(millis), "{text:?}"),
            (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem:?} lacks {part:?}"),
            (got, expected) => panic!("{text:?}: got {got:?}, expected {expected:?}"),
        };
        check("0ms", Ok(0));
        check("500ms", Ok(500));
        check("30s", Ok(30_000));
        check("2m", Ok(120_000));
        check("1h", Ok(3_600_000));
        check("3650d", Ok(315_360_000_000));
        check("3651d", Err("the limit is 10 years"));
        check("99999999999999999999s", Err("the limit is 10 years"));
        check("18446744073709551615d", Err("the limit is 10 years"));
        for malformed in ["", "30", "s", "1.5s", "-1s", "+1s", "1 s", "1S", "1sec", "1h30m", "1é", "٣s"] {
            check(malformed, Err("is no duration"));
        }
    }

    #[test]
    fn a_timeout_is_at_least_a_millisecond() {
        assert_eq!(parse_timeout("1ms"), Ok(Duration::from_millis(1)));
        assert!(parse_timeout("0s").unwrap_err().contains("the least is 1ms"));
    }

    #[test]
    fn backoffs_have_three_forms() {
        let check = |text: &str, expected: Result<Backoff, &str>| match (parse_backoff(text), expected) {
            (Ok(backoff), Ok(expected)) => assert_eq!(backoff, expected, "{text:?}"),
            (Err(problem), Err(part)) => assert!(problem.contains(part), "{problem:?} lacks {part:?}"),
            (got, expected) => panic!("{text:?}: got {got:?}, expected {expected:?}"),
        };
        check("none", Ok(Backoff::None));
        check("fixed 500ms", Ok(Backoff::Fixed(Duration::from_millis(500))));
        check("exponential  2s", Ok(Backoff::Exponential(Duration::from_secs(2))));
        check("fixed 1d", Ok(Backoff::Fixed(BACKOFF_MAX)));
        check("fixed 25h", Err("beyond 24h"));
        check("fixed", Err("is no backoff"));
        check("linear 2s", Err("is no backoff"));
        check("exponential 2s 3s", Err("is no backoff"));
        check("exponential fast", Err("\"fast\" is no duration"));
    }
}
