//! What the store must now do about an attempt: decided once, applied in one transaction.

use std::fmt::Write as _;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::claim::Fence;
use crate::id::JobId;
use crate::json::JsonText;
use crate::name::{BusinessKey, Kind, QueueName};
use crate::outcome::ErrorReport;
use crate::priority::Priority;
use crate::record::{AttemptRecord, JobRecord};
use crate::spec::{JobType, NewJob};
use crate::transition::Event;

/// The end of an attempt: what the job's row becomes, and what follows from it, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The right to write: a store applies the settlement only to the row that still matches.
    pub fence: Fence,
    /// What the row becomes.
    pub change: Change,
    /// The attempt's record, if there was an attempt.
    pub attempt: Option<AttemptRecord>,
    /// Jobs that follow from the change: callbacks.
    pub new_jobs: Vec<NewJob>,
    /// Whether an earlier try of the same settlement may have been committed without our knowing.
    ///
    /// A store then looks for the attempt's record, by the fence's node and with the same status, before it says
    /// [`Settled::Conflict`]; a record with another status is an end that somebody else wrote.
    pub maybe_applied: bool,
    /// Whether the attempt's permit ends here: it took one, and nothing of the handler runs any more.
    ///
    /// It ends whatever becomes of the settlement, also by [`Settled::Conflict`].
    pub ends_permit: bool,
}

impl Settlement {
    /// A change by this right, without a record of an attempt, and nothing that follows but what the row itself says.
    pub const fn of(fence: Fence, change: Change) -> Self {
        Self { fence, change, attempt: None, new_jobs: Vec::new(), maybe_applied: false, ends_permit: false }
    }

    /// The same settlement reduced to what cannot fail: no result, fixed error texts, no callbacks.
    ///
    /// For a settlement that the database refuses for good, so that the job still reaches its state.
    #[must_use]
    pub fn minimal(&self) -> Self {
        const TEXT: &str = "the original text could not be stored";
        let error = ErrorReport::new("Unstorable", TEXT);
        let change = match &self.change {
            Change::Succeed { attempts, .. } => Change::Succeed { attempts: *attempts, result: None },
            Change::Reschedule { delay, attempts, .. } => {
                Change::Reschedule { delay: *delay, attempts: *attempts, error }
            }
            Change::Fail { attempts, reason, .. } => {
                Change::Fail { attempts: *attempts, reason: reason.clone(), error }
            }
            Change::Defer { .. } | Change::Rescue { .. } => self.change.clone(),
        };
        let attempt = self.attempt.clone().map(|attempt| AttemptRecord {
            error_class: attempt.error_class.is_some().then(|| "Unstorable".to_owned()),
            error: attempt.error.is_some().then(|| TEXT.to_owned()),
            ..attempt
        });
        Self { change, attempt, new_jobs: Vec::new(), ..*self }
    }
}

/// What a settled job's row becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It succeeded.
    Succeed {
        /// Counted attempts, with this one.
        attempts: u32,
        /// What the handler returned.
        result: Option<JsonText>,
    },
    /// It runs again after a failed attempt.
    Reschedule {
        /// From now until it is due.
        delay: Duration,
        /// Counted attempts, with this one.
        attempts: u32,
        /// Why the attempt failed.
        error: ErrorReport,
    },
    /// It goes back as it was.
    Defer {
        /// How long it is put off.
        delay: Duration,
    },
    /// It failed for good; an alert is recorded unless the same one was within the hour.
    Fail {
        /// Counted attempts, with this one.
        attempts: u32,
        /// Why it failed.
        error: ErrorReport,
        /// Why there is no further attempt.
        reason: DeadLetterReason,
    },
    /// It runs again, on probation, after its node died.
    Rescue {
        /// How many times in a row its node has died.
        crash_count: u32,
    },
}

impl Change {
    /// The event of the state machine that this change is.
    pub const fn event(&self) -> Event {
        match self {
            Self::Succeed { .. } => Event::Succeed,
            Self::Reschedule { .. } => Event::Reschedule,
            Self::Defer { .. } => Event::Defer,
            Self::Fail { .. } => Event::Fail,
            Self::Rescue { .. } => Event::Rescue,
        }
    }

    /// The crash count that the job keeps: an attempt that ended normally clears it, a job that went back has proven nothing.
    pub const fn crash_count(&self, before: u32) -> u32 {
        match self {
            Self::Fail { reason: DeadLetterReason::CrashLimit { crash_count }, .. } | Self::Rescue { crash_count } => {
                *crash_count
            }
            Self::Succeed { .. } | Self::Reschedule { .. } | Self::Fail { .. } => 0,
            Self::Defer { .. } => before,
        }
    }
}

/// Why a failed job is not tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterReason {
    /// All its attempts are used up.
    RetriesExhausted,
    /// The error said that a retry cannot help.
    DoNotRetry(String),
    /// The retry policy refused.
    PolicyRefused,
    /// What it waited for can never come, so it never ran.
    NeverRan,
    /// Its node died too many times in a row.
    CrashLimit {
        /// How many times.
        crash_count: u32,
    },
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The row and everything that follows were written.
    Applied,
    /// An earlier try, or the handler's own transaction, had already written it.
    AlreadyApplied,
    /// The fence no longer matches: nothing was written.
    Conflict,
}

/// A job whose place changed because others ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The job.
    pub id: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its queue.
    pub queue: QueueName,
    /// How it came to be.
    pub job_type: JobType,
    /// How urgent it is.
    pub priority: Priority,
    /// Its business key.
    pub business_key: Option<BusinessKey>,
    /// What became of it.
    pub what: FollowedBy,
}

impl Followed {
    /// What became of this job.
    pub fn of(job: &JobRecord, what: FollowedBy) -> Self {
        Self {
            id: job.id,
            kind: job.spec.kind.clone(),
            queue: job.spec.queue.clone(),
            job_type: job.job_type,
            priority: job.spec.priority,
            business_key: job.business_key.clone(),
            what,
        }
    }
}

/// What became of a job because others ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowedBy {
    /// It has nothing left to wait for.
    Released,
    /// It waits for nothing but its signal from now on.
    Awaiting,
    /// Its signal has come, and it waits on for other jobs.
    Signaled,
    /// It will not run.
    Canceled {
        /// The job whose end is the reason.
        because: JobId,
    },
    /// It failed without running.
    Failed {
        /// Why.
        error: String,
    },
    /// It waits again, because what had canceled it, or had let it go, was retried.
    Revived,
}

/// The fingerprint by which alerts about the same error of the same job are recognized: 64 hexadecimal digits.
pub fn error_hash(error: &ErrorReport) -> String {
    let mut hasher = Sha256::new();
    hasher.update(error.class());
    hasher.update([0]);
    hasher.update(error.text());
    hasher.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// An alert for the same job and error is recorded once in this time.
pub const ALERT_QUIET: Duration = Duration::from_hours(1);
