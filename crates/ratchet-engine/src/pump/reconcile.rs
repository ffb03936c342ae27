//! Comparing what runs here with what the store says.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use ratchet_core::store::Progress;
use ratchet_core::{Change, Fence, NodeId, Settled, Settlement, StoreError};

use tracing::Instrument as _;

use crate::pump::Pump;
use crate::run::CancelReason;

/// An idle node reconciles this many times less often.
const IDLE_FACTOR: u32 = 10;

impl Pump {
    /// Compares, and plans the next time: from the end of this one on, so that a slow database has time for other things.
    pub(super) async fn reconcile(&mut self) {
        let pause = match self.compare().await {
            Ok(()) => {
                self.reconcile_failures.clear();
                // A node without work compares too, though less often: a claim may have been committed after its deadline.
                let idle = self.running.is_empty() && !self.claim.uncertain;
                self.config.timing.reconcile * if idle { IDLE_FACTOR } else { 1 }
            }
            Err(error) => {
                let pause = self.reconcile_failures.count();
                if let Some(failures) = self.reconcile_failures.to_log() {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        failures,
                        "comparing what runs here with the store failed; trying again"
                    );
                }
                self.config.timing.reconcile.max(pause)
            }
        };
        self.timers.reconcile = Instant::now() + pause;
    }

    /// What runs here but not in the store was canceled or given away: its handler is told to end. What the store
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
        let stored = self.store.reconcile(node, &progress).instrument(span).await?;
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
                running.cancel.cancel(CancelReason::Revoked);
            }
        }
        let known = |fence: &Fence| {
            self.running.contains_key(fence) || self.unsettled.contains(fence) || self.flights.contains(fence)
        };
        let lost: Vec<Fence> = stored.into_iter().filter(|fence| !known(fence)).collect();
        // Read only if a claim may have been lost, or nothing else is to be done.
        let may_be_lost = self.claim.uncertain || self.running.is_empty();
        self.hand_back(&lost).await?;
        if may_be_lost { self.end_lost_permits(node).await } else { Ok(()) }
    }

    /// Ends the permits of attempts of which nothing runs here: their claim's reply was lost, and somebody has ended their job
    /// since, so that it cannot be handed back.
    async fn end_lost_permits(&mut self, node: NodeId) -> Result<(), StoreError> {
        let permits = self.store.permits_of(node).await?;
        let is_known = |fence: &Fence| {
            self.running.contains_key(fence)
                || self.held.contains(fence)
                || self.released.contains(fence)
                || self.unsettled.contains(fence)
                || self.flights.contains(fence)
        };
        let lost: Vec<Fence> = permits.into_iter().filter(|fence| !is_known(fence)).collect();
        self.released.extend(lost);
        Ok(())
    }

    async fn hand_back(&mut self, lost: &[Fence]) -> Result<(), StoreError> {
        let settlements: Vec<Settlement> = lost
            .iter()
            .map(|fence| {
                let change = Change::Defer { delay: Duration::ZERO };
                // The result of one that was given up could not be written, but its handler may run on.
                Settlement { ends_permit: !self.held.contains(fence), ..Settlement::of(*fence, change) }
            })
            .collect();
        if settlements.is_empty() {
            self.claim.uncertain = false;
            return Ok(());
        }
        let turn = self.store.settle_and_claim(&settlements, None).await?;
        let handed_back = turn.settled.iter().filter(|settled| **settled == Settled::Applied).count();
        tracing::warn!(jobs = handed_back, "the reply to a claim was lost; its jobs were handed back");
        self.counters.lost_claims.add(handed_back);
        self.claim.uncertain = false;
        self.timers.poll = Instant::now();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ratchet_core::claim::{Boost, ClaimRequest, Pool};
    use ratchet_core::node::{NodeInfo, NodeRegistration};
    use ratchet_core::store::{ClusterStore as _, ResourceStore as _, TurnStore as _};
    use ratchet_core::{JobState, Kind, MemoryStore, NodeName, QueueName, ResourceLimit};

    use crate::client::Client;
    use crate::pump::tests::overdue;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Print;

    impl crate::Job for Print {
        const KIND: &'static str = "print";
        type Output = ();
        async fn run(self, _ctx: crate::JobContext) -> Result<(), crate::Failure> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_job_that_is_handed_back_leaves_the_permit_to_a_handler_that_still_runs() {
        for runs in [true, false] {
            let store = MemoryStore::manual().0;
            let id = crate::new_node_id();
            let node = NodeRegistration { id, name: NodeName::new("node").unwrap(), info: NodeInfo::default() };
            store.register(&node).await.unwrap();
            store.set_resource(&ResourceLimit::new("printer", 1).unwrap()).await.unwrap();
            let job = Client::new(store.clone()).enqueue(Print).resource("printer").submit().await.unwrap();
            let pool = Pool { queue: QueueName::default(), kinds: [Kind::new("print").unwrap()].into(), free: 1 };
            let request = ClaimRequest { node: id, pools: vec![pool], limit: 1, probation: false, boost: Boost::OFF };
            let fence = store.settle_and_claim(&[], Some(&request)).await.unwrap().claimed[0].fence;
            let mut pump = overdue(store.clone(), id);
            pump.held.extend(runs.then_some(fence));
            pump.reconcile().await;
            assert_eq!(job.record().await.unwrap().state, JobState::Pending);
            assert_eq!(store.resources().await.unwrap()[0].in_use, u32::from(runs));
        }
    }
}
