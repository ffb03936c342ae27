//! The states of a job.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::invalid::InvalidInput;

/// Where a job stands. Which state may follow which is said in [`transition`](crate::transition) alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobState {
    /// Waits for its time and a free slot.
    Pending,
    /// A node has claimed it and runs it.
    Running,
    /// Blocked on something else: a signal, dependencies, batch children.
    Waiting,
    /// Suspended by a person.
    Paused,
    /// Done.
    Succeeded,
    /// Failed for good: in the dead letter queue.
    Failed,
    /// Will not run.
    Canceled,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 7] =
        [Self::Pending, Self::Running, Self::Waiting, Self::Paused, Self::Succeeded, Self::Failed, Self::Canceled];

    /// Whether the job is over, unless a person brings it back.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Canceled)
    }

    /// Its name, in capitals, as it is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Running => "RUNNING",
            Self::Waiting => "WAITING",
            Self::Paused => "PAUSED",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for JobState {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        Self::ALL.into_iter().find(|state| state.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
            let known = Self::ALL.map(|state| state.as_str().to_ascii_lowercase()).join(", ");
            InvalidInput::new("state", format!("is {text:?}; use one of {known}"))
        })
    }
}
