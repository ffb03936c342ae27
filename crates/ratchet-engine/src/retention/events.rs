use jiff::Timestamp;
use ratchet_core::{DeadLetterFilter, JobState, NodeId};

use crate::observe::bus::EventStream;

/// Something that happened to many jobs at once, told once for all of them and after it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkEvent {
    /// The node that did it; `None` for a client without an engine.
    pub node: Option<NodeId>,
    /// When, by this machine's clock.
    pub at: Timestamp,
    /// What happened.
    pub what: BulkEventKind,
}

/// What happened to many jobs at once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkEventKind {
    /// Dead letters were retried. There is no event for each of them.
    JobsRetried {
        /// How many.
        count: u64,
        /// How many jobs wait again that had been canceled because of them.
        revived: u64,
        /// Which ones were asked for.
        filter: Box<DeadLetterFilter>,
    },
    /// Ended jobs were moved to the archive.
    JobsArchived {
        /// How they had ended.
        state: JobState,
        /// How many.
        count: u64,
    },
    /// Successes whose retention is zero were deleted.
    JobsDeleted {
        /// The number of jobs.
        count: u64,
    },
    /// Archived jobs were deleted for good.
    ArchivePurged {
        /// How many.
        count: u64,
    },
    /// Lines of jobs' logs were deleted.
    LogsPurged {
        /// How many.
        lines: u64,
    },
    /// Schedules that had ended were deleted for good.
    SchedulesPurged {
        /// How many.
        count: u64,
    },
}

/// Events that a slow listener may lag behind before it loses the oldest; they are few.
pub(crate) const CAPACITY: usize = 256;

/// Events about many jobs, as they come.
pub type BulkEventStream = EventStream<BulkEvent>;
