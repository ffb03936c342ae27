use std::borrow::Cow;
use std::collections::VecDeque;

use jiff::Timestamp;

use super::ClaimRequest;
use crate::id::JobId;
use crate::priority::Priority;

/// The place of a job within its lane: its due time, then its id.
pub type LanePlace = (Timestamp, JobId);

/// Jobs that share what a claim asks for: one range of a claim index.
///
/// Within a lane the oldest job comes first and has gained the most by waiting, so the beginnings of lanes are all that a claim
/// reads.
#[derive(Debug, Clone)]
pub struct Lane<'a> {
    /// The pool of the request that its jobs are for.
    pub pool: usize,
    /// Whether its jobs are on probation.
    pub probation: bool,
    /// The resource that its jobs need a permit of; empty if they need none.
    pub resource: Cow<'a, str>,
    /// Their queue.
    pub queue: &'a str,
    /// Their kind.
    pub kind: &'a str,
    /// Their priority.
    pub priority: Priority,
    /// What was read and not yet taken into the merge.
    read: VecDeque<LanePlace>,
    /// The last job that was read.
    last: Option<LanePlace>,
    /// Whether there may be more than what was read.
    more: bool,
    /// Whether its next job takes part in the merge.
    pub(super) merging: bool,
}

impl<'a> Lane<'a> {
    /// Returns a lane of which nothing has been read.
    pub const fn new(
        pool: usize,
        probation: bool,
        resource: Cow<'a, str>,
        (queue, kind, priority): (&'a str, &'a str, Priority),
    ) -> Self {
        let read = VecDeque::new();
        Self { pool, probation, resource, queue, kind, priority, read, last: None, more: false, merging: false }
    }

    /// Returns the lanes that a request asks for, of jobs that need no permit: those on probation, or all others.
    pub fn all(request: &'a ClaimRequest, probation: bool) -> Vec<Self> {
        let mut lanes = Vec::new();
        for (index, pool) in request.pools.iter().enumerate().filter(|(_, pool)| pool.free > 0) {
            for kind in pool.kinds.iter() {
                for priority in Priority::ALL {
                    let ends = (pool.queue.as_str(), kind.as_str(), priority);
                    lanes.push(Self::new(index, probation, Cow::Borrowed(""), ends));
                }
            }
        }
        lanes
    }

    /// Returns the same lane of jobs that need a permit.
    #[must_use]
    pub fn needing(&self, resource: String) -> Self {
        Self::new(self.pool, self.probation, Cow::Owned(resource), (self.queue, self.kind, self.priority))
    }

    /// Adds the next job that was read; they come in the order of their places.
    pub fn push(&mut self, job: LanePlace) {
        self.read.push_back(job);
        self.last = Some(job);
    }

    /// Notes whether there may be more jobs than what was read.
    pub const fn set_more(&mut self, more: bool) {
        self.more = more;
    }

    /// Forgets what was read.
    pub fn forget(&mut self) {
        self.read.clear();
        (self.last, self.more) = (None, false);
    }

    /// Returns the first of the jobs that were read.
    pub fn first(&self) -> Option<LanePlace> {
        self.read.front().copied()
    }

    /// Returns how many jobs were read.
    pub fn count(&self) -> usize {
        self.read.len()
    }

    /// Where to read on, if the lane has to be read before its next job is known.
    pub(super) fn read_on(&self) -> Option<LanePlace> {
        self.last.filter(|_| self.read.is_empty() && self.more)
    }

    pub(super) fn next(&mut self) -> Option<LanePlace> {
        self.read.pop_front()
    }

    /// Puts back what was taken last.
    pub(super) fn put_back(&mut self, job: LanePlace) {
        self.read.push_front(job);
    }
}
