//! Ending the wait for signals that do not come in time.

use std::time::{Duration, Instant};

use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::{SignalKey, StoreError};

use crate::node::context::NodeContext;
use crate::observe::events::JobEventKind;
use crate::observe::stats::Loop;
use crate::upkeep::heartbeat::Standing;
use crate::upkeep::lease::{self, KeptLease, Lease};
use crate::upkeep::{Upkeep, spread};

/// How long the lease lasts if its holder dies.
const LEASE_TTL: Duration = Duration::from_secs(15);
/// How often the lease is renewed, and asked for by the others.
const LEASE_EVERY: Duration = Duration::from_secs(5);
/// How often waits are looked at: it costs one read of an index.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Waits that are ended in one transaction.
const TOGETHER: usize = 500;
/// Transactions in one look; what is left waits for the next.
const ROUNDS_MAX: usize = 100;
/// How often the keys of signals are swept, and how many in one transaction.
const SWEEP_EVERY: Duration = Duration::from_mins(1);
const SWEEP_TOGETHER: usize = 1_000;

pub(crate) struct SignalLimit {
    node: NodeContext,
    lease: KeptLease,
    sweep: Instant,
    /// Where the next sweep goes on.
    swept: Option<SignalKey>,
}

impl Upkeep for SignalLimit {
    const LOOP: Loop = Loop::Signals;

    async fn look(&mut self, standing: &Standing) -> Result<Duration, StoreError> {
        if self.lease.keep(standing.node).await? {
            self.end_waits(Instant::now()).await?;
        }
        Ok(spread(self.node.timing.scan.min(LOOK_EVERY)))
    }
}

impl SignalLimit {
    pub(crate) fn new(node: NodeContext) -> Self {
        let lease = Lease { store: node.store.clone(), name: lease::SIGNALS, ttl: LEASE_TTL };
        Self { lease: KeptLease::new(lease, LEASE_EVERY), node, sweep: Instant::now() + SWEEP_EVERY, swept: None }
    }

    async fn end_waits(&mut self, now: Instant) -> Result<(), StoreError> {
        for _ in 0..ROUNDS_MAX {
            if !self.expire().await? {
                break;
            }
        }
        if now >= self.sweep {
            self.swept = self.node.store.sweep_signals(self.swept.as_ref(), SWEEP_TOGETHER).await?.next;
            // Further keys follow at the next look, until all were seen.
            if self.swept.is_none() {
                self.sweep = now + SWEEP_EVERY;
            }
        }
        Ok(())
    }

    /// Ends some waits; says whether there may be more.
    async fn expire(&self) -> Result<bool, StoreError> {
        let expired = self.node.store.expire(TOGETHER).await?;
        for job in &expired.jobs {
            tracing::debug!(job.id = %job.id, job.kind = %job.spec.kind, "its signal did not come in time");
            self.node.client.publish(job, JobEventKind::SignalTimedOut);
            let error = job.last_error.clone().unwrap_or_default();
            let reason = DeadLetterReason::NeverRan;
            self.node.client.publish(job, JobEventKind::DeadLettered { error, attempt: job.attempts, reason });
        }
        self.node.client.followed(&expired.followed, None);
        // Callbacks of the failed and branches for their failure.
        let callbacks = expired.jobs.iter().filter_map(|job| job.on_failure.as_ref()).map(|spec| spec.priority);
        let branches = expired.followed.iter().map(|job| job.priority);
        if let Some(priority) = callbacks.chain(branches).max() {
            self.node.client.wake().work();
            self.node.client.announce(priority);
        }
        Ok(expired.more)
    }
}
