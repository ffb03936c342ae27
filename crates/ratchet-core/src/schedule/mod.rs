//! Schedules: when something fires again and again. Pure rules, without a clock.
//!
//! A [`Schedule`] is a cron expression on the clock of a time zone ([`Cron`]), or a fixed distance ([`Every`]). It
//! answers three questions: when does it fire next, when did it fire last, and how often in between. None of them walks
//! from second to second. [`due_fires`] puts them together: what fires now, if something should have fired earlier.
//!
//! How it is built, from the inside out: an expression's fields are sets of numbers (`bits.rs`, `field.rs`, `days.rs`),
//! which together name wall-clock times (`pattern.rs`). A zone's clock runs in step with time from one shift to the next
//! (`stretch.rs`), so `cron.rs` searches one such stretch after the other and decides at the seams, by the [`DstPolicy`].

mod expression;
mod bits;
mod field;
mod days;
mod pattern;
mod zone;
mod stretch;
mod dst;
mod cron;
mod every;
mod misfire;
mod overlap;
mod record;
mod word;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use cron::Cron;
pub use dst::{DstGap, DstOverlap, DstPolicy};
pub use every::Every;
pub use expression::CronExpression;
pub use misfire::{Fires, MisfirePolicy, due_fires};
pub use overlap::OverlapPolicy;
pub use record::{
    Advance, ArchiveReason, Arranged, Firing, History, NewSchedule, ScheduleFilter, ScheduleRecord, arrange, holds_up,
    leaves_its_place, may_end,
};
pub use zone::Zone;

/// When something fires again and again.
///
/// ```
/// use ratchet_core::schedule::{Cron, CronExpression, Schedule};
///
/// let leap_days = Schedule::from(Cron::new(CronExpression::new("0 0 0 29 2 ?")?));
/// let fire = leap_days.next_after("2096-03-01T00:00:00Z".parse().unwrap()).unwrap();
/// assert_eq!(fire.to_string(), "2104-02-29T00:00:00Z");
/// assert_eq!(leap_days.previous_before(fire).unwrap().to_string(), "2096-02-29T00:00:00Z");
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Schedule {
    /// By the clock on the wall.
    Cron(Cron),
    /// By elapsed time.
    Every(Every),
}

impl Schedule {
    /// The first fire after `after`, and not at it; none if it never fires again.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.next_after(after),
            Self::Every(every) => every.next_after(after),
        }
    }

    /// The last fire before `before`, and not at it; none if it did not fire yet.
    pub fn previous_before(&self, before: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.previous_before(before),
            Self::Every(every) => every.previous_before(before),
        }
    }

    /// How many fires lie after `after`, up to and with `until`.
    pub fn fires_between(&self, after: Timestamp, until: Timestamp) -> u64 {
        match self {
            Self::Cron(cron) => cron.fires_between(after, until),
            Self::Every(every) => every.fires_between(after, until),
        }
    }

    /// Its type, in capitals.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Cron(_) => "CRON",
            Self::Every(_) => "EVERY",
        }
    }
}

impl From<Cron> for Schedule {
    fn from(cron: Cron) -> Self {
        Self::Cron(cron)
    }
}

impl From<Every> for Schedule {
    fn from(every: Every) -> Self {
        Self::Every(every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_stored_as_json() {
        let check = |json: &str, full: &str| {
            let schedule: Schedule = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&schedule).unwrap(), full);
            assert_eq!(serde_json::from_str::<Schedule>(full).unwrap(), schedule);
        };
        check(
            r#"{"type":"CRON","expression":"0 0 3 * * ?"}"#,
            r#"{"type":"CRON","expression":"0 0 3 * * ?","zone":"UTC","dst":{"gap":"AT_SHIFT","overlap":"BY_PATTERN"}}"#,
        );
        check(
            r#"{"type":"CRON","expression":"0 0 3 * * ?","zone":"europe/berlin","dst":{"overlap":"LAST"}}"#,
            r#"{"type":"CRON","expression":"0 0 3 * * ?","zone":"Europe/Berlin","dst":{"gap":"AT_SHIFT","overlap":"LAST"}}"#,
        );
        let every = r#"{"type":"EVERY","interval":{"secs":90,"nanos":0},"anchor":"2026-01-01T00:00:00Z"}"#;
        check(every, every);
        let refused = serde_json::from_str::<Schedule>(&every.replace("90", "0")).unwrap_err().to_string();
        assert!(refused.contains("the least is 1s"), "{refused}");
    }

    #[test]
    fn stored_names_and_serde_names_are_the_same() {
        for gap in DstGap::ALL {
            assert_eq!(serde_json::to_string(gap).unwrap(), format!("\"{gap}\""));
            assert_eq!(gap.as_str().parse(), Ok(*gap));
        }
        for overlap in DstOverlap::ALL {
            assert_eq!(serde_json::to_string(overlap).unwrap(), format!("\"{overlap}\""));
            assert_eq!(overlap.as_str().parse(), Ok(*overlap));
        }
        let refused = "later".parse::<DstOverlap>().unwrap_err().to_string();
        assert_eq!(refused, "`dst_overlap` is \"later\"; use one of BY_PATTERN, FIRST, LAST, BOTH");
    }
}
