//! Pauses after failures of the store.

use std::time::Duration;

pub(super) const PAUSE_MIN: Duration = Duration::from_millis(20);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The number of failures of the store since its last success, in calls of one kind.
#[derive(Debug, Default)]
pub(super) struct Failures(u32);

impl Failures {
    /// Counts a failure; returns the pause before the next try, which grows with each one.
    pub(super) fn count(&mut self) -> Duration {
        let base = PAUSE_MIN.saturating_mul(1 << self.0.min(10)).min(PAUSE_MAX);
        self.0 = self.0.saturating_add(1);
        base.mul_f64(0.75 + fastrand::f64() / 2.0)
    }

    /// Begins again at zero, after a success.
    pub(super) fn clear(&mut self) {
        self.0 = 0;
    }

    pub(super) fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// Returns the number of failures if the last one is worth a log line: less often the longer they go on.
    pub(super) fn to_log(&self) -> Option<u32> {
        Some(self.0).filter(|failures| failures.is_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_again_after_a_success() {
        let mut failures = Failures::default();
        let about = |pause: Duration, expected: Duration| {
            assert!(
                (expected.mul_f64(0.75)..=expected.mul_f64(1.25)).contains(&pause),
                "{pause:?} is not about {expected:?}"
            );
        };
        about(failures.count(), PAUSE_MIN);
        about(failures.count(), PAUSE_MIN * 2);
        assert!(!failures.is_none());
        let logged: Vec<_> = (3..=20)
            .filter_map(|_| {
                failures.count();
                failures.to_log()
            })
            .collect();
        assert_eq!(logged, [4, 8, 16]);
        about(failures.count(), PAUSE_MAX);
        failures.clear();
        assert!(failures.is_none() && failures.to_log().is_none());
        about(failures.count(), PAUSE_MIN);
    }
}
