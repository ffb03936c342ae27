//! What may follow what: the only place that knows.
//!
//! Stores guard their writes with [`sources`], the CLI refuses by it, and `docs/state-machine.md` is
//! [generated](markdown) from it.

use std::fmt;
use std::fmt::Write as _;

use crate::state::JobState;

/// Where a job stands, with what a paused job remembers.
///
/// [`JobState`] is what people see; a place also knows which state a paused job goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// PENDING
    Pending,
    /// RUNNING
    Running,
    /// WAITING
    Waiting,
    /// PAUSED, was PENDING
    PausedPending,
    /// PAUSED, was FAILED
    PausedFailed,
    /// SUCCEEDED
    Succeeded,
    /// FAILED
    Failed,
    /// CANCELED
    Canceled,
}

impl Place {
    /// Every place.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::PausedPending,
        Self::PausedFailed,
        Self::Succeeded,
        Self::Failed,
        Self::Canceled,
    ];

    /// The place of a stored state; `None` if `paused_from` does not fit the state.
    pub const fn of(state: JobState, paused_from: Option<JobState>) -> Option<Self> {
        match (state, paused_from) {
            (JobState::Pending, None) => Some(Self::Pending),
            (JobState::Running, None) => Some(Self::Running),
            (JobState::Waiting, None) => Some(Self::Waiting),
            (JobState::Paused, Some(JobState::Pending)) => Some(Self::PausedPending),
            (JobState::Paused, Some(JobState::Failed)) => Some(Self::PausedFailed),
            (JobState::Succeeded, None) => Some(Self::Succeeded),
            (JobState::Failed, None) => Some(Self::Failed),
            (JobState::Canceled, None) => Some(Self::Canceled),
            _ => None,
        }
    }

    /// The state that people see.
    pub const fn state(self) -> JobState {
        match self {
            Self::Pending => JobState::Pending,
            Self::Running => JobState::Running,
            Self::Waiting => JobState::Waiting,
            Self::PausedPending | Self::PausedFailed => JobState::Paused,
            Self::Succeeded => JobState::Succeeded,
            Self::Failed => JobState::Failed,
            Self::Canceled => JobState::Canceled,
        }
    }

    /// What a paused job goes back to.
    pub const fn paused_from(self) -> Option<JobState> {
        match self {
            Self::PausedPending => Some(JobState::Pending),
            Self::PausedFailed => Some(JobState::Failed),
            _ => None,
        }
    }

    /// Whether a job that stands here holds its business key: only one that may still run does.
    pub const fn holds_business_key(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::Waiting | Self::PausedPending)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.paused_from() {
            None => self.state().fmt(f),
            Some(from) => write!(f, "{} (from {from})", self.state()),
        }
    }
}

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A node takes the job to run it.
    Claim,
    /// The attempt succeeded.
    Succeed,
    /// The attempt failed and another will follow.
    Reschedule,
    /// The job goes back without an attempt consumed.
    Defer,
    /// The job failed for good.
    Fail,
    /// A person or a replacement ends the job.
    Cancel,
    /// A person suspends the job.
    Pause,
    /// A person lets a paused job go on.
    Resume,
    /// A person retries a failed job.
    Retry,
    /// What the job waited for has come.
    Release,
    /// The job's node died, the job lives on.
    Rescue,
    /// What the job waited for can never come.
    Expire,
    /// What had ended the job before it could run, or had let it go, was undone.
    Revive,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 13] = [
        Self::Claim,
        Self::Succeed,
        Self::Reschedule,
        Self::Defer,
        Self::Fail,
        Self::Cancel,
        Self::Pause,
        Self::Resume,
        Self::Retry,
        Self::Release,
        Self::Rescue,
        Self::Expire,
        Self::Revive,
    ];

    /// Its name, as people and logs see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Succeed => "succeed",
            Self::Reschedule => "reschedule",
            Self::Defer => "defer",
            Self::Fail => "fail",
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Release => "release",
            Self::Rescue => "rescue",
            Self::Expire => "expire",
            Self::Revive => "revive",
        }
    }

    /// Whether it only ever follows from what happens to other jobs, or does not happen to them.
    pub const fn follows_from_others(self) -> bool {
        matches!(self, Self::Expire | Self::Revive)
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Claim => "due, its kind registered on the node, its queue not paused; the claim's fence is made here",
            Self::Succeed => {
                "result and timing are recorded, the business key is freed, the success callback is submitted"
            }
            Self::Reschedule => "a failed attempt with retries left: attempts + 1, due after the backoff",
            Self::Defer => {
                "snoozed by its handler, handed back by a drain or a lost claim: no attempt consumed, ageing goes on"
            }
            Self::Fail => "dead letter: retries exhausted, not to be retried, or the third crash of its node",
            Self::Cancel => "a running handler's token is canceled, its result is discarded",
            Self::Pause => "remembers where it came from; pausing a paused job changes nothing and is no error",
            Self::Resume => "back to where it was paused from",
            Self::Retry => "attempts 0, error cleared, due now; takes its business key again or is refused",
            Self::Release => "what it waited for has come",
            Self::Rescue => "its node died: crash count + 1, due now, on probation",
            Self::Expire => {
                "dead letter without a run: its signal did not come in time, or its condition could not be evaluated"
            }
            Self::Revive => {
                "waits again: another job whose end had canceled it, or had let it go and it has not begun, was retried; \
                 or it failed without its signal and was retried itself"
            }
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a job at `place` goes when `event` happens; `None` if it may not happen there.
///
/// ```
/// use ratchet_core::Event;
/// use ratchet_core::transition::{Place, next};
///
/// assert_eq!(next(Place::Pending, Event::Claim), Some(Place::Running));
/// assert_eq!(next(Place::Succeeded, Event::Cancel), None);
/// ```
#[expect(clippy::match_same_arms, reason = "one line per rule, in the order of a job's life")]
pub const fn next(place: Place, event: Event) -> Option<Place> {
    match (place, event) {
        (Place::Pending, Event::Claim) => Some(Place::Running),
        (Place::Running, Event::Succeed) => Some(Place::Succeeded),
        (Place::Running, Event::Fail) => Some(Place::Failed),
        (Place::Running, Event::Reschedule | Event::Defer | Event::Rescue) => Some(Place::Pending),
        (Place::Pending | Place::Running | Place::Waiting | Place::PausedPending, Event::Cancel) => {
            Some(Place::Canceled)
        }
        (Place::Pending, Event::Pause) => Some(Place::PausedPending),
        (Place::Failed, Event::Pause) => Some(Place::PausedFailed),
        (Place::PausedPending, Event::Resume) => Some(Place::Pending),
        (Place::PausedFailed, Event::Resume) => Some(Place::Failed),
        (Place::Failed, Event::Retry) => Some(Place::Pending),
        (Place::Waiting, Event::Release) => Some(Place::Pending),
        (Place::Waiting, Event::Expire) => Some(Place::Failed),
        (Place::Failed | Place::Canceled | Place::Pending, Event::Revive) => Some(Place::Waiting),
        _ => None,
    }
}

/// The places in which `event` may happen.
pub fn sources(event: Event) -> impl Iterator<Item = Place> {
    Place::ALL.into_iter().filter(move |place| next(*place, event).is_some())
}

/// The page `docs/state-machine.md`, generated from [`next`].
pub fn markdown() -> String {
    let mut page = String::from(
        "# The life of a job\n\n\
         Generated from `crates/ratchet-core/src/job/transition.rs`; `cargo xtask tidy --fix` writes it anew.\n\n\
         PENDING, RUNNING, WAITING and PAUSED jobs are live: each has a row in `scheduler_job_queue`.\n\
         SUCCEEDED, FAILED and CANCELED jobs are terminal: only their row in `scheduler_job` remains.\n\n\
         ```mermaid\nstateDiagram-v2\n",
    );
    for place in Place::ALL {
        for event in Event::ALL {
            if let Some(to) = next(place, event) {
                let _ = writeln!(page, "    {place:?} --> {to:?}: {event}");
            }
        }
    }
    page.push_str("```\n\n| event | from | to | what it means |\n|---|---|---|---|\n");
    for event in Event::ALL {
        let from = sources(event).map(|place| place.to_string()).collect::<Vec<_>>().join(", ");
        let mut to: Vec<String> =
            sources(event).filter_map(|place| next(place, event)).map(|place| place.to_string()).collect();
        to.dedup();
        let _ = writeln!(page, "| {event} | {from} | {} | {} |", to.join(", "), event.meaning());
    }
    page.push_str(
        "\nEverything that is not in the table changes nothing and is reported as a conflict, \
         or as `false` where the caller asked a question (`cancel`, `pause`, `resume`, `retry`).\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_places_are_left_only_by_a_person() {
        for place in Place::ALL.into_iter().filter(|place| place.state().is_terminal()) {
            for event in Event::ALL {
                if next(place, event).is_some() {
                    assert!(matches!(event, Event::Pause | Event::Retry | Event::Revive), "{place} is left by {event}");
                }
            }
        }
    }

    #[test]
    fn every_place_comes_back_from_what_is_stored_of_it() {
        for place in Place::ALL {
            assert_eq!(Place::of(place.state(), place.paused_from()), Some(place));
        }
    }

    #[test]
    fn only_running_jobs_can_be_settled() {
        for event in [Event::Succeed, Event::Reschedule, Event::Defer, Event::Fail, Event::Rescue] {
            assert_eq!(sources(event).collect::<Vec<_>>(), [Place::Running], "{event}");
        }
    }
}
