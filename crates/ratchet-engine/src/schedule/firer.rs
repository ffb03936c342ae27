use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::node::NodeRecord;
use ratchet_core::recurring::{ArchiveReason, RecurringFilter};
use ratchet_core::store::Fired;
use ratchet_core::{JobId, NodeId, Store, StoreError};
use tokio::sync::{Notify, watch};

use crate::client::Client;
use crate::deadline::within;
use crate::pulse::Standing;

/// Fires schedules that are due. Every node has one; whoever holds the lease does the work, and if two think that they do, each
/// instant still fires once.
pub(crate) struct Firer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) changed: Arc<Notify>,
    pub(crate) deadline: Duration,
}

const LEASE: &str = "recurring";
const LEASE_TTL: Duration = Duration::from_secs(10);
/// How often a node looks, if it knows of nothing that is due sooner.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How soon a node looks again whether another one has fired what is due.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Schedules that are fired in one transaction.
const TOGETHER: usize = 50;
/// Transactions in a row before others may have the lease.
const ROUNDS_MAX: usize = 100;
/// How often schedules are looked for that no node declares any more, and how long they must have been left alone.
const RETIRE_EVERY: Duration = Duration::from_mins(1);
const RETIRE_AFTER: Duration = Duration::from_mins(2);

impl Firer {
    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let mut failures: u32 = 0;
        let mut retire_at = tokio::time::Instant::now() + RETIRE_EVERY;
        loop {
            let wait = match self.look().await {
                Ok(wait) => {
                    failures = 0;
                    wait
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    if failures.is_power_of_two() {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "firing schedules failed; trying again"
                        );
                    }
                    LOOK_AGAIN.saturating_mul(1 << failures.min(6)).min(PAUSE_MAX)
                }
            };
            if tokio::time::Instant::now() >= retire_at {
                retire_at = tokio::time::Instant::now() + RETIRE_EVERY;
                if let Err(error) = self.retire().await {
                    tracing::warn!(error = &error as &dyn std::error::Error, "retiring schedules failed");
                }
            }
            let _ = tokio::time::timeout(wait, self.changed.notified()).await;
        }
    }

    /// Fires what is due, if this is the node that does; says how long to wait then.
    async fn look(&self) -> Result<Duration, StoreError> {
        let next = within(self.deadline, "asking for the next fire", self.store.next_fire()).await?;
        match next {
            None => Ok(LOOK_EVERY),
            Some(wait) if !wait.is_zero() => Ok(wait.min(LOOK_EVERY)),
            Some(_) => {
                let Some(node) = self.lease().await? else { return Ok(LOOK_AGAIN) };
                self.fire(node).await?;
                Ok(Duration::ZERO)
            }
        }
    }

    /// The right to do the work, if nobody else has it.
    async fn lease(&self) -> Result<Option<NodeId>, StoreError> {
        let standing = self.standing.borrow().clone();
        if standing.fenced {
            return Ok(None);
        }
        let asked = self.store.acquire_lease(LEASE, standing.node, LEASE_TTL);
        let held = within(self.deadline, "asking for the lease of schedules", asked).await?;
        Ok(held.then_some(standing.node))
    }

    async fn fire(&self, node: NodeId) -> Result<(), StoreError> {
        for round in 0..ROUNDS_MAX {
            let asked = self.store.due_recurring(TOGETHER);
            let (now, due) = within(self.deadline, "looking for schedules that are due", asked).await?;
            let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
            if firings.is_empty() {
                return Ok(());
            }
            let fired = self.store.fire_recurring(&firings);
            let fired = within(self.deadline, "firing schedules", fired).await?;
            let mut jobs = 0;
            for (firing, fired) in firings.iter().zip(fired) {
                if let Fired::Done { jobs: stored, skipped } = fired {
                    jobs += stored;
                    tracing::debug!(schedule = %firing.id, jobs = stored, skipped, "a schedule fired");
                }
            }
            if jobs > 0 {
                self.client.fired(&firings);
            }
            if due.len() < TOGETHER {
                return Ok(());
            }
            if round % 10 == 9 && self.lease().await? != Some(node) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends declared schedules that no live node declares any more.
    ///
    /// A node says in its registration what it declares, and declares it after that; a schedule that was declared a moment
    /// ago is left alone. So one that a starting node counts on is not taken from it.
    async fn retire(&self) -> Result<(), StoreError> {
        let filter = RecurringFilter { declared: Some(true), ..RecurringFilter::default() };
        let mut after = None;
        let Some(node) = self.lease().await? else { return Ok(()) };
        loop {
            let asked = self.store.list_recurring(&filter, after, 100);
            let page = within(self.deadline, "looking for declared schedules", asked).await?;
            let nodes = within(self.deadline, "reading nodes", self.store.nodes()).await?;
            let wanted: BTreeSet<JobId> =
                nodes.iter().filter(|node| node.dead_at.is_none()).flat_map(declared_by).collect();
            for one in page.items.iter().filter(|one| !wanted.contains(&one.id)) {
                let asked = self.store.cancel_recurring(one.id, ArchiveReason::Retired, Some(RETIRE_AFTER));
                if within(self.deadline, "retiring a schedule", asked).await? {
                    tracing::info!(schedule = %one.id, job.kind = %one.spec.kind, "no live node declares this schedule any more: retired");
                }
            }
            after = page.next;
            if after.is_none() || self.lease().await? != Some(node) {
                return Ok(());
            }
        }
    }
}

/// The schedules that a node declares, by its registration.
fn declared_by(node: &NodeRecord) -> Vec<JobId> {
    #[derive(serde::Deserialize, Default)]
    struct Info {
        #[serde(default)]
        schedules: Vec<JobId>,
    }
    node.info.decode::<Info>().unwrap_or_default().schedules
}
