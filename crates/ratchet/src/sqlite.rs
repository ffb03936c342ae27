//! The embedded store: one SQLite file, shared by any number of processes on one machine.

pub use ratchet_store_sqlite::CompleteIn;
pub use ratchet_store_sqlite::SqliteOptions;
pub use ratchet_store_sqlite::SqliteStore;
pub use ratchet_store_sqlite::SubmitIn;
pub use ratchet_store_sqlite::Synchronous;
/// The driver, in the version whose connections [`SubmitIn`] and [`CompleteIn`] take.
pub use ratchet_store_sqlite::sqlx;
