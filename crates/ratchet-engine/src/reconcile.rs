//! Comparing what runs here with what the store says.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use ratchet_core::store::Progress;
use ratchet_core::{Change, Fence, Settled, Settlement, StoreError};

use tracing::Instrument as _;

use crate::deadline::within;
use crate::pump::Pump;
use crate::run::Pull;
use crate::turn::pause_after;

/// An idle node reconciles this many times less often.
const IDLE_FACTOR: u32 = 10;

impl Pump {
    /// Compares, and plans the next time: from the end of this one on, so that a slow database has time for other things.
    pub(super) async fn reconcile(&mut self) {
        let failures = match self.compare().await {
            Ok(()) => 0,
            Err(error) => {
                let failures = self.timers.reconcile_failures.saturating_add(1);
                if failures.is_power_of_two() {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        failures,
                        "comparing what runs here with the store failed; trying again"
                    );
                }
                failures
            }
        };
        self.timers.reconcile_failures = failures;
        // A node without work looks too, though less often: a claim may have been committed after its deadline.
        let idle = self.running.is_empty() && !self.timers.claim_uncertain;
        let pause = match failures {
            0 if idle => self.config.reconcile * IDLE_FACTOR,
            0 => self.config.reconcile,
            _ => self.config.reconcile.max(pause_after(failures - 1)),
        };
        self.timers.reconcile = Instant::now() + pause;
    }

    /// What runs here but not in the store was cancelled or given away: its handler is told to end. What the store
    /// says we run but we do not is the trace of a lost reply to a claim: it goes back. One query for all.
    async fn compare(&mut self) -> Result<(), StoreError> {
        let node = self.standing.borrow().node;
        let progress: Vec<Progress> = self
            .running
            .iter()
            .filter(|(fence, _)| fence.node == node)
            .filter_map(|(fence, running)| {
                let fraction = running.ctx.fresh_progress()?;
                Some(Progress { job_id: fence.job_id, version: fence.version, fraction })
            })
            .collect();
        let span =
            tracing::debug_span!("node.reconcile", %node, running = self.running.len(), progress = progress.len());
        let asked = self.store.reconcile(node, &progress).instrument(span);
        let stored = within(self.config.store_deadline, "reconciling", asked).await?;
        for written in &progress {
            let fence = Fence { job_id: written.job_id, version: written.version, node };
            if let Some(running) = self.running.get(&fence) {
                running.ctx.progress_written(written.fraction);
            }
        }
        let stored: HashSet<Fence> =
            stored.into_iter().map(|r| Fence { job_id: r.job_id, version: r.version, node }).collect();
        for (fence, running) in &self.running {
            if fence.node == node && !stored.contains(fence) {
                running.leash.pull(Pull::Revoked);
            }
        }
        let known =
            |fence: &Fence| self.running.contains_key(fence) || self.settlements.iter().any(|s| s.fence == *fence);
        let lost: Vec<Fence> = stored.into_iter().filter(|fence| !known(fence)).collect();
        self.hand_back(&lost).await
    }

    async fn hand_back(&mut self, lost: &[Fence]) -> Result<(), StoreError> {
        let settlements: Vec<Settlement> = lost
            .iter()
            .map(|fence| {
                let change = Change::Defer { delay: Duration::ZERO };
                Settlement { ends_permit: true, ..Settlement::of(*fence, change) }
            })
            .collect();
        if settlements.is_empty() {
            self.timers.claim_uncertain = false;
            return Ok(());
        }
        let turn = self.store.turn(&settlements, None);
        let turn = within(self.config.store_deadline, "handing lost jobs back", turn).await?;
        let handed_back = turn.settled.iter().filter(|settled| **settled == Settled::Applied).count();
        tracing::warn!(jobs = handed_back, "the reply to a claim was lost; its jobs were handed back");
        self.counters.lost_claims.add(handed_back);
        self.timers.claim_uncertain = false;
        self.timers.poll = Instant::now();
        Ok(())
    }
}
