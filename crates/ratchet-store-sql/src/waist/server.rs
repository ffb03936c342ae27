//! What kind of server it is.

use ratchet_core::StoreError;

use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;

pub(crate) const STATEMENTS: &[Stmt] = &[VERSION];

/// Whether a server that speaks MySQL's protocol is a MariaDB.
pub async fn is_mariadb(conn: &mut dyn Conn) -> Result<bool, StoreError> {
    match conn.row(&VERSION, vec![]).await? {
        Some(row) => Ok(row.fields().text("version")?.contains("MariaDB")),
        None => Ok(false),
    }
}

const VERSION: Stmt = Stmt::only_mysql("asking for the server's version", "SELECT VERSION() AS version");
