//! Leases of cluster singletons.

use std::time::Duration;

use ratchet_core::{NodeId, StoreError};

use crate::conn::Conn;
use crate::stmt::Stmt;
use crate::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[ACQUIRE, RELEASE];

const ACQUIRE: Stmt = Stmt::per_dialect(
    "taking a lease",
    "INSERT INTO scheduler_lock (lock_name, locked_by, locked_at, expires_at) VALUES (?, ?, /*now*/, /*now*/ + ?) \
     ON CONFLICT (lock_name) DO UPDATE SET locked_by = excluded.locked_by, expires_at = excluded.expires_at, \
     locked_at = CASE WHEN locked_by = excluded.locked_by THEN locked_at ELSE excluded.locked_at END \
     WHERE locked_by = excluded.locked_by OR expires_at <= excluded.locked_at",
);

/// Takes the lease for `ttl`, or renews it if `owner` holds it; `false` if another node does.
pub async fn acquire(conn: &mut dyn Conn, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
    Ok(conn.run(&ACQUIRE, vec![name.into(), owner.into(), Value::micros(ttl)]).await? == 1)
}

const RELEASE: Stmt =
    Stmt::shared("giving up a lease", "DELETE FROM scheduler_lock WHERE lock_name = ? AND locked_by = ?");

/// Gives the lease up, if `owner` still holds it.
pub async fn release(conn: &mut dyn Conn, name: &str, owner: NodeId) -> Result<(), StoreError> {
    conn.run(&RELEASE, vec![name.into(), owner.into()]).await?;
    Ok(())
}
