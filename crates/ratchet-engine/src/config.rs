//! How a node behaves; the builder sets it.

use std::collections::BTreeMap;
use std::time::Duration;

use ratchet_core::claim::Boost;
use ratchet_core::{InvalidInput, QueueName};

/// Room for running jobs in one queue of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// For async handlers.
    pub tasks: usize,
    /// For blocking handlers, each of which holds a thread.
    pub threads: usize,
}

impl Default for Slots {
    /// Ten tasks and one thread a core.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { tasks: 10 * cores, threads: cores }
    }
}

impl From<usize> for Slots {
    /// So many of either sort.
    fn from(slots: usize) -> Self {
        Self { tasks: slots, threads: slots }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) queues: BTreeMap<QueueName, Slots>,
    pub(crate) claim_max: usize,
    pub(crate) boost: Boost,
    /// How often a node says that it lives.
    pub(crate) heartbeat: Duration,
    /// A node that was not heard of for so long is dead.
    pub(crate) grace: Duration,
    /// How often a node looks for orphans.
    pub(crate) scan: Duration,
    /// How often a node compares what it runs with what the store says.
    pub(crate) reconcile: Duration,
    /// How long a stopping node lets its jobs finish.
    pub(crate) drain: Duration,
    /// How long a cancelled handler may take to notice before it is dropped.
    pub(crate) cancel_grace: Duration,
    /// How long one transaction may take before it counts as lost.
    pub(crate) turn_deadline: Duration,
    /// How long the pump waits for more settlements to join those it has.
    pub(crate) gather: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            claim_max: 200,
            boost: Boost::default(),
            heartbeat: Duration::from_secs(5),
            grace: Duration::from_secs(30),
            scan: Duration::from_secs(10),
            reconcile: Duration::from_secs(1),
            drain: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(1),
            turn_deadline: Duration::from_secs(30),
            gather: Duration::from_millis(2),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let least = |field: &str, value: Duration, least: Duration| {
            if value < least {
                return Err(InvalidInput::new(field, format!("is {value:?}; the least is {least:?}")));
            }
            Ok(())
        };
        least("heartbeat", self.heartbeat, Duration::from_millis(10))?;
        least("grace", self.grace, self.heartbeat * 3)
            .map_err(|e| InvalidInput::new("grace", format!("{} (three heartbeats)", e.problem())))?;
        least("scan", self.scan, Duration::from_millis(10))?;
        least("reconcile", self.reconcile, Duration::from_millis(10))?;
        if self.claim_max == 0 || self.claim_max > 10_000 {
            return Err(InvalidInput::new("claim_max", format!("is {}; use 1 to 10000", self.claim_max)));
        }
        for (queue, slots) in &self.queues {
            if slots.tasks > 100_000 || slots.threads > 10_000 {
                let problem = format!("asks for {slots:?}; the limits are 100000 tasks and 10000 threads");
                return Err(InvalidInput::new(format!("queue {queue}"), problem));
            }
        }
        Ok(())
    }
}
