//! One cycle of a node under load.

use ratchet_core::store::Turn;
use ratchet_core::{ClaimRequest, Fence, Settlement, StoreError};

use crate::claim::claim;
use crate::claim::permits;
use crate::settle::settle;
use crate::waist::conn::Conn;

/// Settles what has ended, then claims for the room there is; in this order, because the other one deadlocks.
pub async fn settle_and_claim(
    conn: &mut dyn Conn,
    settlements: &[Settlement],
    request: Option<&ClaimRequest>,
) -> Result<Turn, StoreError> {
    let (settled, followed) = settle(conn, settlements).await?;
    let ended: Vec<Fence> = settlements.iter().filter(|one| one.ends_permit).map(|one| one.fence).collect();
    permits::end(conn, &ended).await?;
    let claimed = match request {
        Some(request) => claim(conn, request).await?,
        None => Vec::new(),
    };
    Ok(Turn { settled, claimed, followed })
}
