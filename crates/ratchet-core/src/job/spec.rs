//! What a caller asks for: the shape of a job before it exists.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::backoff::Backoff;
use crate::flow::JobFlags;
use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::json::JsonText;
use crate::limits;
use crate::name::{BusinessKey, IdempotencyKey, Kind, Principal, QueueName, ResourceName, StepName, Tag};
use crate::priority::Priority;
use crate::signal::SignalWait;
use crate::trace::TraceContext;

/// What a job does and how: everything but its identity, its keys and its time.
///
/// Callbacks are kept in this form until the job they belong to has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Which handler runs it.
    pub kind: Kind,
    /// In which queue it waits.
    #[serde(default)]
    pub queue: QueueName,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// The handler's arguments.
    pub payload: JsonText,
    /// Free words for the handler and for people.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// How many attempts may follow the first.
    pub max_retries: u32,
    /// How long to wait between attempts.
    pub backoff: Backoff,
    /// How long one attempt may take.
    #[serde(default)]
    pub timeout: Option<Duration>,
    /// A limited resource that it needs.
    #[serde(default)]
    pub resource: Option<ResourceName>,
    /// Who submitted it.
    #[serde(default)]
    pub principal: Option<Principal>,
    /// The trace that it was submitted in the course of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
}

impl JobSpec {
    /// Retries that a job has unless told otherwise.
    pub const MAX_RETRIES_DEFAULT: u32 = 3;

    /// A job of this kind and payload with every option at its default.
    pub fn new(kind: Kind, payload: JsonText) -> Self {
        Self {
            kind,
            queue: QueueName::default(),
            priority: Priority::default(),
            payload,
            params: BTreeMap::new(),
            tags: Vec::new(),
            max_retries: Self::MAX_RETRIES_DEFAULT,
            backoff: Backoff::default(),
            timeout: None,
            resource: None,
            principal: None,
            trace: None,
        }
    }

    /// Whether it says the same, however the payload is written.
    pub fn means_the_same(&self, other: &Self) -> bool {
        self.payload.means_the_same(&other.payload) && Self { payload: other.payload.clone(), ..self.clone() } == *other
    }

    /// Checks what the field types cannot: counts, durations and param texts.
    pub fn check(&self) -> Result<(), InvalidInput> {
        limits::check_params(&self.params)?;
        limits::check_tag_count(self.tags.len())?;
        limits::check_max_retries(self.max_retries)?;
        self.backoff.check()?;
        if let Some(timeout) = self.timeout {
            limits::check_timeout(timeout)?;
        }
        if self.payload.as_str().len() > limits::PAYLOAD_BYTES_MAX {
            return Err(InvalidInput::new(
                "payload",
                format!("is {} bytes of JSON; the limit is {}", self.payload.as_str().len(), limits::PAYLOAD_BYTES_MAX),
            ));
        }
        Ok(())
    }
}

/// When a new job becomes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// This long after it is stored, or after it is released if it waits for others; by the database's clock.
    After(Duration),
    /// At this time; in the past means now, and it counts as waiting since then.
    At(Timestamp),
}

impl Due {
    /// As soon as it is stored.
    pub const NOW: Self = Self::After(Duration::ZERO);
}

/// What a new job starts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartState {
    /// Ready to run when due.
    #[default]
    Ready,
    /// Blocked until it is released.
    Waiting,
}

/// How a job came to be; kept for display, filters and the routing of effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobType {
    /// Submitted on its own.
    #[default]
    Single,
    /// Submitted by another job's end.
    Callback,
    /// A step of a chain after the first.
    ChainStep,
    /// A step of a workflow that runs if a condition holds.
    WorkflowBranch,
    /// A step of a workflow that waits for several others.
    WorkflowJoin,
    /// Tells whether a condition holds.
    Condition,
    /// Stands for a batch.
    BatchParent,
    /// One of the jobs of a batch.
    BatchChild,
    /// Fired by a schedule.
    Recurring,
}

impl JobType {
    /// Every type.
    pub const ALL: [Self; 9] = [
        Self::Single,
        Self::Callback,
        Self::ChainStep,
        Self::WorkflowBranch,
        Self::WorkflowJoin,
        Self::Condition,
        Self::BatchParent,
        Self::BatchChild,
        Self::Recurring,
    ];

    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Single => "SINGLE",
            Self::Callback => "CALLBACK",
            Self::ChainStep => "CHAIN_STEP",
            Self::WorkflowBranch => "WORKFLOW_BRANCH",
            Self::WorkflowJoin => "WORKFLOW_JOIN",
            Self::Condition => "CONDITION",
            Self::BatchParent => "BATCH_PARENT",
            Self::BatchChild => "BATCH_CHILD",
            Self::Recurring => "RECURRING",
        }
    }
}

impl fmt::Display for JobType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for JobType {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        Self::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
            let known = Self::ALL.map(|known| known.as_str().to_ascii_lowercase()).join(", ");
            InvalidInput::new("job_type", format!("is {text:?}; use one of {known}"))
        })
    }
}

/// The job whose end a callback was submitted for, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The finished job.
    pub job_id: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its params.
    pub params: BTreeMap<String, String>,
    /// Its result, if it succeeded and had one.
    pub result: Option<JsonText>,
    /// Its sanitized error, if it failed.
    pub error: Option<String>,
}

/// A job that is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Its id, made by the caller.
    pub id: JobId,
    /// What it does.
    pub spec: JobSpec,
    /// How it came to be.
    pub job_type: JobType,
    /// When it becomes due.
    pub due: Due,
    /// What it starts as.
    pub start: StartState,
    /// At most one live job holds this key.
    pub business_key: Option<BusinessKey>,
    /// A later submit with this key gets this job instead.
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
    /// How many edges and signals it waits for; [`link`](crate::flow::link) counts.
    pub waits_for: u32,
    /// The signal that it waits for; [`awaiting`](Self::awaiting) sets it with what goes along.
    pub signal: Option<SignalWait>,
}

impl NewJob {
    /// A single job, due at once, without keys or callbacks.
    pub fn new(id: JobId, spec: JobSpec) -> Self {
        Self {
            id,
            spec,
            job_type: JobType::Single,
            due: Due::NOW,
            start: StartState::Ready,
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
            signal: None,
        }
    }

    /// Checks what the field types cannot.
    pub fn check(&self) -> Result<(), InvalidInput> {
        self.spec.check()?;
        if let Due::After(delay) = self.due {
            limits::check_delay("delay", delay)?;
        }
        if let Some(signal) = &self.signal {
            signal.check()?;
        }
        for (field, callback) in [("on_success", &self.on_success), ("on_failure", &self.on_failure)] {
            if let Some(callback) = callback {
                callback.check().map_err(|e| InvalidInput::new(format!("{field}.{}", e.field()), e.problem()))?;
            }
        }
        Ok(())
    }
}
