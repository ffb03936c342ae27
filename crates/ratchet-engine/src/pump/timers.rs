//! The instants at which the pump has something to do.

use std::time::{Duration, Instant};

/// The store is asked for the next due time at most this often.
const ASK_DUE_EVERY: Duration = Duration::from_millis(50);

/// The instants at which the pump has something to do, if it is not woken before.
#[derive(Debug)]
pub(super) struct Timers {
    /// The next poll for work.
    pub(super) poll: Instant,
    /// The time at which the next waiting job becomes due.
    pub(super) due: Option<Instant>,
    /// The next question to the store for that time.
    pub(super) ask_due: Option<Instant>,
    /// The last question.
    pub(super) asked_due: Instant,
    /// The next comparison of running jobs with the store.
    pub(super) reconcile: Instant,
    /// The end of the wait for further settlements to write together, or for a broken database.
    pub(super) settle: Instant,
    /// The end of the wait for a broken database before permits are ended.
    pub(super) release: Instant,
    /// The end of the wait for a broken database before the next claim.
    pub(super) claim_again: Instant,
    /// The next claim that asks for the steps that Ratchet itself runs.
    pub(super) internal: Instant,
    /// The time at which a service that admitted nothing may admit jobs again.
    pub(super) readmit: Option<Instant>,
}

impl Timers {
    /// Polls at once; reconciles for the first time at `reconcile`.
    pub(super) fn new(now: Instant, reconcile: Instant) -> Self {
        Self {
            poll: now,
            due: None,
            ask_due: None,
            asked_due: now,
            reconcile,
            settle: now,
            release: now,
            claim_again: now,
            internal: now,
            readmit: None,
        }
    }

    /// Asks the store soon for the next due time.
    pub(super) fn ask_due_soon(&mut self) {
        let at = self.asked_due + ASK_DUE_EVERY;
        self.ask_due = Some(self.ask_due.map_or(at, |already| already.min(at)));
    }
}
