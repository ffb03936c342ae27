//! Taking jobs to run them.

mod lane;
mod merge;
mod permits;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::id::{JobId, NodeId};
use crate::json::JsonText;
use crate::name::{Kind, QueueName, StepName};
use crate::priority::Priority;
use crate::record::JobRecord;
use crate::signal::Signal;
use crate::state::JobState;

pub use lane::{Lane, LanePlace};
pub use merge::{LaneMerge, LaneRead, Pick};
pub use permits::Permits;

/// The right to write an attempt's result: the claim's version, held by one incarnation of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    /// The job.
    pub job_id: JobId,
    /// The version that the claim gave it.
    pub version: u64,
    /// Who claimed it.
    pub node: NodeId,
}

/// A job that a node has taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The right to write its result.
    pub fence: Fence,
    /// The job as it now is.
    pub job: JobRecord,
    /// What came of the jobs that it waited for, in the order in which its edges were defined.
    pub inputs: Vec<Input>,
    /// The signal that it waited for.
    pub signal: Option<Signal>,
}

/// What came of a job that another one waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The job that ended.
    pub job_id: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its name in the workflow.
    pub step: Option<StepName>,
    /// What it ended as.
    pub state: JobState,
    /// Its result, if it succeeded and had one.
    pub result: Option<JsonText>,
    /// Its sanitized error, if it failed.
    pub error: Option<String>,
}

/// What a node has room for.
#[derive(Debug, Clone)]
pub struct ClaimRequest {
    /// Who claims; a node that is not registered, or was declared dead, gets an error.
    pub node: NodeId,
    /// Room by queue and sort of handler.
    pub pools: Vec<Pool>,
    /// Most jobs to claim, over all pools.
    pub limit: usize,
    /// Whether one job on probation (its node died while running it) may be among them.
    pub probation: bool,
    /// Ageing.
    pub boost: Boost,
}

/// Free slots that some kinds of one queue share.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The queue.
    pub queue: QueueName,
    /// The kinds that run here.
    pub kinds: Arc<[Kind]>,
    /// How many jobs it can take.
    pub free: usize,
}

impl Pool {
    /// Whether jobs of this kind in this queue run here, if there is room.
    pub fn takes(&self, queue: &str, kind: &str) -> bool {
        self.queue.as_str() == queue && self.kinds.iter().any(|known| known.as_str() == kind)
    }
}

/// Ageing: a job gains one level of priority for each interval that it has waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boost {
    /// The interval in microseconds; zero means no ageing.
    interval_us: u64,
}

impl Boost {
    /// No ageing.
    pub const OFF: Self = Self { interval_us: 0 };

    /// One level for each `interval`; zero turns ageing off.
    pub fn every(interval: Duration) -> Self {
        Self { interval_us: u64::try_from(interval.as_micros()).unwrap_or(u64::MAX) }
    }

    /// The interval in microseconds, zero for no ageing.
    pub const fn interval_us(self) -> u64 {
        self.interval_us
    }

    /// Priority plus the levels gained by waiting since `scheduled_time`.
    pub fn effective(self, priority: Priority, scheduled_time: Timestamp, now: Timestamp) -> u64 {
        let waited = u64::try_from(now.as_microsecond() - scheduled_time.as_microsecond()).unwrap_or(0);
        u64::from(priority.level()) + waited.checked_div(self.interval_us).unwrap_or(0)
    }

    /// Jobs of this priority that became due before then, and no others that are due, have reached this effective priority.
    ///
    /// The beginning of time if none can have.
    pub fn reaches(self, priority: Priority, effective: u64, now: Timestamp) -> Timestamp {
        let levels = effective.saturating_sub(u64::from(priority.level()));
        let needed = match (levels, self.interval_us) {
            (0, _) => Some(0),
            (_, 0) => None,
            (levels, interval) => levels.checked_mul(interval),
        };
        let needed = needed.and_then(|needed| i64::try_from(needed).ok());
        // One microsecond later is the first that has not.
        let before = needed.and_then(|needed| now.as_microsecond().checked_sub(needed)?.checked_add(1));
        before.and_then(|before| Timestamp::from_microsecond(before).ok()).unwrap_or(Timestamp::MIN)
    }
}

impl Default for Boost {
    /// One level every fifteen minutes.
    fn default() -> Self {
        Self::every(Duration::from_mins(15))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_a_priority_is_what_has_that_much_or_more() {
        let now = Timestamp::from_microsecond(1_000_000).unwrap();
        for boost in [Boost::OFF, Boost::every(Duration::from_micros(10)), Boost::every(Duration::from_micros(7))] {
            for priority in Priority::ALL {
                for effective in 0..12 {
                    let before = boost.reaches(priority, effective, now);
                    for waited in 0..100 {
                        let due = Timestamp::from_microsecond(1_000_000 - waited).unwrap();
                        let has = boost.effective(priority, due, now) >= effective;
                        assert_eq!(due < before, has, "{boost:?} {priority:?} {effective} {waited}");
                    }
                }
            }
        }
    }
}
