//! What a store knows of a job and of its attempts.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::flow::{JobFlags, WaitState};
use crate::id::{JobId, NodeId};
use crate::json::JsonText;
use crate::name::{BusinessKey, IdempotencyKey, StepName};
use crate::spec::{JobSpec, JobType, Origin};
use crate::state::JobState;
use crate::transition::Place;

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JobRecord {
    /// Its id.
    pub id: JobId,
    /// What it does.
    pub spec: JobSpec,
    /// How it came to be.
    pub job_type: JobType,
    /// Where it stands.
    pub state: JobState,
    /// Where a paused job goes back to.
    pub paused_from: Option<JobState>,
    /// Grows with every claim and transition, over the job's whole life.
    pub version: u64,
    /// Counted attempts so far; a manual retry starts at zero again.
    pub attempts: u32,
    /// How many times in a row its node died while running it.
    pub crash_count: u32,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it became or becomes due; its waiting time, and so its ageing, counts from here.
    pub scheduled_time: Timestamp,
    /// Until when it is put off, if it was deferred.
    pub deferred_until: Option<Timestamp>,
    /// Who runs it.
    pub picked_by: Option<NodeId>,
    /// Since when it runs.
    pub picked_at: Option<Timestamp>,
    /// How far the running attempt is, from 0 to 1.
    pub progress: Option<f64>,
    /// The sanitized error of its last failed attempt.
    pub last_error: Option<String>,
    /// Held while it is live.
    pub business_key: Option<BusinessKey>,
    /// The key that it was submitted with.
    pub idempotency_key: Option<IdempotencyKey>,
    /// Submitted when it succeeds.
    pub on_success: Option<JobSpec>,
    /// Submitted when it fails for good.
    pub on_failure: Option<JobSpec>,
    /// The finished job that this is a callback of.
    pub origin: Option<Origin>,
    /// The batch or the schedule that it belongs to.
    pub parent: Option<JobId>,
    /// The workflow that it is a step of.
    pub workflow: Option<JobId>,
    /// Its name there.
    pub step: Option<StepName>,
    /// How it is tied to others.
    pub flow: JobFlags,
    /// How many edges and signals it waits for.
    pub waits_for: u32,
    /// How long after its release it is due.
    pub release_delay: Option<Duration>,
    /// The job whose end canceled it.
    pub canceled_because: Option<JobId>,
    /// The job that replaced it.
    pub superseded_by: Option<JobId>,
    /// When it became terminal.
    pub terminated_at: Option<Timestamp>,
    /// When it was moved to the archive; nothing can be asked of it any more.
    pub archived_at: Option<Timestamp>,
    /// What its last attempt returned.
    pub result: Option<JsonText>,
    /// When its last attempt began and ended, and how long the job had waited for it.
    pub timing: Option<AttemptTiming>,
    /// The node on which it succeeded, if this record describes that attempt; see [`success`](Self::success).
    pub ended_by: Option<NodeId>,
}

impl JobRecord {
    /// A record of a job that was just stored as PENDING; a store sets what differs.
    pub fn stored(
        id: JobId,
        spec: JobSpec,
        job_type: JobType,
        state: JobState,
        created_at: Timestamp,
        scheduled_time: Timestamp,
    ) -> Self {
        Self {
            id,
            spec,
            job_type,
            state,
            paused_from: None,
            version: 0,
            attempts: 0,
            crash_count: 0,
            created_at,
            scheduled_time,
            deferred_until: None,
            picked_by: None,
            picked_at: None,
            progress: None,
            last_error: None,
            business_key: None,
            idempotency_key: None,
            on_success: None,
            on_failure: None,
            origin: None,
            parent: None,
            workflow: None,
            step: None,
            flow: JobFlags::none(),
            waits_for: 0,
            release_delay: None,
            canceled_because: None,
            superseded_by: None,
            terminated_at: None,
            archived_at: None,
            result: None,
            timing: None,
            ended_by: None,
        }
    }

    /// Its place in the state machine.
    pub fn place(&self) -> Place {
        Place::of(self.state, self.paused_from).expect("a store keeps paused_from with PAUSED only")
    }

    /// What it waits for.
    pub const fn waiting(&self) -> WaitState {
        WaitState { waits_for: self.waits_for, flow: self.flow }
    }

    /// When it can run: its time, or the end of its deferral.
    pub fn due(&self) -> Timestamp {
        self.deferred_until.map_or(self.scheduled_time, |until| until.max(self.scheduled_time))
    }
}

/// When an attempt began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptTiming {
    /// When the attempt began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How long it took, by a clock that never jumps.
    pub duration: Duration,
    /// How long the job had been due before it was claimed.
    pub queue_wait: Duration,
}

/// What came of one attempt, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The job.
    pub job_id: JobId,
    /// The version of the claim: with the job's id, it names the attempt.
    pub version: u64,
    /// Which attempt it was, counting from 1; a crashed or deferred one shares its number with the next.
    pub attempt: u32,
    /// Who ran it.
    pub node: NodeId,
    /// What came of it.
    pub status: AttemptStatus,
    /// When it began and ended.
    pub timing: AttemptTiming,
    /// The error's class, if it failed.
    pub error_class: Option<String>,
    /// The sanitized error, if it failed.
    pub error: Option<String>,
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AttemptStatus {
    /// The handler returned a result.
    Succeeded,
    /// The handler returned an error.
    Failed,
    /// It took longer than its timeout.
    TimedOut,
    /// The handler panicked.
    Panicked,
    /// Its node died.
    Crashed,
    /// It was put off.
    Deferred,
    /// The job was canceled while it ran.
    Canceled,
}

impl AttemptStatus {
    /// Every status.
    pub const ALL: [Self; 7] =
        [Self::Succeeded, Self::Failed, Self::TimedOut, Self::Panicked, Self::Crashed, Self::Deferred, Self::Canceled];

    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => JobState::Succeeded.as_str(),
            Self::Failed => JobState::Failed.as_str(),
            Self::TimedOut => "TIMED_OUT",
            Self::Panicked => "PANICKED",
            Self::Crashed => "CRASHED",
            Self::Deferred => "DEFERRED",
            Self::Canceled => JobState::Canceled.as_str(),
        }
    }

    /// The status of a stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}
