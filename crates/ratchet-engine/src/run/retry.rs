//! Whether, and when, a failed job is tried again.

use std::time::Duration;

use ratchet_core::JobRecord;

use crate::job::failure::Failure;

/// What a retry policy says about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryVerdict {
    /// The job's own settings decide.
    AsConfigured,
    /// As configured, but after this delay instead of the job's backoff.
    After(Duration),
    /// No further attempt, whatever the job's settings say.
    Refuse,
}

/// Asked once after every failed attempt that may be retried; it can refuse, or choose another delay.
///
/// It cannot add attempts: `max_retries` holds all the same. A policy that panics counts as
/// [`AsConfigured`](RetryVerdict::AsConfigured).
pub trait RetryPolicy: Send + Sync {
    /// What to do after attempt number `attempt` of `job` failed.
    fn verdict(&self, job: &JobRecord, attempt: u32, failure: &Failure) -> RetryVerdict;
}

/// Leaves every decision to the job's own settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultRetryPolicy;

impl RetryPolicy for DefaultRetryPolicy {
    fn verdict(&self, _job: &JobRecord, _attempt: u32, _failure: &Failure) -> RetryVerdict {
        RetryVerdict::AsConfigured
    }
}
