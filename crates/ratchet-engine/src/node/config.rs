//! How a node behaves; the builder sets it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use ratchet_core::claim::Boost;
use ratchet_core::{InvalidInput, QueueName, Retention};

use crate::job_log::JobLogs;
use crate::node::timing::{Timing, check_range};

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
    pub(crate) timing: Timing,
    /// How long a stopping node lets its jobs finish.
    pub(crate) drain: Duration,
    /// How long jobs are kept after their end.
    pub(crate) retention: Retention,
    /// What is kept of jobs' logs.
    pub(crate) job_logs: JobLogs,
    /// How long the pump waits for more settlements to join those it has.
    pub(crate) gather: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            queues: BTreeMap::new(),
            claim_max: 200,
            boost: Boost::default(),
            timing: Timing::default(),
            drain: Duration::from_secs(30),
            retention: Retention::default(),
            job_logs: JobLogs::default(),
            gather: Duration::from_millis(2),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        self.timing.check()?;
        check_range("drain_timeout", self.drain, Duration::ZERO, Duration::from_hours(24 * 7))?;
        self.retention.check()?;
        self.job_logs.check()?;
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

/// What is said about each name, once: the same again is no contradiction.
pub(crate) fn once<N: Ord + Debug, V: PartialEq + Debug>(
    option: &str,
    said: impl IntoIterator<Item = (N, V)>,
    advice: &str,
) -> Result<BTreeMap<N, V>, InvalidInput> {
    let mut all: BTreeMap<N, V> = BTreeMap::new();
    for (name, value) in said {
        if let Some(first) = all.get(&name).filter(|first| **first != value) {
            return Err(given_twice(option, &name, first, &value, advice));
        }
        all.insert(name, value);
    }
    Ok(all)
}

/// The refusal of two values that differ for one name.
pub(crate) fn given_twice<V: Debug>(
    option: &str,
    name: &impl Debug,
    first: &V,
    second: &V,
    advice: &str,
) -> InvalidInput {
    InvalidInput::new(option, format!("of {name:?} is given twice, as {first:?} and as {second:?}; {advice}"))
}
