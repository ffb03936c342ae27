//! Submitting and completing in a caller's own transaction.

use std::sync::LazyLock;

#[cfg(doc)]
use ratchet_core::ErrorKind;
use ratchet_core::StoreError;
use ratchet_core::prepare::{PrepareCompletion, PrepareSubmit};
use ratchet_store_sql::{Counters, Dialect, StoreContext, in_transaction};
use serde::Serialize;
use sqlx::PgConnection;

use crate::conn::Session;

/// Submits in a caller's own transaction, on a connection to the store's own database.
pub trait SubmitIn: PrepareSubmit {
    /// Writes the job with the caller's connection; it exists once the caller commits.
    ///
    /// A duplicate business key is an error that leaves the transaction usable.
    fn submit_in(self, conn: &mut PgConnection) -> impl Future<Output = Result<Self::Handle, Self::Error>> + Send;
}

impl<S> SubmitIn for S
where
    S: PrepareSubmit + Send,
    S::Handle: Send,
    S::Error: Send,
{
    async fn submit_in(self, conn: &mut PgConnection) -> Result<S::Handle, S::Error> {
        in_transaction::submit(&mut session(conn), self).await
    }
}

/// Completes a running attempt in the handler's own transaction.
pub trait CompleteIn: PrepareCompletion {
    /// Writes the attempt's end with the caller's connection, as the last statement before the commit: the handler's
    /// writes and the completion then happen together or not at all.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) if the attempt has lost its right to write: it was canceled, or its node was
    /// declared dead. [`Invalid`](ErrorKind::Invalid) if other jobs wait for this one and the transaction is not READ
    /// COMMITTED: it does not see who has begun to wait since it began. Roll back then.
    fn complete_in<R: Serialize + Sync>(
        &self,
        conn: &mut PgConnection,
        result: &R,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl<C: PrepareCompletion> CompleteIn for C {
    async fn complete_in<R: Serialize + Sync>(&self, conn: &mut PgConnection, result: &R) -> Result<(), StoreError> {
        in_transaction::complete(&mut session(conn), self, result).await
    }
}

/// A caller's connection; the texts are kept for the next one. It may be behind a pooler, so no statement is kept on it.
pub(crate) fn session(conn: &mut PgConnection) -> Session<'_> {
    static CONTEXT: LazyLock<StoreContext> = LazyLock::new(|| StoreContext::new(Dialect::Postgres));
    static COUNTERS: LazyLock<Counters> = LazyLock::new(Counters::default);
    Session { conn, context: &CONTEXT, counters: &COUNTERS, prepares: false, callers: true }
}
