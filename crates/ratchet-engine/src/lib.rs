//! The running machine of Ratchet: client, poller, runner, settler, heartbeat and rescue.
//!
//! It names no database: everything goes through the traits of [`ratchet_core::store`].

mod announcer;
mod batch;
mod beat_interval;
mod builder;
mod client;
mod config;
mod context;
mod deadline;
mod enqueue;
mod events;
pub mod failure;
mod gate;
mod handle;
mod hooks;
mod ids;
mod inject;
mod job;
mod polling;
mod pulse;
mod pump;
mod ratchet;
mod reconcile;
mod registry;
mod rescue;
mod retry;
mod run;
mod sanitize;
mod schedule;
mod signal;
mod signal_limit;
mod skew;
mod slots;
mod stats;
mod step;
mod submitter;
mod testing;
mod turn;
mod wake;
mod workflow;

pub use batch::{BatchBuilder, BatchHandle, FeedError, OpenBatch, ProgressStream};
pub use builder::{RatchetBuilder, StartError};
pub use client::Client;
pub use config::Slots;
pub use context::{JobContext, JobLog};
pub use enqueue::{Enqueue, SubmitError};
pub use events::{EventStream, JobEvent, JobEventKind};
pub use failure::{BoxError, Failure, JobError};
pub use handle::{JobHandle, ResultError};
pub use hooks::{HostIdentity, LifecycleHook, NodeIdentity};
pub use ids::{SystemClock, new_job_id, new_node_id};
pub use inject::{Requirement, State};
pub use job::{Job, JobDefaults};
pub use polling::{AdaptivePolling, AdaptiveWaits, Poll, PollingStrategy};
pub use ratchet::Ratchet;
pub use registry::{JobConstructor, Registration, registration_of};
pub use retry::{DefaultRetryPolicy, RetryPolicy, RetryVerdict};
pub use sanitize::{DefaultErrorSanitizer, ErrorSanitizer};
pub use schedule::{ScheduleBuilder, ScheduleHandle, Scheduled};
pub use signal::{KEEP_FOR_DEFAULT, SendSignal, SignalError, SignalOutcome};
pub use stats::Stats;
pub use step::{IntoStep, JobExt, Step, StepOptions};
pub use testing::TestContext;
pub use workflow::{
    ConditionStep, FromPrev, IntoBranch, Prev, ResultAt, ResultCondition, When, WorkflowBuilder, WorkflowHandle,
    condition_registration_of, result,
};
