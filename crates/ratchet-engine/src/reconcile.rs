//! Comparing what runs here with what the store says.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use ratchet_core::store::Progress;
use ratchet_core::{Change, Fence, NodeId, Settled, Settlement};

use tracing::Instrument as _;

use crate::deadline::within;
use crate::pump::Pump;
use crate::run::Pull;

/// An idle node reconciles this many times less often.
const IDLE_FACTOR: u32 = 10;

impl Pump {
    /// What runs here but not in the store was cancelled or given away: its handler is told to end. What the store
    /// says we run but we do not is the trace of a lost reply to a claim: it goes back. One query for all.
    pub(super) async fn reconcile(&mut self) {
        // A node without work looks too, though less often: a claim may have been committed after its deadline.
        let idle = self.running.is_empty() && !self.timers.claim_uncertain;
        let pause = if idle { self.config.reconcile * IDLE_FACTOR } else { self.config.reconcile };
        self.timers.reconcile = Instant::now() + pause;
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
        let stored = match within(self.config.store_deadline, "reconciling", asked).await {
            Ok(stored) => stored,
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "reconciling failed");
                return;
            }
        };
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
        self.hand_back(&lost).await;
        self.end_lost_permits(node).await;
    }

    /// Ends the permits of attempts of which nothing runs here: their claim's reply was lost, and somebody has ended their job
    /// since, so that it cannot be handed back.
    async fn end_lost_permits(&mut self, node: NodeId) {
        let asked = self.store.permits_of(node);
        let permits = match within(self.config.store_deadline, "reading permits", asked).await {
            Ok(permits) => permits,
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "reading permits failed");
                return;
            }
        };
        let is_known = |fence: &Fence| {
            self.running.contains_key(fence)
                || self.outliving.contains(fence)
                || self.released.contains(fence)
                || self.settlements.iter().any(|settlement| settlement.fence == *fence)
        };
        let lost: Vec<Fence> = permits.into_iter().filter(|fence| !is_known(fence)).collect();
        self.released.extend(lost);
    }

    async fn hand_back(&mut self, lost: &[Fence]) {
        let settlements: Vec<Settlement> = lost
            .iter()
            .map(|fence| {
                let change = Change::Defer { delay: Duration::ZERO };
                Settlement { ends_permit: true, ..Settlement::of(*fence, change) }
            })
            .collect();
        if settlements.is_empty() {
            self.timers.claim_uncertain = false;
            return;
        }
        let turn = self.store.turn(&settlements, None);
        match within(self.config.store_deadline, "handing lost jobs back", turn).await {
            Ok(turn) => {
                let handed_back = turn.settled.iter().filter(|settled| **settled == Settled::Applied).count();
                tracing::warn!(jobs = handed_back, "the reply to a claim was lost; its jobs were handed back");
                self.counters.lost_claims.add(handed_back);
                self.timers.claim_uncertain = false;
                self.timers.poll = Instant::now();
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "handing lost jobs back failed");
            }
        }
    }
}
