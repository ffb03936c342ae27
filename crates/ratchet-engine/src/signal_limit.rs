//! Ending the wait for signals that do not come in time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::{NodeId, SignalKey, Store, StoreError};
use tokio::sync::watch;

use crate::client::Client;
use crate::deadline::within;
use crate::events::JobEventKind;
use crate::pulse::Standing;

/// One node of a cluster does it, whoever holds this lease.
pub(crate) const LEASE: &str = "signals";
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
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) scan: Duration,
    pub(crate) deadline: Duration,
}

/// What the loop remembers from look to look.
struct Round {
    /// Who holds the lease through us, and when to renew it.
    holder: Option<NodeId>,
    lease: Instant,
    sweep: Instant,
    /// Where the next sweep goes on.
    swept: Option<SignalKey>,
}

impl SignalLimit {
    /// Looks for waits that are over until the task is dropped.
    pub(crate) async fn run(self) {
        let mut failures = 0_u32;
        let now = Instant::now();
        let mut round = Round { holder: None, lease: now, sweep: now + SWEEP_EVERY, swept: None };
        loop {
            let every = self.scan.min(LOOK_EVERY);
            // Spread a little, so that many nodes do not ask at the same moment.
            let jitter = every.mul_f64(fastrand::f64() / 10.0);
            tokio::time::sleep(every + jitter + LOOK_EVERY * failures.min(10)).await;
            let standing = self.standing.borrow().clone();
            if standing.fenced {
                continue;
            }
            match self.look(standing.node, &mut round).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    round.holder = None;
                    if failures.is_power_of_two() {
                        tracing::warn!(error = &error as &dyn std::error::Error, "ending waits for signals failed");
                    }
                }
            }
        }
    }

    async fn look(&self, node: NodeId, round: &mut Round) -> Result<(), StoreError> {
        let now = Instant::now();
        if now >= round.lease || round.holder.is_some_and(|holder| holder != node) {
            let asked = self.store.acquire_lease(LEASE, node, LEASE_TTL);
            round.holder = within(self.deadline, "taking the lease for signals", asked).await?.then_some(node);
            round.lease = now + LEASE_EVERY;
        }
        if round.holder.is_none() {
            return Ok(());
        }
        for _ in 0..ROUNDS_MAX {
            if !self.expire().await? {
                break;
            }
        }
        if now >= round.sweep {
            let asked = self.store.sweep_signals(round.swept.as_ref(), SWEEP_TOGETHER);
            round.swept = within(self.deadline, "sweeping the keys of signals", asked).await?.next;
            // Further keys follow at the next look, until all were seen.
            if round.swept.is_none() {
                round.sweep = now + SWEEP_EVERY;
            }
        }
        Ok(())
    }

    /// Ends some waits; says whether there may be more.
    async fn expire(&self) -> Result<bool, StoreError> {
        let expired = within(self.deadline, "ending waits for signals", self.store.expire(TOGETHER)).await?;
        for job in &expired.jobs {
            tracing::debug!(job.id = %job.id, job.kind = %job.spec.kind, "its signal did not come in time");
            self.client.publish(job, JobEventKind::SignalTimedOut);
            let error = job.last_error.clone().unwrap_or_default();
            let reason = DeadLetterReason::NeverRan;
            self.client.publish(job, JobEventKind::DeadLettered { error, attempt: job.attempts, reason });
        }
        self.client.followed(&expired.followed, None);
        // Callbacks of the failed and branches for their failure.
        let callbacks = expired.jobs.iter().filter_map(|job| job.on_failure.as_ref()).map(|spec| spec.priority);
        let branches = expired.followed.iter().map(|job| job.priority);
        if let Some(priority) = callbacks.chain(branches).max() {
            self.client.wake().work();
            self.client.announce(priority);
        }
        Ok(expired.more)
    }
}
