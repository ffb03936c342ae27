//! Signals: what comes from outside and lets a waiting job go on.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::clock::{later, to_micros};
use crate::flow::{JobFlags, WaitState, signaled};
use crate::id::{DeliveryId, JobId};
use crate::invalid::InvalidInput;
use crate::json::JsonText;
use crate::limits;
use crate::name::{Principal, SignalKey};
use crate::outcome::ErrorReport;
use crate::spec::{NewJob, StartState};

/// The signal that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignalWait {
    /// Its name.
    pub key: SignalKey,
    /// How long the job waits for it, from when it waits for nothing else; `None` is for ever.
    pub timeout: Option<Duration>,
}

impl SignalWait {
    /// Checks what the field types cannot.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let Some(timeout) = self.timeout else { return Ok(()) };
        limits::check_timeout(timeout).map_err(|refused| InvalidInput::new("signal timeout", refused.problem()))
    }
}

impl NewJob {
    /// Makes the job wait for a signal, beside whatever else it waits for. A job waits for one signal at most.
    #[must_use]
    pub fn awaiting(mut self, wait: SignalWait) -> Self {
        if self.signal.is_none() {
            self.waits_for += 1;
        }
        self.flow = self.flow.with(JobFlags::SIGNAL);
        self.start = StartState::Waiting;
        self.signal = Some(wait);
        self
    }

    /// The job as it is stored if its signal has come before it: ready, unless it waits for other jobs.
    #[must_use]
    pub fn already_signaled(&self) -> Self {
        let left = signaled(self.waiting());
        let start = if left.waits_for == 0 { StartState::Ready } else { self.start };
        Self { start, flow: left.flow, waits_for: left.waits_for, ..self.clone() }
    }

    /// What it waits for.
    pub const fn waiting(&self) -> WaitState {
        WaitState { waits_for: self.waits_for, flow: self.flow }
    }
}

/// What a person decided, if the signal is a decision. Both let the job go on: its handler sees which it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SignalDecision {
    /// Yes.
    Approved,
    /// No.
    Rejected {
        /// Why.
        reason: String,
    },
}

impl SignalDecision {
    /// A rejection, checked.
    ///
    /// # Errors
    /// If the reason is longer than 2,000 characters or holds NUL.
    pub fn rejected(reason: impl Into<String>) -> Result<Self, InvalidInput> {
        let reason = reason.into();
        limits::check_length("reason", &reason, limits::REASON_CHARS_MAX)?;
        limits::check_no_nul("reason", &reason)?;
        Ok(Self::Rejected { reason })
    }

    /// Its name, in capitals.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Approved => "APPROVED",
            Self::Rejected { .. } => "REJECTED",
        }
    }

    /// The decision of a stored name and reason.
    pub fn from_parts(name: &str, reason: Option<&str>) -> Option<Self> {
        match name {
            "APPROVED" => Some(Self::Approved),
            "REJECTED" => Some(Self::Rejected { reason: reason.unwrap_or_default().to_owned() }),
            _ => None,
        }
    }

    /// Why it was rejected.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Approved => None,
            Self::Rejected { reason } => Some(reason),
        }
    }
}

/// A signal that has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Its name.
    pub key: SignalKey,
    /// What it says.
    pub payload: JsonText,
    /// Whether it approves or rejects; `None` if it is no decision.
    pub decision: Option<SignalDecision>,
    /// Who sent it.
    pub by: Option<Principal>,
    /// When it was delivered, by the database's clock; one that was kept for the job, when it was kept.
    pub at: Timestamp,
    /// The delivery that brought it, the same for all jobs that it reached.
    pub delivery_id: DeliveryId,
}

impl Signal {
    /// The payload as a type.
    ///
    /// # Errors
    /// If it is of another shape.
    pub fn payload<T: serde::de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        self.payload.decode()
    }

    /// Whether it approves.
    pub fn is_approved(&self) -> bool {
        self.decision == Some(SignalDecision::Approved)
    }

    /// Why it rejects, if it does.
    pub fn rejection(&self) -> Option<&str> {
        self.decision.as_ref().and_then(SignalDecision::reason)
    }
}

/// What a store knows of the signal that a job waits or waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRecord {
    /// The job.
    pub job_id: JobId,
    /// The signal's name.
    pub key: SignalKey,
    /// How long the job waits for it.
    pub timeout: Option<Duration>,
    /// Until when, if the time limit runs.
    pub expires_at: Option<Timestamp>,
    /// The signal, if it has come.
    pub signal: Option<Signal>,
}

impl SignalRecord {
    /// A wait that has just begun, for a signal that has not come.
    pub fn new(job_id: JobId, wait: &SignalWait) -> Self {
        Self { job_id, key: wait.key.clone(), timeout: wait.timeout, expires_at: None, signal: None }
    }
}

impl SignalRecord {
    /// Returns the error that the job fails with, if its signal has not come in time.
    pub fn expired(&self, now: Timestamp) -> Option<ErrorReport> {
        let is_over = self.signal.is_none() && self.expires_at.is_some_and(|at| at <= now);
        self.timeout.filter(|_| is_over).map(|timeout| timeout_error(&self.key, timeout))
    }
}

/// Whether a signal that is kept until then is still kept.
pub fn is_kept(until: Timestamp, now: Timestamp) -> bool {
    until > now
}

/// Whom a signal is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalTarget {
    /// One job, whatever its signal is called.
    Job(JobId),
    /// Every job that waits for a signal of this name.
    Key(SignalKey),
}

/// A signal on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The id of this delivery.
    pub id: DeliveryId,
    /// Whom it is for.
    pub target: SignalTarget,
    /// What it says.
    pub payload: JsonText,
    /// Whether it approves or rejects.
    pub decision: Option<SignalDecision>,
    /// Who sends it.
    pub by: Option<Principal>,
    /// How long it is kept for a job to come, if none waits for its key; `None` is not at all.
    pub keep_for: Option<Duration>,
}

impl Delivery {
    /// Checks what the field types cannot.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let bytes = self.payload.as_str().len();
        if bytes > limits::SIGNAL_BYTES_MAX {
            let problem = format!("is {bytes} bytes of JSON; the limit is {}", limits::SIGNAL_BYTES_MAX);
            return Err(InvalidInput::new("signal payload", problem));
        }
        self.keep_for.map_or(Ok(()), |keep_for| limits::check_delay("keep_for", keep_for))
    }

    /// Returns the key under which it is kept and until when, if no job has got it; `None` if it is not kept.
    ///
    /// `occupied` is whether another signal is kept under its key: the first one stays.
    pub fn kept(&self, occupied: bool, now: Timestamp) -> Option<(&SignalKey, Timestamp)> {
        let SignalTarget::Key(key) = &self.target else { return None };
        let until = to_micros(later(now, self.keep_for?));
        (!occupied && is_kept(until, now)).then_some((key, until))
    }

    /// The signal that a job gets by it.
    pub fn signal(&self, key: SignalKey, at: Timestamp) -> Signal {
        let Self { id, payload, decision, by, .. } = self.clone();
        Signal { key, payload, decision, by, at, delivery_id: id }
    }
}

/// Why a job failed whose signal did not come in time.
pub fn timeout_error(key: &SignalKey, timeout: Duration) -> ErrorReport {
    let within = SignedDuration::try_from(timeout).map_or_else(|_| format!("{timeout:?}"), |it| format!("{it:#}"));
    ErrorReport::new("SignalTimeout", &format!("no signal {key:?} came within {within}"))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::name::Kind;
    use crate::spec::JobSpec;

    fn wait(timeout: Option<Duration>) -> SignalWait {
        SignalWait { key: SignalKey::new("approve-7").unwrap(), timeout }
    }

    fn job() -> NewJob {
        NewJob::new(JobId(Uuid::from_u128(1)), JobSpec::new(Kind::new("test").unwrap(), JsonText::null()))
    }

    #[test]
    fn a_job_awaits_one_signal() {
        let once = job().awaiting(wait(None));
        assert_eq!((once.waits_for, once.start, once.flow), (1, StartState::Waiting, JobFlags::SIGNAL));
        let twice = once.clone().awaiting(wait(None));
        assert_eq!(twice, once);
        let came = once.already_signaled();
        assert_eq!((came.waits_for, came.start, came.flow), (0, StartState::Ready, JobFlags::SIGNALED));
        let step = NewJob { waits_for: 3, ..once };
        assert_eq!((step.already_signaled().waits_for, step.already_signaled().start), (2, StartState::Waiting));
    }

    #[test]
    fn a_timeout_is_told_in_words() {
        let check = |timeout, expected: &str| {
            let report = timeout_error(&wait(None).key, timeout);
            assert_eq!((report.class(), report.text()), ("SignalTimeout", expected));
        };
        check(Duration::from_hours(2), "no signal \"approve-7\" came within 2h");
        check(Duration::from_secs(90), "no signal \"approve-7\" came within 1m 30s");
        check(Duration::from_millis(1_500), "no signal \"approve-7\" came within 1s 500ms");
    }

    const fn at(second: i64) -> Timestamp {
        Timestamp::constant(second, 0)
    }

    #[test]
    fn a_job_fails_when_its_time_limit_has_run_out() {
        let signal = Signal {
            key: wait(None).key,
            payload: JsonText::null(),
            decision: None,
            by: None,
            at: at(1),
            delivery_id: DeliveryId(Uuid::from_u128(1)),
        };
        let minute = Some(Duration::from_mins(1));
        let check = |timeout, expires_at: Option<i64>, signal: Option<&Signal>, expected: bool| {
            let record = SignalRecord {
                expires_at: expires_at.map(at),
                signal: signal.cloned(),
                ..SignalRecord::new(job().id, &wait(timeout))
            };
            assert_eq!(record.expired(at(100)).is_some(), expected, "{record:?}");
        };
        check(minute, Some(99), None, true);
        check(minute, Some(100), None, true);
        check(minute, Some(101), None, false);
        check(minute, None, None, false);
        check(minute, Some(99), Some(&signal), false);
        check(None, None, None, false);
    }

    #[test]
    fn a_signal_is_kept_under_a_free_key() {
        let key = SignalTarget::Key(wait(None).key);
        let check = |target: &SignalTarget, keep_for: Option<u64>, occupied, until: Option<i64>| {
            let delivery = Delivery {
                id: DeliveryId(Uuid::from_u128(1)),
                target: target.clone(),
                payload: JsonText::null(),
                decision: None,
                by: None,
                keep_for: keep_for.map(Duration::from_secs),
            };
            let kept = delivery.kept(occupied, at(100)).map(|(_, until)| until);
            assert_eq!(kept, until.map(at), "{delivery:?} {occupied}");
        };
        check(&key, Some(5), false, Some(105));
        check(&key, Some(5), true, None);
        check(&key, Some(0), false, None);
        check(&key, None, false, None);
        check(&SignalTarget::Job(job().id), Some(5), false, None);
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_name() {
        let check = |refused: Result<(), InvalidInput>, expected: &str| {
            assert_eq!(refused.unwrap_err().to_string(), expected);
        };
        check(SignalKey::new("").map(drop), "`signal key` is empty; give 1 to 255 characters");
        check(wait(Some(Duration::ZERO)).check(), "`signal timeout` is 0ns; the least is 1ms");
        check(
            SignalDecision::rejected("x".repeat(2_001)).map(drop),
            "`reason` is 2001 characters long; the limit is 2000",
        );
        let delivery = |payload: &str| Delivery {
            id: DeliveryId(Uuid::from_u128(1)),
            target: SignalTarget::Key(wait(None).key),
            payload: JsonText::encode("payload", payload, usize::MAX).unwrap(),
            decision: None,
            by: None,
            keep_for: None,
        };
        assert_eq!(delivery(&"x".repeat(65_534)).check(), Ok(()));
        let large = delivery(&"x".repeat(65_535));
        check(large.check(), "`signal payload` is 65537 bytes of JSON; the limit is 65536");
    }
}
