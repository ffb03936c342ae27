//! Counts of what a node did.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use ratchet_core::node::NodeVitals;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
            pub(crate) vitals: Vitals,
        }

        /// What a node has done since it started.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
            /// How it is now: what its last heartbeat said, or its next will.
            pub vitals: NodeVitals,
        }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.0.load(Ordering::Relaxed),)* vitals: self.vitals.read() }
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
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }
}

/// How the node is, for the heartbeat to tell.
#[derive(Debug)]
pub(crate) struct Vitals {
    running: AtomicU32,
    clock_skew_us: AtomicI64,
}

/// Stands for a skew that was not measured; no clock is 290,000 years off.
const NOT_MEASURED: i64 = i64::MIN;

impl Vitals {
    pub(crate) fn set_running(&self, running: usize) {
        self.running.store(u32::try_from(running).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    pub(crate) fn set_clock_skew_us(&self, skew: i64) {
        self.clock_skew_us.store(skew, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> NodeVitals {
        let skew = self.clock_skew_us.load(Ordering::Relaxed);
        NodeVitals {
            running: self.running.load(Ordering::Relaxed),
            clock_skew_us: (skew != NOT_MEASURED).then_some(skew),
        }
    }
}

impl Default for Vitals {
    fn default() -> Self {
        Self { running: AtomicU32::new(0), clock_skew_us: AtomicI64::new(NOT_MEASURED) }
    }
}
