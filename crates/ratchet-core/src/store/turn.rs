use std::time::Duration;

use async_trait::async_trait;

use crate::claim::{Claim, ClaimRequest};
use crate::error::StoreError;
use crate::settlement::{Followed, Settled, Settlement};

/// The hot path: settling what has ended and claiming what comes next.
#[async_trait]
pub trait TurnStore: Send + Sync {
    /// In one transaction: settles what has ended, then claims for the room there is.
    ///
    /// Each settlement is guarded by its fence and by the legal source states. One that no longer matches changes
    /// nothing and is reported as [`Settled::Conflict`]; it does not harm the others. Effects (business key released,
    /// attempt recorded, alert, callbacks, dependants released or cancelled) follow only from rows that really changed.
    ///
    /// Claims come pool by pool, in the exact order of effective priority, then scheduled time, then id within each. Only due
    /// PENDING jobs of the pool's kinds in unpaused queues are taken, and a job on probation only if asked for, and
    /// then at most one.
    async fn turn(&self, settlements: &[Settlement], claim: Option<&ClaimRequest>) -> Result<Turn, StoreError>;

    /// How long, by the database's clock, until the next job that this request could claim becomes due: zero if one is
    /// due already, `None` if none waits.
    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError>;
}

/// What one turn did.
#[derive(Debug, Default)]
pub struct Turn {
    /// One entry per settlement, in order.
    pub settled: Vec<Settled>,
    /// The jobs that were claimed: pool by pool, in claim order within each.
    pub claimed: Vec<Claim>,
    /// Jobs whose place changed because the settled ones ended.
    pub followed: Vec<Followed>,
}
