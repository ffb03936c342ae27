//! The embedded store of Ratchet: one SQLite file, shared by any number of processes on one machine.
//!
//! ```no_run
//! # async fn example() -> Result<(), ratchet_core::StoreError> {
//! use ratchet_store_sqlite::SqliteStore;
//!
//! let store = SqliteStore::open("jobs.db").await?;
//! # drop(store); Ok(()) }
//! ```
//!
//! The file is in WAL mode with `synchronous = FULL`: what was committed survives a power cut. Writes go through one
//! connection, reads through a few others. All SQL is in `ratchet-store-sql`; this crate has the connections, the
//! classes of errors, and [`SubmitIn`] and [`CompleteIn`] for a caller's own transaction.

mod conn;
mod error;
mod in_transaction;
mod open;
mod heartbeat;
mod store;
mod watch;
mod writer;

pub use in_transaction::{CompleteIn, SubmitIn};
pub use open::{SqliteOptions, Synchronous};
pub use ratchet_store_sql::Counts;
/// The driver, in the version whose connections this crate takes.
pub use sqlx;
pub use store::{Sqlite, SqliteStore};

/// A connection as `ratchet-store-sql` sees it, for tests of query plans.
#[doc(hidden)]
pub fn conn(conn: &mut sqlx::SqliteConnection) -> impl ratchet_store_sql::Conn + '_ {
    in_transaction::session(conn)
}
