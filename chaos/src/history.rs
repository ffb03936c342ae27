//! All that is known of a run, from every side.

use ratchet::{AttemptStatus, JobId, JobState, NodeId};

use crate::record::Line;

/// All that is known of a run. Times are microseconds of the one clock that all processes and the database share.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// What was asked for, and how it was answered.
    pub submissions: Vec<Submission>,
    /// Ends of jobs, as they were seen while the run went on.
    pub sightings: Vec<Sighting>,
    /// What handlers and nodes recorded.
    pub lines: Vec<Line>,
    /// What was done to nodes and servers.
    pub faults: Vec<Fault>,
    /// Every job that the store has in the end.
    pub jobs: Vec<StoredJob>,
    /// All attempts of these jobs.
    pub attempts: Vec<StoredAttempt>,
    /// When everything was whole again.
    pub faults_ended: i64,
}

/// A submit and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The number in the job. Submits with the same idempotency key have the same number.
    pub serial: u64,
    /// The answer.
    pub answer: Answer,
}

/// How a submit was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It returned a job: from now on, that job must not be lost.
    Accepted(JobId),
    /// It was refused because of its key: nothing may be stored.
    Refused,
    /// It failed: the job may or may not be there.
    Unknown,
}

/// A terminal job, seen while the run went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The job.
    pub job: JobId,
    /// Its state then.
    pub state: JobState,
    /// Its version then, if that was seen too.
    pub version: Option<u64>,
}

/// A job, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// Its id.
    pub id: JobId,
    /// The number in it.
    pub serial: u64,
    /// Its state.
    pub state: JobState,
    /// Its version.
    pub version: u64,
    /// The business key with which it was submitted.
    pub business_key: Option<String>,
    /// When it was stored.
    pub created_at: i64,
    /// When it became terminal.
    pub terminated_at: Option<i64>,
}

/// An attempt, as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredAttempt {
    /// The job.
    pub job: JobId,
    /// The version of the claim.
    pub version: u64,
    /// Who ran it.
    pub node: NodeId,
    /// What came of it.
    pub status: AttemptStatus,
}

/// Something that was done to a node or to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// To which process; to all that use the server if there is none.
    pub pid: Option<u32>,
    /// When it began.
    pub from: i64,
    /// When it was over.
    pub to: i64,
}

/// What can be done to a node or to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// The node was killed (-9).
    Killed,
    /// The node's machine was gone at once: killed, and the server does not learn of it.
    Vanished,
    /// The node was stopped (SIGSTOP) and went on later.
    Stopped,
    /// The node's connections were closed and new ones refused.
    Cut,
    /// Nothing came through the node's connections.
    Frozen,
    /// A connection was closed in place of the answer.
    LostReply,
    /// The server was stopped and started.
    ServerRestarted,
    /// The server was killed (-9) and started.
    ServerKilled,
    /// The server closed all connections.
    Terminated,
    /// The machine gave the node no processor.
    Stalled,
}

impl FaultKind {
    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Killed => "node killed",
            Self::Vanished => "node vanished",
            Self::Stopped => "node stopped",
            Self::Cut => "node cut off",
            Self::Frozen => "node frozen",
            Self::LostReply => "reply lost",
            Self::ServerRestarted => "server restarted",
            Self::ServerKilled => "server killed",
            Self::Terminated => "connections ended",
            Self::Stalled => "node starved",
        }
    }
}

impl Fault {
    /// Whether it ended the process for good.
    pub const fn is_deadly(&self) -> bool {
        matches!(self.kind, FaultKind::Killed | FaultKind::Vanished)
    }

    /// Whether the node could not be heard while it lasted. A closed connection is opened again at once.
    pub const fn silences(&self) -> bool {
        !matches!(self.kind, FaultKind::LostReply | FaultKind::Terminated)
    }
}
