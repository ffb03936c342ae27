//! How long a transport waits before its next attempt to reach its server.

use std::time::Duration;

const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Failures of a transport in a row: how long to wait, and what is worth a line in the log.
#[derive(Debug, Default)]
pub struct Failures(u32);

impl Failures {
    /// Counts one more; says whether it is worth a line in the log: the first, the second, the fourth and so on are.
    pub fn one_more(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        self.0.is_power_of_two()
    }

    /// The transport works again.
    pub fn forget(&mut self) {
        self.0 = 0;
    }

    /// Doubles with each failure and is spread by `random`, from 0 to 1, so that the nodes of a cluster do not come back
    /// all at once: three quarters of it to all of it.
    pub fn pause(&self, random: f64) -> Duration {
        let doublings = self.0.saturating_sub(1).min(16);
        let pause = PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX);
        pause.mul_f64(0.75 + random.clamp(0.0, 1.0) / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let check = |failures: u32, random: f64, expected_ms: u64| {
            assert_eq!(Failures(failures).pause(random), Duration::from_millis(expected_ms), "{failures} {random}");
        };
        check(0, 1.0, 200);
        check(1, 1.0, 200);
        check(1, 0.0, 150);
        check(2, 1.0, 400);
        check(3, 1.0, 800);
        check(8, 1.0, 25_600);
        check(9, 1.0, 30_000);
        check(9, 0.0, 22_500);
        check(u32::MAX, 1.0, 30_000);
        check(1, 7.0, 200);
    }

    #[test]
    fn ever_fewer_failures_are_worth_a_line() {
        let mut failures = Failures::default();
        let told: Vec<u32> = (1..=10).filter(|_| failures.one_more()).collect();
        assert_eq!(told, [1, 2, 4, 8]);
        failures.forget();
        assert!(failures.one_more());
    }
}
