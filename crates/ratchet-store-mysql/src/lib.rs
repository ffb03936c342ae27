//! The store of Ratchet on MySQL 8 and MariaDB, shared by any number of nodes.
//!
//! ```no_run
//! # async fn example() -> Result<(), ratchet_core::StoreError> {
//! use ratchet_store_mysql::MysqlStore;
//!
//! let store = MysqlStore::options("mysql://app:secret@db.internal/app").migrate(true).connect().await?;
//! # drop(store); Ok(()) }
//! ```
//!
//! All SQL is in `ratchet-store-sql`; this crate has the connections, the types of values, the classes of errors, and
//! [`SubmitIn`] and [`CompleteIn`] for a caller's own transaction.

mod conn;
mod driver;
mod error;
mod in_transaction;
mod options;
mod store;

pub use in_transaction::{CompleteIn, SubmitIn};
pub use options::MysqlOptions;
pub use ratchet_store_sql::Counts;
/// The driver, in the version whose connections this crate takes.
pub use sqlx;
pub use store::{Mysql, MysqlStore};

/// A connection as `ratchet-store-sql` sees it, for tests of query plans.
#[doc(hidden)]
pub fn conn(conn: &mut sqlx::MySqlConnection) -> impl ratchet_store_sql::Conn + '_ {
    in_transaction::session(conn)
}
