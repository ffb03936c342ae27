use std::time::Duration;

use async_trait::async_trait;

use crate::claim::{Claim, ClaimRequest};
use crate::error::StoreError;
use crate::settlement::{Followed, Settled, Settlement};

/// The hot path: settling ended attempts and claiming due jobs.
#[async_trait]
pub trait TurnStore: Send + Sync {
    /// Settles ended attempts, then claims into the free slots, atomically: all of it happens or none.
    ///
    /// The least that a store guarantees:
    ///
    /// - Each settlement is guarded by its fence and by the legal source states. One that no longer matches changes nothing, is
    ///   reported as [`Settled::Conflict`] and does not affect the others. A settlement that may have been written by an
    ///   earlier call whose reply was lost is recognized by its attempt's record.
    /// - The outcome and its effects are one: released business key, attempt, alert, callbacks, released or canceled
    ///   dependents, counted batches, ended permits. Effects follow only from jobs that really changed.
    /// - Claims are listed pool by pool, each in the exact order of effective priority, scheduled time and id. Only due PENDING
    ///   jobs of the pool's kinds in queues that are not paused are claimed; a job on probation only if asked for, and then at
    ///   most one.
    /// - Concurrent calls claim disjoint sets. A job that another call is claiming or changing may be left out: waiting for
    ///   it is not allowed to block a claim.
    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError>;

    /// Returns the time, by the database's clock, until the next job that this request could claim becomes due: zero if one
    /// is due already, `None` if none waits.
    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError>;
}

/// The result of one turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// One entry per settlement, in order.
    pub settled: Vec<Settled>,
    /// The claimed jobs: pool by pool, in claim order within each.
    pub claimed: Vec<Claim>,
    /// The jobs whose place changed because the settled ones ended.
    pub followed: Vec<Followed>,
}
