//! Lanes: what the claim index keeps together.

use std::collections::VecDeque;

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, JobId, Priority};

use crate::value::Value;

/// A lane of the claim index, as far as it has been read.
pub(crate) struct Lane<'a> {
    pub(crate) pool: usize,
    pub(crate) probation: bool,
    pub(crate) queue: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) priority: Priority,
    pub(crate) read: VecDeque<(Timestamp, JobId)>,
    /// The last job that was read.
    pub(crate) last: Option<(Timestamp, JobId)>,
    /// Whether there may be more than what was read.
    pub(crate) more: bool,
    /// Whether its next job takes part in the merge.
    pub(crate) merging: bool,
}

impl Lane<'_> {
    pub(crate) fn bind(&self, values: &mut Vec<Value>) {
        values.extend([
            Value::from(self.probation),
            self.queue.into(),
            self.kind.into(),
            Value::count(self.priority.level()),
        ]);
    }

    pub(crate) fn push(&mut self, job: (Timestamp, JobId)) {
        self.read.push_back(job);
        self.last = Some(job);
    }
}

/// The lanes that a request asks for: those of jobs on probation, or those of all others.
pub(crate) fn lanes(request: &ClaimRequest, probation: bool) -> Vec<Lane<'_>> {
    let mut lanes = Vec::new();
    for (pool_index, pool) in request.pools.iter().enumerate().filter(|(_, pool)| pool.free > 0) {
        for kind in pool.kinds.iter() {
            for priority in Priority::ALL {
                lanes.push(Lane {
                    pool: pool_index,
                    probation,
                    queue: pool.queue.as_str(),
                    kind: kind.as_str(),
                    priority,
                    read: VecDeque::new(),
                    last: None,
                    more: false,
                    merging: false,
                });
            }
        }
    }
    lanes
}
