//! Counts of what a node did.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident)*) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// What a node has done since it started.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.0.load(Ordering::Relaxed),)* }
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
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }
}
