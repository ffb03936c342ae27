//! The store on MySQL 8 and MariaDB, shared by any number of nodes.

pub use ratchet_store_mysql::CompleteIn;
pub use ratchet_store_mysql::MysqlOptions;
pub use ratchet_store_mysql::MysqlStore;
pub use ratchet_store_mysql::SubmitIn;
/// The driver, in the version whose connections [`SubmitIn`] and [`CompleteIn`] take.
pub use ratchet_store_mysql::sqlx;
