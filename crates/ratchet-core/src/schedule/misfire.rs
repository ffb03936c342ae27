//! What happens to fires that are overdue.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Schedule;
use crate::clock::later;
use crate::invalid::InvalidInput;

/// What happens when two or more fires of a schedule are overdue: after a time in which no node ran, or the schedule
/// was paused. A single overdue fire is merely late, and always fires.
///
/// ```
/// use ratchet_core::schedule::MisfirePolicy;
///
/// assert_eq!(MisfirePolicy::default(), MisfirePolicy::CatchUp { max: 11 });
/// assert_eq!(MisfirePolicy::default().to_string(), "CATCH_UP:11");
/// assert_eq!("catch_up:3".parse(), Ok(MisfirePolicy::CatchUp { max: 3 }));
/// assert_eq!("FIRE_ONCE".parse(), Ok(MisfirePolicy::FireOnce));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MisfirePolicy {
    /// None of them fires; it goes on with the next future one. For work that is worthless late. Not for schedules that
    /// fire about as often as nodes look: a node that looks a little late would find two overdue, again and again.
    Skip,
    /// One fire, for the latest of them. For work that covers all that happened since it last ran.
    FireOnce,
    /// The latest `max` of them fire, in order; older ones are left out. For work that belongs to its hour or day.
    CatchUp {
        /// How many fire at most.
        max: u32,
    },
}

impl MisfirePolicy {
    /// How many fires a schedule catches up with unless told otherwise.
    pub const CATCH_UP_DEFAULT: u32 = 11;
    /// How many fires a schedule may catch up with at once.
    pub const CATCH_UP_MAX: u32 = 1_000;

    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "SKIP",
            Self::FireOnce => "FIRE_ONCE",
            Self::CatchUp { .. } => "CATCH_UP",
        }
    }

    /// How many overdue fires it lets through, when there are two or more.
    pub const fn max(self) -> u32 {
        match self {
            Self::Skip => 0,
            Self::FireOnce => 1,
            Self::CatchUp { max } => max,
        }
    }

    /// The policy of a stored name and maximum.
    pub fn from_parts(name: &str, max: u32) -> Option<Self> {
        match name {
            "SKIP" => Some(Self::Skip),
            "FIRE_ONCE" => Some(Self::FireOnce),
            "CATCH_UP" => Some(Self::CatchUp { max }),
            _ => None,
        }
    }

    /// Refuses to catch up with no fires, or with more than [`CATCH_UP_MAX`](Self::CATCH_UP_MAX).
    pub fn check(self) -> Result<Self, InvalidInput> {
        match self {
            Self::CatchUp { max } if max == 0 || max > Self::CATCH_UP_MAX => Err(InvalidInput::new(
                "misfire",
                format!("is \"{self}\"; a schedule catches up with 1 to {} fires", Self::CATCH_UP_MAX),
            )),
            _ => Ok(self),
        }
    }
}

impl Default for MisfirePolicy {
    /// Catches up with the latest 11.
    fn default() -> Self {
        Self::CatchUp { max: Self::CATCH_UP_DEFAULT }
    }
}

impl fmt::Display for MisfirePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CatchUp { max } => f.pad(&format!("{}:{max}", self.as_str())),
            _ => f.pad(self.as_str()),
        }
    }
}

impl FromStr for MisfirePolicy {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        let refused = || InvalidInput::new("misfire", format!("is {text:?}; use one of SKIP, FIRE_ONCE, CATCH_UP:11"));
        let word = text.to_ascii_uppercase().replace('-', "_");
        let policy = match word.split_once(':') {
            None => Self::from_parts(&word, Self::CATCH_UP_DEFAULT),
            Some((name @ "CATCH_UP", max)) => Self::from_parts(name, max.parse().map_err(|_| refused())?),
            Some(_) => None,
        };
        policy.ok_or_else(refused)?.check()
    }
}

impl TryFrom<String> for MisfirePolicy {
    type Error = InvalidInput;
    fn try_from(text: String) -> Result<Self, InvalidInput> {
        text.parse()
    }
}

impl From<MisfirePolicy> for String {
    fn from(policy: MisfirePolicy) -> String {
        policy.to_string()
    }
}

/// What a schedule comes to at a certain time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fires {
    /// The instants that fire now, in order.
    pub instants: Vec<Timestamp>,
    /// When it fires next; none if never again.
    pub next: Option<Timestamp>,
    /// How many overdue fires were left out.
    pub skipped: u64,
}

/// Says which fires are due at `now`, for a schedule whose next fire was to be at `next_fire`.
///
/// The stored next fire always counts as one, even if the schedule was changed since and would not name it. The work is
/// bounded by what fires and not by how long nothing did: what is left out is counted, and the latest fires are found
/// from `now` backwards. At most [`CATCH_UP_MAX`](MisfirePolicy::CATCH_UP_MAX) fires come out.
///
/// ```
/// use ratchet_core::schedule::{Cron, CronExpression, MisfirePolicy, Schedule, due_fires};
///
/// let hourly = Schedule::Cron(Cron::new(CronExpression::new("0 0 * * * ?")?));
/// let next_fire = "2026-01-01T00:00:00Z".parse().unwrap();
/// let a_day_later = "2026-01-02T00:30:00Z".parse().unwrap();
///
/// let fires = due_fires(&hourly, MisfirePolicy::CatchUp { max: 2 }, next_fire, a_day_later);
/// let instants: Vec<String> = fires.instants.iter().map(ToString::to_string).collect();
/// assert_eq!(instants, ["2026-01-01T23:00:00Z", "2026-01-02T00:00:00Z"]);
/// assert_eq!(fires.skipped, 23);
/// assert_eq!(fires.next.unwrap().to_string(), "2026-01-02T01:00:00Z");
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
pub fn due_fires(schedule: &Schedule, policy: MisfirePolicy, next_fire: Timestamp, now: Timestamp) -> Fires {
    if next_fire > now {
        return Fires { instants: Vec::new(), next: Some(next_fire), skipped: 0 };
    }
    let overdue = 1 + schedule.fires_between(next_fire, now);
    let max = if overdue == 1 { 1 } else { policy.max().min(MisfirePolicy::CATCH_UP_MAX) };
    let instants = latest(schedule, next_fire, now, max);
    let fired = u64::try_from(instants.len()).unwrap_or(overdue);
    Fires { instants, next: schedule.next_after(now), skipped: overdue.saturating_sub(fired) }
}

/// The latest `max` fires from `next_fire` to `now`, in order.
fn latest(schedule: &Schedule, next_fire: Timestamp, now: Timestamp, max: u32) -> Vec<Timestamp> {
    let mut instants = Vec::new();
    let mut before = later(now, Duration::from_nanos(1));
    for _ in 0..max {
        let Some(fire) = schedule.previous_before(before).filter(|fire| *fire > next_fire) else {
            instants.push(next_fire);
            break;
        };
        instants.push(fire);
        before = fire;
    }
    instants.reverse();
    instants
}

#[cfg(test)]
mod tests {
    use super::super::{Cron, CronExpression, Every, Zone};
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cron(expression: &str) -> Schedule {
        Cron::new(CronExpression::new(expression).unwrap()).in_zone(Zone::new("Europe/Berlin").unwrap()).into()
    }

    fn every(seconds: u64) -> Schedule {
        Every::new(Duration::from_secs(seconds), at("2016-01-01T00:00:00Z")).unwrap().into()
    }

    #[test]
    fn overdue_fires_follow_the_table() {
        let check = |policy: &str, now: &str, instants: &[&str], skipped: u64, next: &str| {
            for schedule in [every(3_600), cron("0 0 * * * ?")] {
                let fires = due_fires(&schedule, policy.parse().unwrap(), at("2026-01-01T10:00:00Z"), at(now));
                let instants = instants.iter().map(|text| at(text)).collect();
                assert_eq!(fires, Fires { instants, next: Some(at(next)), skipped }, "{policy} at {now}");
            }
        };
        for policy in ["SKIP", "FIRE_ONCE", "CATCH_UP:2"] {
            // Not yet, on the spot, and late: there is nothing to decide.
            check(policy, "2026-01-01T09:59:59.999999Z", &[], 0, "2026-01-01T10:00:00Z");
            check(policy, "2026-01-01T10:00:00Z", &["2026-01-01T10:00:00Z"], 0, "2026-01-01T11:00:00Z");
            check(policy, "2026-01-01T10:59:59.999999Z", &["2026-01-01T10:00:00Z"], 0, "2026-01-01T11:00:00Z");
        }
        check("SKIP", "2026-01-01T11:00:00Z", &[], 2, "2026-01-01T12:00:00Z");
        check("FIRE_ONCE", "2026-01-01T11:00:00Z", &["2026-01-01T11:00:00Z"], 1, "2026-01-01T12:00:00Z");
        let both = ["2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"];
        check("CATCH_UP:2", "2026-01-01T11:00:00Z", &both, 0, "2026-01-01T12:00:00Z");
        check("CATCH_UP:11", "2026-01-01T11:59:00Z", &both, 0, "2026-01-01T12:00:00Z");
        let latest = ["2026-01-01T14:00:00Z", "2026-01-01T15:00:00Z"];
        check("CATCH_UP:2", "2026-01-01T15:30:00Z", &latest, 4, "2026-01-01T16:00:00Z");
        check("CATCH_UP:1", "2026-01-01T15:30:00Z", &latest[1..], 5, "2026-01-01T16:00:00Z");
    }

    #[test]
    fn ten_years_of_seconds_are_counted_without_being_walked() {
        let (since, now) = (at("2016-01-01T00:00:00Z"), at("2026-01-01T00:00:00.5Z"));
        for schedule in [every(1), cron("* * * * * ?")] {
            let fires = due_fires(&schedule, MisfirePolicy::default(), since, now);
            assert_eq!(fires.instants.len(), 11);
            assert_eq!(fires.instants[0], at("2025-12-31T23:59:50Z"));
            assert_eq!(fires.instants[10], at("2026-01-01T00:00:00Z"));
            assert_eq!(fires.skipped, 3_653 * 86_400 + 1 - 11);
            assert_eq!(fires.next, Some(at("2026-01-01T00:00:01Z")));
        }
    }

    #[test]
    fn a_fire_that_the_schedule_no_longer_names_counts_once() {
        let daily = cron("0 0 12 * * ?");
        let fires = due_fires(&daily, MisfirePolicy::default(), at("2026-01-01T00:07:00Z"), at("2026-01-02T00:00:00Z"));
        assert_eq!(fires.instants, [at("2026-01-01T00:07:00Z"), at("2026-01-01T11:00:00Z")]);
        assert_eq!((fires.next, fires.skipped), (Some(at("2026-01-02T11:00:00Z")), 0));
    }

    #[test]
    fn the_last_fire_of_all_has_no_next() {
        let once = cron("0 0 12 1 1 ? 2026");
        let fires = due_fires(&once, MisfirePolicy::Skip, at("2026-01-01T11:00:00Z"), at("2030-01-01T00:00:00Z"));
        assert_eq!(fires, Fires { instants: vec![at("2026-01-01T11:00:00Z")], next: None, skipped: 0 });
    }

    #[test]
    fn more_than_the_limit_never_fires_at_once() {
        let fires = due_fires(
            &every(1),
            MisfirePolicy::CatchUp { max: u32::MAX },
            at("2026-01-01T00:00:00Z"),
            at("2026-01-02T00:00:00Z"),
        );
        assert_eq!((fires.instants.len(), fires.skipped), (1_000, 86_401 - 1_000));
    }

    #[test]
    fn policies_are_read_and_written() {
        let check = |text: &str, expected: Result<MisfirePolicy, &str>| {
            assert_eq!(text.parse::<MisfirePolicy>().map_err(|e| e.to_string()), expected.map_err(str::to_owned));
        };
        check("SKIP", Ok(MisfirePolicy::Skip));
        check("fire-once", Ok(MisfirePolicy::FireOnce));
        check("CATCH_UP", Ok(MisfirePolicy::CatchUp { max: 11 }));
        check("CATCH_UP:1000", Ok(MisfirePolicy::CatchUp { max: 1_000 }));
        check("CATCH_UP:0", Err("`misfire` is \"CATCH_UP:0\"; a schedule catches up with 1 to 1000 fires"));
        check("CATCH_UP:1001", Err("`misfire` is \"CATCH_UP:1001\"; a schedule catches up with 1 to 1000 fires"));
        check("CATCH_UP:many", Err("`misfire` is \"CATCH_UP:many\"; use one of SKIP, FIRE_ONCE, CATCH_UP:11"));
        check("SKIP:3", Err("`misfire` is \"SKIP:3\"; use one of SKIP, FIRE_ONCE, CATCH_UP:11"));
        check("", Err("`misfire` is \"\"; use one of SKIP, FIRE_ONCE, CATCH_UP:11"));
        for policy in [MisfirePolicy::Skip, MisfirePolicy::FireOnce, MisfirePolicy::CatchUp { max: 7 }] {
            let json = serde_json::to_string(&policy).unwrap();
            assert_eq!(json, format!("\"{policy}\""));
            assert_eq!(serde_json::from_str::<MisfirePolicy>(&json).unwrap(), policy);
            assert_eq!(MisfirePolicy::from_parts(policy.as_str(), policy.max()), Some(policy));
        }
    }
}
