//! The store on PostgreSQL, shared by any number of nodes.

pub use ratchet_store_postgres::CompleteIn;
pub use ratchet_store_postgres::PostgresOptions;
pub use ratchet_store_postgres::PostgresStore;
pub use ratchet_store_postgres::SubmitIn;
/// The driver, in the version whose connections [`SubmitIn`] and [`CompleteIn`] take.
pub use ratchet_store_postgres::sqlx;
