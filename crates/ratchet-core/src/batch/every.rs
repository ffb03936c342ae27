//! The thresholds at which a batch reports its progress.

use serde::{Deserialize, Serialize};

use super::BatchCounts;
use crate::invalid::InvalidInput;

/// How often the progress of a batch is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressEvery {
    /// Whenever so many more children have ended.
    Items(u64),
    /// Whenever so many more hundredths of the children have ended; as long as children are added, nobody knows.
    Percent(u8),
}

impl ProgressEvery {
    /// Checks the number.
    ///
    /// # Errors
    /// If it is zero, or more than a hundred percent.
    pub fn check(self) -> Result<(), InvalidInput> {
        match self {
            Self::Items(0) => Err(InvalidInput::new("every", "is 0 items; give at least 1")),
            Self::Percent(percent) if !(1..=100).contains(&percent) => {
                Err(InvalidInput::new("every", format!("is {percent} percent; give 1 to 100")))
            }
            _ => Ok(()),
        }
    }

    /// As it is stored: percents are below zero.
    pub fn to_number(self) -> i64 {
        match self {
            Self::Items(items) => i64::try_from(items).unwrap_or(i64::MAX),
            Self::Percent(percent) => -i64::from(percent),
        }
    }

    /// As it was stored.
    pub fn from_number(number: i64) -> Option<Self> {
        match (u64::try_from(number), u8::try_from(number.unsigned_abs())) {
            (Ok(0), _) | (Err(_), Err(_)) => None,
            (Ok(items), _) => Some(Self::Items(items)),
            (Err(_), Ok(percent)) => Some(Self::Percent(percent)),
        }
    }

    /// The distance between two thresholds, and the first of them.
    pub const fn step(self) -> u64 {
        match self {
            Self::Items(items) => items,
            Self::Percent(percent) => percent as u64,
        }
    }

    /// The highest threshold that was passed, if the next one was: of several at once only the last is told.
    pub fn passed(self, next: u64, counts: &BatchCounts) -> Option<u64> {
        let reached = match self {
            Self::Items(_) => counts.done(),
            Self::Percent(_) if counts.sealed && counts.total > 0 => counts.done().saturating_mul(100) / counts.total,
            Self::Percent(_) => return None,
        };
        let step = self.step().max(1);
        (reached >= next && reached > 0).then(|| reached - reached % step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::counts::tests::counts;

    #[test]
    fn a_threshold_is_passed_when_it_is_reached() {
        let check = |every: ProgressEvery, next, counts: BatchCounts, expected| {
            assert_eq!(every.passed(next, &counts), expected, "{every:?} after {next} of {counts:?}");
        };
        check(ProgressEvery::Items(10), 10, counts(100, 9, true), None);
        check(ProgressEvery::Items(10), 10, counts(100, 10, false), Some(10));
        check(ProgressEvery::Items(10), 10, counts(100, 37, false), Some(30));
        check(ProgressEvery::Items(10), 40, counts(100, 37, false), None);
        check(ProgressEvery::Percent(25), 25, counts(8, 2, true), Some(25));
        check(ProgressEvery::Percent(25), 50, counts(8, 3, true), None);
        check(ProgressEvery::Percent(25), 25, counts(8, 8, false), None);
        check(ProgressEvery::Percent(25), 25, counts(0, 0, true), None);
    }

    #[test]
    fn how_often_is_stored_as_one_number() {
        for every in [ProgressEvery::Items(1), ProgressEvery::Items(9_000), ProgressEvery::Percent(100)] {
            assert_eq!(ProgressEvery::from_number(every.to_number()), Some(every));
            assert!(every.check().is_ok());
        }
        assert_eq!(ProgressEvery::from_number(0), None);
        for every in [ProgressEvery::Items(0), ProgressEvery::Percent(0), ProgressEvery::Percent(101)] {
            assert!(every.check().is_err(), "{every:?}");
        }
    }
}
