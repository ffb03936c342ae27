//! How much goes into one transaction.

use std::time::Duration;

/// About how long a portion may take: whoever needs the same rows, the same disk or the same processor waits no longer.
const LONG: Duration = Duration::from_millis(10);
/// The least part of a full portion. Below it a transaction costs more than what it does.
const LEAST: f64 = 0.1;

/// The part of a full portion that is done at once: as much as the database does in a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Portion(f64);

impl Portion {
    /// A full one.
    pub(super) const FULL: Self = Self(1.0);

    /// How many, where `most` are a full one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "of a small number"
    )]
    pub(super) fn of(self, most: usize) -> usize {
        ((most as f64 * self.0) as usize).max(1)
    }

    /// One took so long: the next is smaller or greater, by half or double at the most.
    #[must_use]
    pub(super) fn after(self, took: Duration) -> Self {
        let by = LONG.as_secs_f64() / took.as_secs_f64().max(1e-6);
        Self((self.0 * by.clamp(0.5, 2.0)).clamp(LEAST, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_takes_about_as_long_as_it_may() {
        let check = |times_ms: &[u64], size: usize| {
            let portion = times_ms.iter().fold(Portion::FULL, |portion, ms| portion.after(Duration::from_millis(*ms)));
            assert_eq!(portion.of(250), size, "after {times_ms:?} ms");
        };
        check(&[], 250);
        check(&[0], 250);
        check(&[10], 250);
        check(&[16], 156);
        check(&[40], 125);
        check(&[40, 20], 62);
        check(&[40, 20, 10, 10], 62);
        check(&[10_000; 20], 25);
        let stalled = [&[10_000; 20][..], &[1; 3]].concat();
        check(&stalled, 200);
        assert_eq!(Portion(LEAST).of(1), 1);
    }

    #[test]
    fn it_settles_where_the_work_fits() {
        // 130 µs a job.
        let mut portion = Portion::FULL;
        for _ in 0..10 {
            portion = portion.after(Duration::from_micros(130) * u32::try_from(portion.of(250)).unwrap());
        }
        assert!((70..80).contains(&portion.of(250)), "{portion:?}");
    }
}
