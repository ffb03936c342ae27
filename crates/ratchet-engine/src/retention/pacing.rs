//! How much goes into one transaction, and how long the pause after it is.

use std::time::{Duration, Instant};

/// About how long a portion may take: whoever needs the same rows, the same disk or the same processor waits no longer.
const LONG: Duration = Duration::from_millis(3);
/// The least part of a full portion. Below it a transaction costs more than what it does.
const LEAST: f64 = 0.1;

/// The least pause between two portions, and how many times as long as the portion took it is: who works has the rest of the time,
/// whatever the database takes.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_TIMES: u32 = 3;
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Much work, a portion at a time with pauses in between. It takes at most a quarter of the time.
#[derive(Debug)]
pub(crate) struct Pace {
    portion: Portion,
    began: Instant,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { portion: Portion::FULL, began: Instant::now() }
    }

    /// A portion begins: how much of `most` it is.
    pub(crate) fn begin(&mut self, most: usize) -> usize {
        self.began = Instant::now();
        self.portion.of(most)
    }

    /// It has ended, and others will follow.
    pub(crate) async fn rest(&mut self) {
        self.rest_for(PAUSE_TIMES, PAUSE_MIN).await;
    }

    /// The same where work comes in faster than the ordinary pace does it: it takes up to half of the time.
    pub(crate) async fn rest_briefly(&mut self) {
        self.rest_for(1, PAUSE_MIN / 10).await;
    }

    async fn rest_for(&mut self, times: u32, least: Duration) {
        let took = self.began.elapsed();
        self.portion = self.portion.after(took);
        tokio::time::sleep((took * times).clamp(least, PAUSE_MAX)).await;
    }
}

/// The part of a full portion that is done at once: as much as the database does in a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Portion(f64);

impl Portion {
    /// A full one.
    const FULL: Self = Self(1.0);

    /// How many, where `most` are a full one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "of a small number"
    )]
    fn of(self, most: usize) -> usize {
        ((most as f64 * self.0) as usize).max(1)
    }

    /// One took so long: the next is smaller or greater, by half or double at the most.
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
    fn a_portion_takes_about_as_long_as_it_may() {
        let check = |times_ms: &[u64], size: usize| {
            let portion = times_ms.iter().fold(Portion::FULL, |portion, ms| portion.after(Duration::from_millis(*ms)));
            assert_eq!(portion.of(250), size, "after {times_ms:?} ms");
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
        assert_eq!(Portion(LEAST).of(1), 1);
    }

    #[test]
    fn it_settles_where_the_work_fits() {
        // 65 µs a job.
        let mut portion = Portion::FULL;
        for _ in 0..10 {
            portion = portion.after(Duration::from_micros(65) * u32::try_from(portion.of(250)).unwrap());
        }
        assert!((40..50).contains(&portion.of(250)), "{portion:?}");
    }
}
