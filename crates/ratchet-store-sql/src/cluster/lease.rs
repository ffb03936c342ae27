//! Leases of cluster singletons.

use std::time::Duration;

use ratchet_core::{NodeId, StoreError};

use crate::submit::all_stored;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[RENEW, ACQUIRE, RELEASE];

// The time since when it is held comes first: assignments on MySQL see each other in their order.
const RENEW: Stmt = Stmt::shared(
    "renewing a lease",
    "UPDATE scheduler_lock SET locked_at = CASE WHEN locked_by = ? THEN locked_at ELSE /*now*/ END, locked_by = ?, \
     expires_at = /*in:?*/ WHERE lock_name = ? AND (locked_by = ? OR expires_at <= /*now*/)",
);

const ACQUIRE: Stmt = Stmt::shared(
    "taking a lease",
    "INSERT INTO scheduler_lock (lock_name, locked_by, locked_at, expires_at) VALUES (?, ?, /*now*/, /*in:?*/) \
     /*or_nothing*/",
);

/// Takes the lease for `ttl`, or renews it if `owner` holds it; `false` if another node does.
pub(crate) async fn acquire(conn: &mut dyn Conn, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
    let values = vec![owner.into(), owner.into(), Value::micros(ttl), name.into(), owner.into()];
    if conn.run(&RENEW, values).await? == 1 {
        return Ok(true);
    }
    all_stored(conn.run(&ACQUIRE, vec![name.into(), owner.into(), Value::micros(ttl)]).await, 1)
}

const RELEASE: Stmt =
    Stmt::shared("giving up a lease", "DELETE FROM scheduler_lock WHERE lock_name = ? AND locked_by = ?");

/// Gives the lease up, if `owner` still holds it.
pub(crate) async fn release(conn: &mut dyn Conn, name: &str, owner: NodeId) -> Result<(), StoreError> {
    conn.run(&RELEASE, vec![name.into(), owner.into()]).await?;
    Ok(())
}
