//! Rescuing the jobs of dead nodes.

use std::time::Duration;

use ratchet_core::record::AttemptTiming;
use ratchet_core::{Claim, Decision, NodeId, Outcome, Settled, Settlement, StoreError, Verdicts, clock, decide};

use tracing::Instrument as _;

use crate::node::context::NodeContext;
use crate::node::ids::new_job_id;
use crate::observe::job_metrics::Recorder as _;
use crate::observe::settled_events::settled_events;
use crate::observe::stats::Loop;
use crate::upkeep::heartbeat::Standing;
use crate::upkeep::{Upkeep, spread};

/// Orphans that are rescued in one transaction.
const TOGETHER: usize = 200;
/// Transactions in one look; what is left waits for the next.
const ROUNDS_MAX: usize = 100;

pub(crate) struct Rescuer {
    node: NodeContext,
}

impl Upkeep for Rescuer {
    const LOOP: Loop = Loop::Rescue;

    async fn look(&mut self, standing: &Standing) -> Result<Duration, StoreError> {
        // A node may itself have been away: for a full grace it lets the others show that they live.
        if standing.alive_since.elapsed() >= self.node.timing.grace {
            self.rescue_all(standing.node).await?;
        }
        Ok(spread(self.node.timing.scan))
    }
}

impl Rescuer {
    pub(crate) fn new(node: NodeContext) -> Self {
        Self { node }
    }

    async fn rescue_all(&self, observer: NodeId) -> Result<(), StoreError> {
        for _ in 0..ROUNDS_MAX {
            let orphans = self.node.store.orphans(observer, self.node.timing.grace, TOGETHER).await?;
            for node in &orphans.declared_dead {
                tracing::warn!(dead = %node, "a node has not been heard of for the grace and is declared dead");
            }
            self.rescue(&orphans.jobs).await?;
            if orphans.jobs.len() < TOGETHER {
                break;
            }
        }
        Ok(())
    }

    async fn rescue(&self, orphans: &[Claim]) -> Result<(), StoreError> {
        let settlements: Vec<Settlement> = orphans.iter().filter_map(crashed).collect();
        if settlements.is_empty() {
            return Ok(());
        }
        let span = tracing::debug_span!("job.rescue", jobs = settlements.len());
        let turn = self.node.store.settle_and_claim(&settlements, None).instrument(span).await?;
        for ((orphan, settlement), settled) in orphans.iter().zip(&settlements).zip(turn.settled) {
            // A conflict means that its owner, or another rescuer, was first.
            if settled == Settled::Applied {
                self.node.counters.rescued.add(1);
                tracing::warn!(
                    job.id = %orphan.job.id, job.kind = %orphan.job.spec.kind, dead = %orphan.fence.node,
                    event = %settlement.change.event(), "rescued the job of a dead node"
                );
                let bus = self.node.client.bus();
                let events = settled_events(&orphan.job, settlement, None, || bus.now());
                bus.meter().settled(&orphan.job, settlement, &events);
                bus.publish_settled(&orphan.job, settlement, events);
            }
        }
        self.node.client.followed(&turn.followed, None);
        self.node.client.wake_for(&turn.followed);
        self.node.client.wake().work();
        Ok(())
    }
}

fn crashed(orphan: &Claim) -> Option<Settlement> {
    let job = &orphan.job;
    let started_at = job.picked_at.unwrap_or(job.scheduled_time);
    // Nobody knows when it ended; its begin is all that is certain.
    let timing = AttemptTiming {
        started_at,
        ended_at: started_at,
        duration: Duration::ZERO,
        queue_wait: clock::elapsed(job.scheduled_time, started_at),
    };
    decide(Decision {
        job,
        fence: orphan.fence,
        outcome: Outcome::Crashed,
        verdicts: Verdicts::default(),
        timing,
        callback_id: new_job_id,
    })
}
