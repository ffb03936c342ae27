//! The running machine of Ratchet: client, poller, runner, settler, heartbeat and rescue.
//!
//! It names no database: everything goes through the traits of [`ratchet_core::store`].

// The life of a job: what a user writes, submit, claim, run and settle, events.
mod job;
mod submit;
mod client;
mod pump;
mod run;
mod observe;
mod job_log;

// Jobs that belong together.
mod workflow;
mod batch;
mod schedule;

// The node around them.
mod guard;
mod node;
mod upkeep;
mod retention;
mod protect;
mod announcer;

#[cfg(test)]
mod log_lines;

pub use batch::{BatchBuilder, BatchHandle, FeedCause, FeedError, OpenBatch, ProgressStream};
pub use client::Client;
pub use client::handle::{JobHandle, ResultError};
pub use client::signals::{KEEP_FOR_DEFAULT, SendSignal, SignalError, SignalOutcome};
pub use job::failure::{self, BoxError, Failure, JobError};
pub use job::inject::{Requirement, State};
pub use job::registry::{JobConstructor, Registration, registration_of};
pub use job::testing::TestContext;
pub use job::{Job, JobDefaults};
#[cfg(feature = "log-layer")]
pub use job_log::JobLogLayer;
pub use job_log::{JobLog, JobLogSink, JobLogs, LogSinkError};
pub use node::builder::RatchetBuilder;
pub use node::config::Slots;
pub use node::hooks::{HostIdentity, LifecycleHook, NodeIdentity};
pub use node::ids::{SystemClock, new_job_id, new_node_id};
pub use node::ratchet::Ratchet;
pub use node::start::StartError;
pub use node::timing::Timing;
pub use observe::bus::EventStream;
pub use observe::events::{JobEvent, JobEventKind};
pub use observe::health::{Health, HealthProbe};
pub use observe::metrics::{self, FacadeMetrics, MetricsCollector};
pub use observe::stats::{LastSuccess, Stats};
pub use observe::trace::TraceCapture;
pub use protect::authorizer::{Action, Authorizer, Denied, OwnJobs, Scope, Target};
pub use protect::breaker_orders::BreakerOrdered;
pub use protect::codec::{CodecError, Part, PayloadCodec};
pub use protect::policy::{AllowList, AllowRule, JobPolicy, PolicyRefusal};
pub use protect::resilience::{AlwaysAdmit, CircuitBreakers, ResilienceStrategy, ServiceState};
pub use pump::polling::{AdaptivePolling, AdaptiveWaits, Poll, PollingStrategy};
pub use retention::{BulkEvent, BulkEventKind, BulkEventStream, DeadLetterGroups};
pub use run::context::JobContext;
pub use run::executor::{Attempt, ExecutorProvider};
pub use run::retry::{DefaultRetryPolicy, RetryPolicy, RetryVerdict};
pub use run::sanitize::{DefaultErrorSanitizer, ErrorSanitizer};
pub use schedule::{ScheduleBuilder, ScheduleHandle, Scheduled};
pub use submit::enqueue::Enqueue;
pub use submit::error::{SubmitError, SubmittedKind};
pub use submit::step::{IntoStep, JobExt, Step, StepOptions};
pub use workflow::{
    ConditionStep, FromPrev, IntoBranch, Prev, ResultAt, ResultCondition, When, WorkflowBuilder, WorkflowHandle,
    condition_registration_of, result,
};
