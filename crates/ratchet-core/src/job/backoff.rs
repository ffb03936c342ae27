//! How long a failed job waits before its next attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::invalid::InvalidInput;
use crate::limits;

/// How long a failed job waits before its next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Backoff {
    /// Not at all.
    None,
    /// Always the same time.
    Fixed(Duration),
    /// `base * 2^(attempt - 1)`, at most 24 hours.
    Exponential(Duration),
}

impl Backoff {
    /// No wait grows beyond this.
    pub const DELAY_MAX: Duration = Duration::from_hours(24);
    /// Doubling stops after this many times.
    pub const EXPONENT_MAX: u32 = 20;

    /// The wait after failed attempt number `attempt`, the first being 1.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ratchet_core::Backoff;
    ///
    /// let backoff = Backoff::Exponential(Duration::from_secs(2));
    /// assert_eq!(backoff.delay(1), Duration::from_secs(2));
    /// assert_eq!(backoff.delay(4), Duration::from_secs(16));
    /// assert_eq!(backoff.delay(90), Duration::from_secs(86_400));
    /// ```
    pub fn delay(self, attempt: u32) -> Duration {
        let delay = match self {
            Self::None => Duration::ZERO,
            Self::Fixed(delay) => delay,
            Self::Exponential(base) => {
                let exponent = attempt.saturating_sub(1).min(Self::EXPONENT_MAX);
                base.saturating_mul(1 << exponent)
            }
        };
        delay.min(Self::DELAY_MAX)
    }

    /// Refuses times beyond the limit for delays.
    pub fn check(self) -> Result<Self, InvalidInput> {
        limits::check_delay("backoff", self.base())?;
        Ok(self)
    }

    /// The time it was made with; zero for none.
    pub const fn base(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Fixed(base) | Self::Exponential(base) => base,
        }
    }

    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Fixed(_) => "FIXED",
            Self::Exponential(_) => "EXPONENTIAL",
        }
    }

    /// The backoff of a stored name and time.
    pub fn from_parts(name: &str, base: Duration) -> Option<Self> {
        match name {
            "NONE" => Some(Self::None),
            "FIXED" => Some(Self::Fixed(base)),
            "EXPONENTIAL" => Some(Self::Exponential(base)),
            _ => None,
        }
    }
}

impl Default for Backoff {
    /// Exponential from one second.
    fn default() -> Self {
        Self::Exponential(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_follow_the_table() {
        let check = |backoff: Backoff, attempt, millis: u64| {
            assert_eq!(backoff.delay(attempt), Duration::from_millis(millis), "{backoff:?} attempt {attempt}");
        };
        let ms = Duration::from_millis;
        check(Backoff::None, 1, 0);
        check(Backoff::Fixed(ms(250)), 1, 250);
        check(Backoff::Fixed(ms(250)), 9, 250);
        check(Backoff::Fixed(ms(90_000_000)), 1, 86_400_000);
        check(Backoff::Exponential(ms(100)), 0, 100);
        check(Backoff::Exponential(ms(100)), 1, 100);
        check(Backoff::Exponential(ms(100)), 2, 200);
        check(Backoff::Exponential(ms(100)), 10, 51_200);
        check(Backoff::Exponential(ms(1)), 21, 1_048_576);
        check(Backoff::Exponential(ms(1)), 22, 1_048_576);
        check(Backoff::Exponential(ms(1)), u32::MAX, 1_048_576);
        check(Backoff::Exponential(Duration::MAX), 5, 86_400_000);
    }
}
