//! How a node behaves; the builder sets it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use ratchet_core::claim::Boost;
use ratchet_core::node::GRACE_DEFAULT;
use ratchet_core::{InvalidInput, QueueName, Retention};

use crate::job_log::JobLogs;

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
    /// How long a canceled handler may take to notice before it is dropped.
    pub(crate) cancel_grace: Duration,
    /// How long one transaction may take before it counts as lost.
    pub(crate) store_deadline: Duration,
    /// How long jobs are kept after their end.
    pub(crate) retention: Retention,
    /// How often it is looked for what has been kept long enough.
    pub(crate) retention_interval: Duration,
    /// How often the depths of the queues are told.
    pub(crate) gauges: Duration,
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
            heartbeat: Duration::from_secs(5),
            grace: GRACE_DEFAULT,
            scan: Duration::from_secs(10),
            reconcile: Duration::from_millis(750),
            drain: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(1),
            store_deadline: Duration::from_secs(30),
            retention: Retention::default(),
            retention_interval: Duration::from_mins(1),
            gauges: Duration::from_secs(15),
            job_logs: JobLogs::default(),
            gather: Duration::from_millis(2),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let ms = Duration::from_millis;
        check_range("heartbeat", self.heartbeat, ms(10), Duration::from_hours(1))?;
        check_range("grace", self.grace, self.heartbeat * 3, Duration::from_hours(24))
            .map_err(|e| InvalidInput::new("grace", format!("{} (at least three heartbeats)", e.problem())))?;
        check_range("rescue_scan", self.scan, ms(10), Duration::from_hours(24))?;
        check_range("reconcile", self.reconcile, ms(10), Duration::from_hours(1))?;
        check_range("drain_timeout", self.drain, Duration::ZERO, Duration::from_hours(24 * 7))?;
        check_range("cancel_grace", self.cancel_grace, Duration::ZERO, Duration::from_hours(1))?;
        check_range("store_deadline", self.store_deadline, ms(100), Duration::from_hours(1))?;
        check_range("retention_interval", self.retention_interval, ms(10), Duration::from_hours(24))?;
        check_range("gauges", self.gauges, ms(10), Duration::from_hours(1))?;
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
            let problem = format!("of {name:?} is given twice, as {first:?} and as {value:?}; {advice}");
            return Err(InvalidInput::new(option, problem));
        }
        all.insert(name, value);
    }
    Ok(all)
}

fn check_range(field: &str, value: Duration, least: Duration, most: Duration) -> Result<(), InvalidInput> {
    if value < least || value > most {
        return Err(InvalidInput::new(field, format!("is {value:?}; use {least:?} to {most:?}")));
    }
    Ok(())
}
