//! Counts of what a node did, and when its loops last did what they are for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::clock::elapsed;
use ratchet_core::node::NodeVitals;
use ratchet_core::service::NodeServices;

use crate::guard::GuardedCode;
use crate::observe::metrics::{Meter, names};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident)*) => {
        #[derive(Debug)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
            pub(crate) vitals: Vitals,
            pub(crate) meter: Meter,
            pub(crate) last_success: LastSuccessCells,
        }

        /// What a node has done since it started.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            /// How it is now: what its last heartbeat said, or its next will.
            pub vitals: NodeVitals,
            /// When each of its loops last did what it is for.
            pub last_success: LastSuccess,
            /// Panics that the node caught, by the name of the loop or of the extension that panicked, as in the metric
            /// `ratchet.panics`. A handler's panic is not among them: it ends an attempt, which has a record of its own.
            pub panics: BTreeMap<&'static str, u64>,
        }

        impl Counters {
            pub(crate) fn new(meter: Meter) -> Self {
                Self {
                    $($name: Counter::new(concat!("ratchet.node.", stringify!($name)), meter.clone()),)*
                    vitals: Vitals::new(meter.clone()),
                    last_success: LastSuccessCells::default(),
                    meter,
                }
            }

            pub(crate) fn read(&self) -> Stats {
                Stats {
                    $($name: self.$name.count.load(Ordering::Relaxed),)*
                    vitals: self.vitals.read(),
                    last_success: self.last_success.read(),
                    panics: self.meter.panics().read(),
                }
            }
        }
    };
}

counters! {
    /// Jobs claimed.
    claimed
    /// Settlements that were written.
    settled
    /// Settlements that came too late: the fence no longer matched and nothing was written.
    conflicts
    /// Jobs of dead nodes that this node gave back or buried.
    rescued
    /// Jobs handed back because the reply to their claim was lost.
    lost_claims
    /// Turns of the pump: transactions that settle, claim, or both.
    turns
    /// Turns that failed and were tried again.
    turn_errors
    /// Settlements that could only be written without result and texts.
    minimal
    /// Times that this node was declared dead and went on as a new incarnation.
    reincarnations
    /// Hints of new work that came from other nodes and woke this one.
    hints
    /// Lines of jobs' logs that were written.
    log_lines
    /// Lines of jobs' logs that were left out: the attempt had written its share, they came too fast, or were refused.
    log_lines_lost
}

macro_rules! loops {
    (
        periodic { $($(#[$doc:meta])* $name:ident $loop:ident)* }
        woken { $($(#[$woken_doc:meta])* $woken_name:ident $woken:ident)* }
    ) => {
        /// A loop of a node. Each has its row in ARCHITECTURE.md, which a test compares.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Loop {
            $($(#[$doc])* $loop,)*
            $($(#[$woken_doc])* $woken,)*
        }

        impl Loop {
            /// Those that succeed every now and then, or are not well.
            const PERIODIC: &[Self] = &[$(Self::$loop),*];
            #[cfg(test)]
            const WOKEN: &[Self] = &[$(Self::$woken),*];

            pub(crate) const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$loop => stringify!($name),)*
                    $(Self::$woken => stringify!($woken_name),)*
                }
            }
        }

        /// When each of a node's loops last did what it is for, by this machine's clock; `None` if it has not yet.
        ///
        /// A loop goes on after an error or a panic. One whose time stands still for minutes is not well.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct LastSuccess {
            $($(#[$doc])* pub $name: Option<Timestamp>,)*
        }

        impl LastSuccess {
            /// The loops by name.
            pub fn each(&self) -> Vec<(&'static str, Option<Timestamp>)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct LastSuccessCells {
            $($name: LoopCell,)*
        }

        impl LastSuccessCells {
            /// The cell of a periodic loop.
            fn of(&self, which: Loop) -> Option<&LoopCell> {
                match which {
                    $(Loop::$loop => Some(&self.$name),)*
                    $(Loop::$woken => None,)*
                }
            }

            fn read(&self) -> LastSuccess {
                LastSuccess { $($name: self.$name.last.get(),)* }
            }
        }
    };
}

loops! {
    periodic {
        /// A turn of the pump: settling and claiming.
        turn Turn
        /// A heartbeat that the store took.
        heartbeat Heartbeat
        /// A scan for the jobs of dead nodes.
        rescue Rescue
        /// A scan for schedules that are due.
        schedules Schedules
        /// A scan for signals that did not come in time.
        signals Signals
        /// A scan for canceled batches whose children are left.
        batches Batches
        /// A round of archiving and purging; `None` also if the node keeps everything.
        retention Retention
        /// A scan for orders about circuit breakers.
        breakers Breakers
        /// A reading of how deep the queues are.
        gauges Gauges
        /// A reading of the services that the node's jobs call.
        service_watch ServiceWatch
        /// A report of the ages of loops and of the hints.
        loop_watch Watch
    }
    woken {
        /// Writes the lines of jobs' logs.
        log_writer LogWriter
        /// Calls event listeners; one task for each of them.
        listeners Listeners
    }
}

impl Loop {
    /// The loop as the guard knows it.
    pub(crate) const fn guarded(self) -> GuardedCode {
        let instead = match self {
            Self::Turn => "this node stops, and others take its jobs after the grace",
            Self::Heartbeat => "the heartbeat is missing",
            Self::LogWriter => "the lines are lost",
            _ => "the loop tries again",
        };
        GuardedCode { name: self.as_str(), instead }
    }
}

/// What is known of one loop.
#[derive(Debug, Default)]
struct LoopCell {
    /// When it was set going; a loop that never was is not missed.
    begun: Moment,
    last: Moment,
    /// How long it waits between two looks, in microseconds.
    wait_us: AtomicU64,
}

/// How long ago a loop last did what it is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Age {
    pub(crate) which: Loop,
    /// Its last success, or when it was set going.
    pub(crate) since: Duration,
    /// How long it waits between two looks.
    pub(crate) wait: Duration,
}

impl LastSuccessCells {
    /// A loop is set going.
    pub(crate) fn begin(&self, which: Loop, at: Timestamp) {
        if let Some(cell) = self.of(which) {
            cell.begun.set(at);
        }
    }

    /// It has done what it is for.
    pub(crate) fn mark(&self, which: Loop, at: Timestamp) {
        if let Some(cell) = self.of(which) {
            cell.last.set(at);
        }
    }

    /// It will look again after about so long.
    pub(crate) fn waits(&self, which: Loop, wait: Duration) {
        let wait_us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        if let Some(cell) = self.of(which) {
            cell.wait_us.store(wait_us, Ordering::Relaxed);
        }
    }

    /// How the loops are that were set going.
    pub(crate) fn ages(&self, now: Timestamp) -> impl Iterator<Item = Age> {
        Loop::PERIODIC.iter().filter_map(move |which| {
            let LoopCell { begun, last, wait_us } = self.of(*which)?;
            let since = last.get().or(begun.get())?;
            let wait = Duration::from_micros(wait_us.load(Ordering::Relaxed));
            Some(Age { which: *which, since: elapsed(since, now), wait })
        })
    }
}

/// A time that may not have come yet.
#[derive(Debug)]
struct Moment(AtomicI64);

impl Moment {
    const NEVER: i64 = i64::MIN;

    fn set(&self, at: Timestamp) {
        self.0.store(at.as_microsecond(), Ordering::Relaxed);
    }

    fn get(&self) -> Option<Timestamp> {
        let micros = self.0.load(Ordering::Relaxed);
        Timestamp::from_microsecond(micros).ok().filter(|_| micros != Self::NEVER)
    }
}

impl Default for Moment {
    fn default() -> Self {
        Self(AtomicI64::new(Self::NEVER))
    }
}

/// A count for [`Stats`] that is a metric too.
#[derive(Debug)]
pub(crate) struct Counter {
    count: AtomicU64,
    name: &'static str,
    meter: Meter,
}

impl Counter {
    fn new(name: &'static str, meter: Meter) -> Self {
        Self { count: AtomicU64::new(0), name, meter }
    }

    pub(crate) fn add(&self, n: usize) {
        if n == 0 {
            return;
        }
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        self.meter.count(self.name, &[], n as u64);
    }
}

/// How the node is, for the heartbeat to tell.
#[derive(Debug)]
pub(crate) struct Vitals {
    running: AtomicU32,
    /// Slots that hold a job, by pool.
    taken: OnceLock<Box<[AtomicU32]>>,
    clock_skew_us: AtomicI64,
    services: Mutex<NodeServices>,
    meter: Meter,
}

/// Stands for a skew that was not measured; no clock is 290,000 years off.
const NOT_MEASURED: i64 = i64::MIN;

impl Vitals {
    fn new(meter: Meter) -> Self {
        Self {
            running: AtomicU32::new(0),
            taken: OnceLock::new(),
            clock_skew_us: AtomicI64::new(NOT_MEASURED),
            services: Mutex::default(),
            meter,
        }
    }

    pub(crate) fn set_running(&self, running: usize) {
        let running = u32::try_from(running).unwrap_or(u32::MAX);
        if self.running.swap(running, Ordering::Relaxed) != running {
            self.meter.gauge(names::SLOTS_TAKEN, &[], f64::from(running));
        }
    }

    /// By pool, always in the same order.
    pub(crate) fn set_taken(&self, taken: impl Iterator<Item = usize> + Clone) {
        let cells = self.taken.get_or_init(|| taken.clone().map(|_| AtomicU32::new(0)).collect());
        for (cell, taken) in cells.iter().zip(taken) {
            cell.store(u32::try_from(taken).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
    }

    pub(crate) fn set_clock_skew_us(&self, skew: i64) {
        self.clock_skew_us.store(skew, Ordering::Relaxed);
    }

    pub(crate) fn set_services(&self, services: NodeServices) {
        *self.services.lock().unwrap_or_else(PoisonError::into_inner) = services;
    }

    pub(crate) fn read(&self) -> NodeVitals {
        let skew = self.clock_skew_us.load(Ordering::Relaxed);
        NodeVitals {
            running: self.running.load(Ordering::Relaxed),
            clock_skew_us: (skew != NOT_MEASURED).then_some(skew),
            services: self.services.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            taken: self
                .taken
                .get()
                .map(|taken| taken.iter().map(|one| one.load(Ordering::Relaxed)).collect())
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The names of loops in backticks that begin a row of the table of loops, queues and buffers.
    fn rows() -> BTreeSet<&'static str> {
        let page = include_str!("../../../../ARCHITECTURE.md");
        let (_, table) = page.split_once("## Loops, queues and buffers").expect("the page has the table");
        let table = table.split("\n## ").next().unwrap_or(table);
        let names = table.lines().filter_map(|line| line.strip_prefix("| `"));
        names.filter_map(|row| row.split_once('`').map(|(name, _)| name)).collect()
    }

    #[test]
    fn every_loop_of_a_node_has_its_row_in_the_architecture() {
        let loops: BTreeSet<_> = Loop::PERIODIC.iter().chain(Loop::WOKEN).map(|one| one.as_str()).collect();
        assert_eq!(rows(), loops);
    }

    #[test]
    fn the_guide_names_every_loop_whose_age_or_panics_are_a_metric() {
        let guide = include_str!("../../../../docs/guide/operations.md");
        for (metric, loops) in [("ratchet.loop.age", Loop::PERIODIC), ("ratchet.panics", Loop::WOKEN)] {
            let row = guide.lines().find(|line| line.starts_with(&format!("| `{metric}` "))).expect("it has a row");
            for name in loops.iter().map(|one| one.as_str()) {
                assert!(row.contains(&format!("`{name}`")), "{name} is missing: {row}");
            }
        }
    }
}
