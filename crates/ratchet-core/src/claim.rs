//! Taking jobs to run them.

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

/// The right to write an attempt's result: the claim's version, held by one incarnation of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Its sanitised error, if it failed.
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
}

impl Default for Boost {
    /// One level every fifteen minutes.
    fn default() -> Self {
        Self::every(Duration::from_mins(15))
    }
}
