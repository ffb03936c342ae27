//! What a driver crate needs to write jobs and results in a caller's own transaction.
//!
//! The engine implements these traits for its builders and contexts; a driver crate offers `submit_in` and
//! `complete_in` on top of them, for its own connection type. Neither names the other.

use serde::Serialize;

use crate::coordinator::Hint;
use crate::invalid::InvalidInput;
use crate::settlement::{Settled, Settlement};
use crate::store::{SubmitOutcome, SubmitUnit};

/// A submit that was checked and is ready to be written, by whoever holds the transaction.
pub trait PrepareSubmit: Sized {
    /// What the caller gets: a handle to the job.
    type Handle;
    /// What the caller gets if it was refused.
    type Error: From<InvalidInput> + From<crate::StoreError>;

    /// Checks and completes the submit: the same rules, defaults and policies as without a transaction.
    fn prepare(self) -> Result<PreparedSubmit<Self::Handle, Self::Error>, Self::Error>;
}

/// A submit that is ready to be written.
pub struct PreparedSubmit<H, E> {
    /// What to write.
    pub unit: SubmitUnit,
    /// What to tell other nodes with the commit, if the database can carry it in the same transaction; else it is left
    /// unsaid, because nobody here learns of the commit.
    pub hint: Option<Hint>,
    /// Makes the caller's handle from what the store said.
    pub finish: Box<dyn FnOnce(SubmitOutcome) -> Result<H, E> + Send>,
}

impl<H, E> std::fmt::Debug for PreparedSubmit<H, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedSubmit").field("unit", &self.unit).finish_non_exhaustive()
    }
}

/// A running attempt that can be completed in the handler's own transaction.
pub trait PrepareCompletion: Sync {
    /// The settlement that completes the attempt with `result`.
    fn prepare_completion<R: Serialize + Sync>(&self, result: &R) -> Result<Settlement, InvalidInput>;

    /// Tells the attempt what became of its settlement, so that the engine recognizes its own commit.
    fn completion_written(&self, settlement: Settlement, settled: Settled);
}
