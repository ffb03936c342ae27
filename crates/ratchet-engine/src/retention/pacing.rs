//! The size of one transaction, and the pause after it.

use std::time::{Duration, Instant};

/// About how long a transaction may take: work that needs the same rows, disk or processor waits no longer.
const LONG: Duration = Duration::from_millis(3);
/// The least fraction of a full transaction. Below it a transaction costs more than what it does.
const LEAST: f64 = 0.1;

/// The least pause between two transactions, and its length as a multiple of the transaction's: other work has the rest of
/// the time, whatever the database takes.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_TIMES: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Much work, a small transaction at a time with pauses in between. It takes at most a quarter of the time.
#[derive(Debug)]
pub(crate) struct Pace {
    fraction: Fraction,
    began: Instant,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { fraction: Fraction::FULL, began: Instant::now() }
    }

    /// Begins a transaction and returns its size, where `most` is a full one.
    pub(crate) fn begin(&mut self, most: usize) -> usize {
        self.began = Instant::now();
        self.fraction.of(most)
    }

    /// Ends a transaction that others will follow, and pauses.
    pub(crate) async fn rest(&mut self) {
        self.rest_for(PAUSE_TIMES, PAUSE_MIN).await;
    }

    /// The same where work comes in faster than the ordinary pace does it: it takes up to half of the time.
    pub(crate) async fn rest_briefly(&mut self) {
        self.rest_for(1, PAUSE_MIN / 10).await;
    }

    async fn rest_for(&mut self, times: u32, least: Duration) {
        let took = self.began.elapsed();
        self.fraction = self.fraction.after(took);
        tokio::time::sleep((took * times).clamp(least, PAUSE_MAX)).await;
    }
}

/// The fraction of a full transaction that is done at once: as much as the database does in a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fraction(f64);

impl Fraction {
    /// A full transaction.
    const FULL: Self = Self(1.0);

    /// Returns the size, where `most` is a full transaction.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "of a small number"
    )]
    fn of(self, most: usize) -> usize {
        ((most as f64 * self.0) as usize).max(1)
    }

    /// Returns the fraction after a transaction of this duration: smaller or greater, by half or double at the most.
    #[must_use]
    fn after(self, took: Duration) -> Self {
        let by = LONG.as_secs_f64() / took.as_secs_f64().max(1e-6);
        Self((self.0 * by.clamp(0.5, 2.0)).clamp(LEAST, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_takes_about_as_long_as_it_may() {
        let check = |times_ms: &[u64], size: usize| {
            let fraction =
                times_ms.iter().fold(Fraction::FULL, |fraction, ms| fraction.after(Duration::from_millis(*ms)));
            assert_eq!(fraction.of(250), size, "after {times_ms:?} ms");
        };
        check(&[], 250);
        check(&[0], 250);
        check(&[3], 250);
        check(&[4], 187);
        check(&[20], 125);
        check(&[20, 6], 62);
        check(&[20, 6, 3, 3], 62);
        check(&[10_000; 20], 25);
        let stalled = [&[10_000; 20][..], &[1; 3]].concat();
        check(&stalled, 200);
        assert_eq!(Fraction(LEAST).of(1), 1);
    }

    #[test]
    fn it_settles_where_the_work_fits() {
        // 65 µs a job.
        let mut fraction = Fraction::FULL;
        for _ in 0..10 {
            fraction = fraction.after(Duration::from_micros(65) * u32::try_from(fraction.of(250)).unwrap());
        }
        assert!((40..50).contains(&fraction.of(250)), "{fraction:?}");
    }
}
