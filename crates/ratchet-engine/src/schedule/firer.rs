use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::store::Fired;
use ratchet_core::{JobId, NodeId, StoreError};
use tokio::sync::Notify;
use tracing::Instrument as _;

use super::declarations::Declarations;
use super::retire::Retirement;
use crate::node::context::NodeContext;
use crate::observe::stats::Loop;
use crate::upkeep::Upkeep;
use crate::upkeep::heartbeat::Standing;
use crate::upkeep::lease::{self, Lease};

/// Fires schedules that are due. Every node has one; whoever holds the lease does the work, and if two think that they do, each
/// instant still fires once.
pub(crate) struct Firer {
    node: NodeContext,
    lease: Lease,
    changed: Arc<Notify>,
    declarations: Declarations,
    retirement: Retirement,
}

const LEASE_TTL: Duration = Duration::from_secs(10);
/// How often a node looks, if it knows of nothing that is due sooner.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How soon a node looks again whether another one has fired what is due.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Schedules that are fired in one transaction.
const TOGETHER: usize = 50;
/// Transactions in a row before others may have the lease.
const ROUNDS_MAX: usize = 100;

impl Upkeep for Firer {
    const LOOP: Loop = Loop::Schedules;

    async fn look(&mut self, standing: &Standing) -> Result<Duration, StoreError> {
        let node = standing.node;
        // Firing goes on, whatever comes of these.
        if let Err(error) = self.declarations.look(node).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "declaring schedules again failed; trying again");
        }
        if let Err(error) = self.retirement.look(node).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "retiring schedules failed; trying again");
        }
        let next = self.node.store.next_fire().await?;
        match next {
            None => Ok(LOOK_EVERY),
            Some(wait) if !wait.is_zero() => Ok(wait.min(LOOK_EVERY)),
            Some(_) if !self.lease.hold(node).await? => Ok(LOOK_AGAIN),
            Some(_) => {
                self.fire(node).await?;
                Ok(Duration::ZERO)
            }
        }
    }

    async fn wait(&self, wait: Duration) {
        let _ = tokio::time::timeout(wait, self.changed.notified()).await;
    }
}

impl Firer {
    pub(crate) fn new(node: NodeContext, declarations: Declarations) -> Self {
        let lease = Lease { store: node.store.clone(), name: lease::SCHEDULES, ttl: LEASE_TTL };
        Self {
            changed: node.client.schedules_notice().clone(),
            retirement: Retirement::new(node.store.clone(), node.client.clone(), lease.clone()),
            node,
            lease,
            declarations,
        }
    }

    async fn fire(&self, node: NodeId) -> Result<(), StoreError> {
        for round in 0..ROUNDS_MAX {
            let (now, due) = self.node.store.due_schedules(TOGETHER).await?;
            let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
            if firings.is_empty() {
                return Ok(());
            }
            let span = tracing::debug_span!("job.fire", schedules = firings.len());
            let fired = self.node.store.fire_schedules(&firings).instrument(span).await?;
            let of_id: HashMap<JobId, _> = due.iter().map(|one| (one.id, one)).collect();
            let mut jobs = 0;
            for (firing, fired) in firings.iter().zip(fired) {
                if let Fired::Done { jobs: stored, skipped } = fired {
                    jobs += stored;
                    tracing::debug!(schedule = %firing.id, jobs = stored, skipped, "a schedule fired");
                    if let Some(schedule) = of_id.get(&firing.id) {
                        self.node.client.publish_fired(schedule, stored, skipped);
                    }
                }
            }
            if jobs > 0 {
                self.node.client.fired(&firings);
            }
            if due.len() < TOGETHER {
                return Ok(());
            }
            if round % 10 == 9 && !self.lease.hold(node).await? {
                return Ok(());
            }
        }
        Ok(())
    }
}
