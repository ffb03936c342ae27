//! What an attempt came to, before anything is decided about it.

use std::time::Duration;

use crate::json::JsonText;
use crate::limits;

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The handler returned a result.
    Succeeded {
        /// The result; `None` for the unit type.
        result: Option<JsonText>,
    },
    /// The handler returned an error, or the attempt could not begin.
    Failed(ErrorReport),
    /// The attempt took longer than its timeout.
    TimedOut(ErrorReport),
    /// The handler panicked.
    Panicked(ErrorReport),
    /// The node that ran it died.
    Crashed,
    /// The job was canceled while it ran; whoever canceled it has written its end.
    Canceled,
    /// The job goes back without an attempt consumed.
    Deferred {
        /// How long it is put off; a job that was due keeps its place in the order.
        delay: Duration,
        /// Why.
        reason: DeferReason,
    },
}

/// Why a job goes back without an attempt consumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeferReason {
    /// Its handler asked for it.
    Snoozed,
    /// Its node is shutting down, or has lost its right to run it.
    Drained,
    /// The reply to its claim was lost, so nobody ran it.
    LostClaim,
    /// The circuit breaker of the service that it calls is open.
    BreakerOpen,
}

impl DeferReason {
    /// In a few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Snoozed => "snoozed by its handler",
            Self::Drained => "handed back by its node",
            Self::LostClaim => "handed back after a lost claim",
            Self::BreakerOpen => "put off by an open circuit breaker",
        }
    }

    /// In one word, for metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Snoozed => "snoozed",
            Self::Drained => "drained",
            Self::LostClaim => "lost_claim",
            Self::BreakerOpen => "breaker_open",
        }
    }

    /// Whether a handler ran, so that there is an attempt to record.
    pub const fn handler_ran(self) -> bool {
        matches!(self, Self::Snoozed | Self::Drained)
    }
}

/// An error as it is kept: sanitized and fit to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorReport {
    class: String,
    text: String,
}

impl ErrorReport {
    /// Keeps a sanitized error; what is too long to be stored is cut.
    pub fn new(class: &str, sanitized: &str) -> Self {
        Self {
            class: limits::storable(class, limits::ERROR_CLASS_CHARS_MAX),
            text: limits::storable(sanitized, limits::ERROR_CHARS_MAX),
        }
    }

    /// The error's class, for grouping: the name of its type.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// The sanitized text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What user code had to say about a failed attempt, gathered before the decision so that the decision stays pure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdicts {
    /// Why the error is not to be retried, if it says so.
    pub do_not_retry: Option<String>,
    /// Whether the retry policy refused another attempt.
    pub policy_refused: bool,
    /// A delay from the retry policy, in place of the job's backoff.
    pub policy_delay: Option<Duration>,
}
