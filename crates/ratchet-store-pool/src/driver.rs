use std::fmt::Debug;
use std::future::Future;

use ratchet_core::StoreError;
use ratchet_store_sql::Conn;

/// How to reach one database server.
pub trait Driver: Debug + Send + Sync + 'static {
    /// An open connection; dropping it closes it.
    type Connection: Debug + Send + 'static;

    /// Opens a connection on the runtime that it is called on.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, StoreError>> + Send;

    /// A connection for the length of a few statements. A statement without values goes as plain text, so that it can be
    /// one that cannot be prepared.
    fn session<'c>(&'c self, connection: &'c mut Self::Connection) -> impl Conn + 'c;

    /// What begins a transaction.
    fn begin(&self) -> &'static str {
        "BEGIN"
    }

    /// Whether statements outside of a transaction may end up on different connections to the server.
    fn is_pooled(&self) -> bool {
        false
    }
}
