//! Submitting and completing in a caller's own transaction.

use ratchet_core::prepare::{PrepareCompletion, PrepareSubmit};
use ratchet_core::{ErrorKind, Settled, StoreError};
use ratchet_store_sql::{Dialect, Texts, settle, submit};
use serde::Serialize;
use sqlx::SqliteConnection;

use crate::conn::{Counters, Session};

/// Submits in a caller's own transaction.
///
/// Begin it with `BEGIN IMMEDIATE` (`conn.begin_with("BEGIN IMMEDIATE")`): a transaction that read before it writes
/// fails when another connection has written in between. The connection must be one to the store's own file.
pub trait SubmitIn: PrepareSubmit {
    /// Writes the job with the caller's connection; it exists once the caller commits.
    ///
    /// A duplicate business key is an error that leaves the transaction usable.
    fn submit_in(self, conn: &mut SqliteConnection) -> impl Future<Output = Result<Self::Handle, Self::Error>> + Send;
}

impl<S> SubmitIn for S
where
    S: PrepareSubmit + Send,
    S::Handle: Send,
    S::Error: Send,
{
    async fn submit_in(self, conn: &mut SqliteConnection) -> Result<S::Handle, S::Error> {
        let prepared = self.prepare()?;
        let (texts, counters) = (Texts::new(Dialect::Sqlite), Counters::default());
        let mut session = Session { conn, texts: &texts, counters: &counters };
        let mut outcomes = submit::submit_carefully(&mut session, &[prepared.unit]).await?;
        let outcome = outcomes
            .pop()
            .unwrap_or_else(|| Err(StoreError::new(ErrorKind::Invalid, "submitting a job", "the unit had no outcome")));
        (prepared.finish)(outcome)
    }
}

/// Completes a running attempt in the handler's own transaction.
pub trait CompleteIn: PrepareCompletion {
    /// Writes the attempt's end with the caller's connection, as the last statement before the commit: the handler's
    /// writes and the completion then happen together or not at all.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) if the attempt has lost its right to write: it was cancelled, or its node was
    /// declared dead. Roll back then.
    fn complete_in<R: Serialize + Sync>(
        &self,
        conn: &mut SqliteConnection,
        result: &R,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl<C: PrepareCompletion> CompleteIn for C {
    async fn complete_in<R: Serialize + Sync>(
        &self,
        conn: &mut SqliteConnection,
        result: &R,
    ) -> Result<(), StoreError> {
        const DOING: &str = "completing a job in its handler's transaction";
        let settlement = self.prepare_completion(result).map_err(|error| {
            StoreError::new(ErrorKind::Invalid, DOING, "the result cannot be stored").with_source(error)
        })?;
        let (texts, counters) = (Texts::new(Dialect::Sqlite), Counters::default());
        let mut session = Session { conn, texts: &texts, counters: &counters };
        let settlements = [settlement];
        let settled = settle::settle(&mut session, &settlements).await?.pop().unwrap_or(Settled::Conflict);
        let [settlement] = settlements;
        let job_id = settlement.fence.job_id;
        self.completion_written(settlement, settled);
        if settled == Settled::Conflict {
            let problem = format!("the attempt of job {job_id} has lost its right to write; roll back");
            return Err(StoreError::new(ErrorKind::Conflict, DOING, problem));
        }
        Ok(())
    }
}
