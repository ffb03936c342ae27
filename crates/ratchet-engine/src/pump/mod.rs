//! The heart of a node: one task that settles what has ended and claims what comes next.
//!
//! It alone knows which slots are taken and which jobs run here, so nothing of that needs a lock. This file is its loop: what is
//! due, in which order, and how long to wait. A [`turn`] settles and claims; [`attempts`] begin with a claim and end with a
//! message; [`reconcile`] compares them with the store.

mod turn;
mod attempts;
mod unsettled;
mod flights;
mod claim_state;
pub(crate) mod slots;
mod claim_filter;
mod reconcile;
pub(crate) mod polling;
pub(crate) mod wake;
mod timers;
mod failures;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratchet_core::{Fence, Store};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::guard;
use crate::job::inject::StateMap;
use crate::job_log::LogQueue;
use crate::node::config::Config;
use crate::node::context::NodeContext;
use crate::observe::job_metrics::BatchedMetrics;
use crate::observe::stats::{Counters, Loop};
use crate::pump::attempts::{Message, RunningAttempt, permit_of};
use crate::pump::claim_state::ClaimState;
use crate::pump::failures::Failures;
use crate::pump::flights::Flights;
use crate::pump::polling::{Poll, PollingStrategy};
use crate::pump::slots::SlotPools;
use crate::pump::timers::Timers;
use crate::pump::unsettled::Unsettled;
use crate::pump::wake::Wake;
use crate::run::{CancelReason, Runner};
use crate::upkeep::heartbeat::Standing;

/// The pump of a node, which [`run`](Pump::run) consumes. Its fields are open to the files of this folder alone.
pub(crate) struct Pump {
    store: Arc<dyn Store>,
    client: Client,
    wake: Arc<Wake>,
    runner: Arc<Runner>,
    states: Arc<StateMap>,
    logs: Arc<LogQueue>,
    config: Config,
    counters: Arc<Counters>,
    /// Metrics of jobs that this turn began or ended.
    metrics: BatchedMetrics,
    slots: SlotPools,
    strategy: Box<dyn PollingStrategy>,
    standing: watch::Receiver<Standing>,
    /// When a stopping node gives up on what still runs; `None` while it is not stopping.
    drain: watch::Receiver<Option<Instant>>,

    running: HashMap<Fence, RunningAttempt>,
    unsettled: Unsettled,
    /// Calls of the store that are under way.
    flights: Flights,
    /// Whether the store lets settling and claiming overlap.
    may_overlap: bool,
    /// Attempts that have ended without a settlement that ends their permits.
    released: Vec<Fence>,
    /// Attempts that have ended for everybody but their handlers, which were given up and run on with their permits.
    held: HashSet<Fence>,
    /// Whether there was no turn since the last reconcile.
    reconciled: bool,

    /// The tasks of all attempts, each until it is over: some end after their result was received.
    attempts: TaskTracker,
    messages: mpsc::Receiver<Message>,
    sender: mpsc::Sender<Message>,
    begun: Instant,
    timers: Timers,
    claim: ClaimState,
    settle_failures: Failures,
    claim_failures: Failures,
    reconcile_failures: Failures,
}

/// What a pump that has ended leaves to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShutdownLeftovers {
    /// Nothing, or only what any node can finish.
    Nothing,
    /// Permits of this node whose handlers may still run: whoever took the node from the cluster would end them.
    HeldPermits,
}

/// Maximum poll interval while a `submit_in` transaction may still be uncommitted.
const EXPECTING_POLL: Duration = Duration::from_millis(250);
/// A stopping node tries for so long to write what is left, and waits for so long for threads that hold permits.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// A stopping node waits for so long for the spans of its last attempts to close.
const LAST_SPANS: Duration = Duration::from_secs(1);
/// No strategy can make a node sleep for longer.
const POLL_MAX: Duration = Duration::from_hours(1);
/// The wait after a poll whose strategy panicked.
const POLL_AFTER_PANIC: Duration = Duration::from_secs(2);

/// With fewer slots than two groups of this size, calls do not overlap: twice as many statements cost more than is gained. On two
/// cores with PostgreSQL beside it, 20 slots drained 7,200 jobs a second with groups of ten and 11,400 without, 64 slots 17,000 and
/// 20,000, 200 slots 32,000 and 25,000.
const GROUP_MIN: usize = 64;

/// The part of a turn that one call of the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Settles and claims in one transaction.
    Both,
    /// Settles.
    Settle,
    /// Claims.
    Claim,
}

pub(crate) struct PumpParts {
    pub(crate) node: NodeContext,
    pub(crate) runner: Runner,
    pub(crate) states: Arc<StateMap>,
    pub(crate) logs: Arc<LogQueue>,
    pub(crate) config: Config,
    pub(crate) strategy: Box<dyn PollingStrategy>,
    pub(crate) drain: watch::Receiver<Option<Instant>>,
}

impl Pump {
    pub(crate) fn new(parts: PumpParts) -> Self {
        let PumpParts { node, runner, states, logs, config, strategy, drain } = parts;
        let NodeContext { store, client, counters, standing, .. } = node;
        let slots = SlotPools::new(&runner.registry, &config.queues);
        // Every running job sends one message, and a second if it holds something longer.
        let (sender, messages) = mpsc::channel(slots.total() * 2 + 16);
        counters.last_success.begin(Loop::Turn, client.now());
        let may_overlap = store.settles_beside_claims();
        let now = Instant::now();
        let reconcile = now + config.timing.reconcile;
        Self {
            store,
            wake: client.wake().clone(),
            client,
            runner: Arc::new(runner),
            states,
            logs,
            config,
            counters,
            metrics: BatchedMetrics::default(),
            slots,
            strategy,
            standing,
            drain,
            running: HashMap::new(),
            unsettled: Unsettled::default(),
            flights: Flights::default(),
            may_overlap,
            released: Vec::new(),
            held: HashSet::new(),
            reconciled: false,
            attempts: TaskTracker::new(),
            messages,
            sender,
            begun: now,
            timers: Timers::new(now, reconcile),
            claim: ClaimState::default(),
            settle_failures: Failures::default(),
            claim_failures: Failures::default(),
            reconcile_failures: Failures::default(),
        }
    }

    /// Runs until the node has drained.
    pub(crate) async fn run(mut self) -> ShutdownLeftovers {
        loop {
            while let Ok(message) = self.messages.try_recv() {
                self.receive(message);
            }
            self.heed_standing();
            self.heed_wakeups();
            self.counters.vitals.set_running(self.slots.taken());
            self.counters.vitals.set_taken(self.slots.taken_by_pool());
            if let Some(left) = self.drained() {
                self.attempts.close();
                // Whoever stops a node flushes its traces next.
                let _ = tokio::time::timeout(LAST_SPANS, self.attempts.wait()).await;
                return left;
            }
            let now = Instant::now();
            let next = self.next_part(now);
            // They take turns: however soon the next reconcile is wanted, it does not keep results from being written. It never
            // sees what a claim has taken and this node does not know yet.
            let compares = self.timers.reconcile <= now && !self.flights.claims();
            if compares && !(self.reconciled && next.is_some()) {
                self.reconciled = true;
                self.reconcile().await;
            } else if !self.released.is_empty() && self.timers.release <= now {
                self.release_permits().await;
            } else if let Some(part) = next {
                self.reconciled = false;
                self.begin(part, now);
            } else if self.timers.ask_due.is_some_and(|at| at <= now) && !self.flights.claims() {
                self.ask_next_due().await;
            } else {
                self.wait(now).await;
            }
        }
    }

    async fn wait(&mut self, now: Instant) {
        let until = self.next_deadline(now);
        tokio::select! {
            message = self.messages.recv() => {
                self.receive(message.expect("the pump holds a sender itself"));
            }
            (flight, answer) = self.flights.landed() => self.land(flight, answer).await,
            () = self.wake.notified() => {}
            () = tokio::time::sleep_until(until.into()) => {}
            // A sender that is gone has nothing more to say; the other branches go on.
            Ok(()) = self.standing.changed() => {}
            Ok(()) = self.drain.changed() => {}
        }
    }

    fn next_deadline(&self, now: Instant) -> Instant {
        let mut until = now + Duration::from_mins(1);
        let mut by = |deadline: Instant| until = until.min(deadline);
        if !self.unsettled.is_empty() && !self.flights.settles() {
            by(self.timers.settle);
        }
        if !self.released.is_empty() {
            by(self.timers.release);
        }
        // A landing answer lets the pump check again.
        let claims = self.flights.claims();
        if !claims && self.claims_allowed() && (self.slots.free() > 0 || self.looks_inside(now)) {
            by(self.timers.poll.max(self.timers.claim_again));
            if let Some(due) = self.timers.due {
                by(due.max(self.timers.claim_again));
            }
            if let Some(ask) = self.timers.ask_due {
                by(ask);
            }
            if let Some(readmit) = self.timers.readmit {
                by(readmit.max(self.timers.claim_again));
            }
        }
        if !claims {
            by(self.timers.reconcile);
        }
        if let Some(deadline) = *self.drain.borrow() {
            by(deadline.max(now + Duration::from_millis(50)));
        }
        until
    }

    /// Whether settlements should be written now: there are some, and nobody is about to join them.
    fn may_settle(&self, now: Instant) -> bool {
        let gathered = self.running.is_empty() || self.unsettled.len() >= self.group();
        !self.unsettled.is_empty() && (now >= self.timers.settle || (gathered && self.settle_failures.is_none()))
    }

    /// Whether settling and claiming are calls of their own now, so that the one is under way beside the other. Worth it only
    /// while there is more work than room: elsewhere one call for both is sooner done.
    fn overlaps(&self) -> bool {
        self.may_overlap
            && self.slots.loaded() >= 2 * GROUP_MIN
            && self.settle_failures.is_none()
            && self.claim_failures.is_none()
    }

    /// The number of jobs that one call settles: where calls overlap, half of the slots that are in use, so that there is
    /// always something for the other.
    fn group(&self) -> usize {
        let half = if self.overlaps() { self.slots.loaded().div_ceil(2) } else { usize::MAX };
        self.config.claim_max.min(half)
    }

    /// What can be asked of the store now, beside what is under way.
    fn next_part(&self, now: Instant) -> Option<Part> {
        let settle = self.may_settle(now) && !self.flights.settles();
        // A comparison that is due comes before the next claim, which would put it off again.
        let held = self.timers.reconcile <= now && !self.reconciled;
        let claim = !self.flights.claims() && self.may_claim(now);
        if self.flights.is_empty() && !self.overlaps() {
            return (settle || claim).then_some(Part::Both);
        }
        // A result matters more than a claim.
        if settle { Some(Part::Settle) } else { (claim && !held && self.may_overlap).then_some(Part::Claim) }
    }

    /// Whether the node may claim at all.
    fn claims_allowed(&self) -> bool {
        let standing = self.standing.borrow();
        // The right ends a moment before the node is known to be fenced: what it hands back now must not come back to it.
        let has_right = !standing.fenced && !standing.right.is_cancelled();
        self.drain.borrow().is_none() && has_right && self.claim.refused != Some(standing.node)
    }

    /// Whether it is time to look for work, and there is room for it.
    fn may_claim(&self, now: Instant) -> bool {
        (self.slots.free() > 0 || self.looks_inside(now)) && self.is_time_to_claim(now)
    }

    /// Whether the next claim should look for the steps that Ratchet itself runs.
    fn looks_inside(&self, now: Instant) -> bool {
        self.timers.internal <= now && self.slots.has_internal_room()
    }

    /// Whether a turn should claim, if it finds or makes room: it is time, or work has been flowing.
    fn is_time_to_claim(&self, now: Instant) -> bool {
        let due = self.timers.due.into_iter().chain(self.timers.readmit).any(|due| due <= now);
        // Where calls overlap, the settlements that make room are under way, or have just landed.
        let has_room = !self.unsettled.is_empty() || (self.may_overlap && self.slots.has_loaded_room());
        let wanted = self.timers.poll <= now || due || (self.claim.flowing && has_room);
        wanted && self.timers.claim_again <= now && self.claims_allowed()
    }

    fn heed_wakeups(&mut self) {
        if self.wake.take_work() {
            let _ = guard::call(&self.counters.meter, guard::POLLING_STRATEGY, || self.strategy.woken());
            self.timers.poll = Instant::now();
        }
        let (due_changed, revoked) = (self.wake.take_due_changed(), self.wake.take_revoked());
        if due_changed {
            self.timers.ask_due_soon();
        }
        let now = Instant::now();
        if revoked {
            self.timers.reconcile = now;
        }
        if self.timers.poll > now + EXPECTING_POLL && self.wake.still_expecting(|_| false) {
            self.timers.poll = now + EXPECTING_POLL;
        }
    }

    /// Fenced or declared dead: what runs under that standing must end.
    fn heed_standing(&mut self) {
        let standing = self.standing.borrow_and_update();
        for (fence, running) in &self.running {
            if standing.fenced || fence.node != standing.node {
                running.cancel.cancel(CancelReason::HandBack);
            }
        }
    }

    /// What is left, if the node has drained or has given up on it.
    fn drained(&mut self) -> Option<ShutdownLeftovers> {
        let deadline = (*self.drain.borrow())?;
        let now = Instant::now();
        if now >= deadline {
            for running in self.running.values() {
                running.cancel.cancel(CancelReason::HandBack);
            }
        }
        let results = self.running.len() + self.unsettled.len() + self.flights.unsettled().count();
        let (permits, held) = (self.released.len(), self.holds_permits());
        if results + permits == 0 && !held && self.flights.is_empty() {
            return Some(ShutdownLeftovers::Nothing);
        }
        if now < deadline + self.config.timing.cancel_grace * 2 + GIVE_UP_AFTER {
            return None;
        }
        tracing::error!(
            results,
            permits,
            held,
            "stopped without ending everything; other nodes will rescue what is left"
        );
        Some(if held { ShutdownLeftovers::HeldPermits } else { ShutdownLeftovers::Nothing })
    }

    /// Whether a handler may still run with a permit of this incarnation.
    fn holds_permits(&self) -> bool {
        let node = self.standing.borrow().node;
        let unsettled = self.unsettled.iter().chain(self.flights.unsettled());
        let unwritten = unsettled.filter(|(_, attempt)| attempt.held.is_some());
        let unwritten = unwritten.filter_map(|(settlement, attempt)| permit_of(&attempt.job, settlement.fence));
        let running = self.running.iter().filter_map(|(fence, running)| permit_of(&running.job, *fence));
        self.held.iter().copied().chain(unwritten).chain(running).any(|fence| fence.node == node)
    }

    /// Plans the next poll from what the last one found.
    fn plan_poll(&mut self, asked: usize, claimed: usize) {
        let now = Instant::now();
        let utilization = self.slots.utilization();
        let poll = Poll { at: self.begun.elapsed(), asked, claimed, utilization };
        let delay = guard::call(&self.counters.meter, guard::POLLING_STRATEGY, || self.strategy.after_poll(poll));
        let delay = delay.unwrap_or(POLL_AFTER_PANIC).min(POLL_MAX);
        self.counters.last_success.waits(Loop::Turn, delay);
        self.claim.flowing = claimed > 0;
        self.timers.due = None;
        // A full claim with room left asks again at once.
        let full = claimed > 0 && claimed >= asked;
        self.timers.poll = if full { now } else { now + delay };
        if !full {
            self.timers.ask_due_soon();
        }
        let running = &self.running;
        if self.wake.still_expecting(|id| running.keys().any(|fence| fence.job_id == id)) {
            self.timers.poll = self.timers.poll.min(now + EXPECTING_POLL);
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        for running in self.running.values() {
            running.task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::registry::Registry;
    use crate::job_log::JobLogs;
    use crate::observe::metrics::Meter;
    use crate::protect::resilience::Guarded;
    use crate::pump::polling::AdaptivePolling;
    use ratchet_core::{JobId, MemoryStore, NodeId};

    /// A pump without handlers that has been draining for long.
    pub(super) fn overdue(store: MemoryStore, node: NodeId) -> Pump {
        let config = Config::default();
        let node = NodeContext::for_test(store, node);
        let counters = node.counters.clone();
        let long_ago = Instant::now().checked_sub(Duration::from_mins(1)).expect("the machine is older");
        Pump::new(PumpParts {
            node,
            runner: Runner {
                registry: Registry::build(Vec::new(), &StateMap::default()).unwrap(),
                gates: Arc::new([]),
                executor: crate::run::executor::Executor::default(),
                resilience: Guarded::new(Arc::new(crate::AlwaysAdmit), Meter::default()),
                retry_policy: Arc::new(crate::DefaultRetryPolicy),
                sanitizer: Arc::new(crate::DefaultErrorSanitizer),
                cancel_grace: Duration::ZERO,
            },
            states: Arc::default(),
            logs: LogQueue::new(JobLogs::default(), counters),
            config,
            strategy: Box::new(AdaptivePolling::default()),
            drain: watch::channel(Some(long_ago)).1,
        })
    }

    fn fence(node: NodeId) -> Fence {
        Fence { job_id: JobId(node.0), version: 1, node }
    }

    #[tokio::test]
    async fn permits_that_cannot_be_ended_do_not_keep_a_node_from_stopping() {
        let node = crate::new_node_id();
        let mut pump = overdue(MemoryStore::manual().0, node);
        assert_eq!(pump.drained(), Some(ShutdownLeftovers::Nothing));
        pump.released.push(fence(node));
        assert_eq!(pump.drained(), Some(ShutdownLeftovers::Nothing), "they end with the node");
    }

    #[tokio::test]
    async fn a_node_that_gives_up_on_a_thread_with_a_permit_says_so() {
        let node = crate::new_node_id();
        let mut pump = overdue(MemoryStore::manual().0, node);
        pump.held.insert(fence(crate::new_node_id()));
        assert_eq!(pump.drained(), Some(ShutdownLeftovers::Nothing), "that of a dead incarnation has ended");
        pump.held.insert(fence(node));
        assert_eq!(pump.run().await, ShutdownLeftovers::HeldPermits);
    }
}
