//! Lanes: what the claim index keeps together.

use std::borrow::Cow;
use std::collections::VecDeque;

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, JobId, Priority};

use crate::waist::value::Value;

/// A lane of the claim index, as far as it has been read.
pub(crate) struct Lane<'a> {
    pub(crate) pool: usize,
    pub(crate) probation: bool,
    /// What its jobs need a permit for; empty if they need none.
    pub(crate) resource: Cow<'a, str>,
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

impl<'a> Lane<'a> {
    /// A lane of which nothing has been read.
    pub(crate) fn new(
        pool: usize,
        probation: bool,
        resource: Cow<'a, str>,
        (queue, kind, priority): (&'a str, &'a str, Priority),
    ) -> Self {
        Self {
            pool,
            probation,
            resource,
            queue,
            kind,
            priority,
            read: VecDeque::new(),
            last: None,
            more: false,
            merging: false,
        }
    }

    /// The same for jobs that need a permit.
    pub(crate) fn needing(&self, resource: String) -> Self {
        Self::new(self.pool, self.probation, Cow::Owned(resource), (self.queue, self.kind, self.priority))
    }

    pub(crate) fn bind(&self, values: &mut Vec<Value>) {
        values.extend([
            Value::from(self.probation),
            (&*self.resource).into(),
            self.queue.into(),
            self.kind.into(),
            Value::count(self.priority.level()),
        ]);
    }

    /// Nothing of it has been read.
    pub(crate) fn forget(&mut self) {
        self.read.clear();
        (self.last, self.more) = (None, false);
    }

    pub(crate) fn push(&mut self, job: (Timestamp, JobId)) {
        self.read.push_back(job);
        self.last = Some(job);
    }
}

/// The lanes that a request asks for, of jobs that need no permit: those on probation, or all others.
pub(crate) fn lanes(request: &ClaimRequest, probation: bool) -> Vec<Lane<'_>> {
    let mut lanes = Vec::new();
    for (pool_index, pool) in request.pools.iter().enumerate().filter(|(_, pool)| pool.free > 0) {
        for kind in pool.kinds.iter() {
            for priority in Priority::ALL {
                let ends = (pool.queue.as_str(), kind.as_str(), priority);
                lanes.push(Lane::new(pool_index, probation, Cow::Borrowed(""), ends));
            }
        }
    }
    lanes
}
