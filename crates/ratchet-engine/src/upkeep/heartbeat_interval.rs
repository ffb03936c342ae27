//! How long to wait between heartbeats when the database is slow.

use std::time::Duration;

/// The wait after a beat that took so long: it grows while beats take over a tenth of it, so that many nodes do not
/// press a database that is late already, and shrinks back once they take less than half of that.
///
/// It is never less than `normal` and never more than `most`, unless `normal` is.
pub(crate) fn next_interval(present: Duration, took: Duration, normal: Duration, most: Duration) -> Duration {
    let wanted = if took * 10 > present {
        present * 2
    } else if took * 20 < present {
        present / 2
    } else {
        present
    };
    wanted.min(most).max(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_follows_the_beats() {
        let check = |present_ms, took_ms, expected_ms| {
            let ms = Duration::from_millis;
            let next = next_interval(ms(present_ms), ms(took_ms), ms(5_000), ms(7_500));
            assert_eq!(next, ms(expected_ms), "{present_ms} {took_ms}");
        };
        // Quick beats keep the normal interval.
        check(5_000, 0, 5_000);
        check(5_000, 500, 5_000);
        // Over a tenth: it grows, as far as a quarter of the grace.
        check(5_000, 501, 7_500);
        check(7_500, 751, 7_500);
        check(7_500, 60_000, 7_500);
        // Neither slow nor quick: it stays, so that it does not swing.
        check(7_500, 700, 7_500);
        check(7_500, 375, 7_500);
        // Quick again: it shrinks back.
        check(7_500, 374, 5_000);
        // A grace of three heartbeats leaves no room to grow.
        let ms = Duration::from_millis;
        assert_eq!(next_interval(ms(100), ms(90), ms(100), ms(75)), ms(100));
        // With room it doubles and halves.
        assert_eq!(next_interval(ms(100), ms(90), ms(100), ms(1_000)), ms(200));
        assert_eq!(next_interval(ms(800), ms(90), ms(100), ms(1_000)), ms(1_000));
        assert_eq!(next_interval(ms(800), ms(1), ms(100), ms(1_000)), ms(400));
    }
}
