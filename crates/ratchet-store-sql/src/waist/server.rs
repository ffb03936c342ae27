//! Which server speaks MySQL's protocol.

use ratchet_core::StoreError;

use crate::waist::conn::Conn;
use crate::waist::dialect::Dialect;
use crate::waist::stmt::Stmt;

pub(crate) const STATEMENTS: &[Stmt] = &[VERSION];

/// Returns the dialect of a server that speaks MySQL's protocol.
pub async fn identify(conn: &mut dyn Conn) -> Result<Dialect, StoreError> {
    let row = conn.row(&VERSION, vec![]).await?;
    let is_mariadb =
        row.map_or(Ok(false), |row| Ok::<_, StoreError>(row.fields().text("version")?.contains("MariaDB")))?;
    Ok(if is_mariadb { Dialect::Mariadb } else { Dialect::Mysql })
}

const VERSION: Stmt = Stmt::only_mysql("asking for the server's version", "SELECT VERSION() AS version");
