//! What the stores on a database server have in common: connections on a runtime of the store's own, transactions that are
//! tried again when the database rolled them back, heartbeats on a connection apart.
//!
//! A driver says how to connect and how to run one statement ([`Driver`]); the SQL is in `ratchet-store-sql`.

mod driver;
mod kept;
mod pool;
mod heartbeat;
mod thread;

pub use driver::Driver;
pub use pool::{ConnectionPool, PoolLimits};
pub use thread::StoreThread;
