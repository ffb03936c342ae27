//! Stores that break a promise on purpose, to prove that a run notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ratchet_conformance::broken::{BrokenStore, Flaw};
use ratchet_core::store::{StoreDecorator, Turn};
use ratchet_core::{Change, ClaimRequest, Settled, Settlement, Store, StoreError};

/// The promise that a store breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Broken {
    /// The store accepts a result whatever its fence.
    Fences,
    /// The store drops a job of a dead node instead of rescuing it.
    Rescue,
    /// The store declares living nodes dead.
    Grace,
    /// The store reports a success as written and does not write it.
    Settling,
}

impl Broken {
    /// Its name as an argument of `chaos-node`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fences => "fences",
            Self::Rescue => "rescue",
            Self::Grace => "grace",
            Self::Settling => "settling",
        }
    }

    /// Breaks a store.
    pub fn over(self, good: Arc<dyn Store>) -> Arc<dyn Store> {
        match self {
            Self::Fences => Arc::new(BrokenStore::new(good, Flaw::NoFence)),
            Self::Grace => Arc::new(BrokenStore::new(good, Flaw::NoGrace)),
            Self::Rescue => Arc::new(Dropping { inner: good, drops: Drops::Rescued }),
            Self::Settling => Arc::new(Dropping { inner: good, drops: Drops::Successes(AtomicU64::new(0)) }),
        }
    }
}

/// One in this number of successes is lost: two nodes with some jobs are sure to meet one.
const LOST_SUCCESS: u64 = 8;

/// A store that reports some settlements as applied without applying them.
#[derive(Debug)]
struct Dropping {
    inner: Arc<dyn Store>,
    drops: Drops,
}

#[derive(Debug)]
enum Drops {
    /// Jobs that are to be rescued are deleted.
    Rescued,
    /// Some successes are lost. The store counts them.
    Successes(AtomicU64),
}

impl Dropping {
    async fn drops(&self, settlement: &Settlement) -> Result<bool, StoreError> {
        match (&self.drops, &settlement.change) {
            (Drops::Rescued, Change::Rescue { .. }) => {
                self.inner.cancel(settlement.fence.job_id).await?;
                self.inner.delete(settlement.fence.job_id).await?;
                Ok(true)
            }
            (Drops::Successes(seen), Change::Succeed { .. }) => {
                Ok(seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOST_SUCCESS))
            }
            _ => Ok(false),
        }
    }
}

impl StoreDecorator for Dropping {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError> {
        let (mut kept, mut dropped) = (Vec::new(), Vec::new());
        for settlement in settlements {
            let drops = self.drops(settlement).await?;
            dropped.push(drops);
            if !drops {
                kept.push(settlement.clone());
            }
        }
        let mut turn = self.inner().settle_and_claim(&kept, claim).await?;
        let mut settled = turn.settled.into_iter();
        let answer = |dropped: bool| if dropped { Some(Settled::Applied) } else { settled.next() };
        turn.settled = dropped.into_iter().filter_map(answer).collect();
        Ok(turn)
    }
}
