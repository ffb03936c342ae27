//! Durable background jobs for Rust, on the database you already have.
//!
//! A job is an `async fn`. Submitting it writes a row; when `submit` returns, the job will run, whatever crashes in
//! between: on this node or on another, now or after a restart, with retries, timeouts and a dead letter queue. There is
//! no broker to operate. One process with a SQLite file is the smallest installation, and no node is special.
//!
//! ```rust,standalone_crate
//! use ratchet::prelude::*;
//!
//! #[derive(Debug, thiserror::Error, JobError)]
//! enum ChargeError {
//!     #[error("amount is zero")]
//!     #[do_not_retry("the amount will not change")]
//!     Nothing,
//!     #[error("gateway unreachable")]
//!     Gateway(#[source] std::io::Error),
//! }
//!
//! #[job(kind = "billing.charge", max_retries = 5, backoff = "exponential 2s", timeout = "30s")]
//! async fn charge(ctx: &JobContext, gateway: State<Gateway>, invoice: u64, cents: u64) -> Result<String, ChargeError> {
//!     ctx.log().info("charging");
//!     gateway.charge(invoice, cents).await
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   let dir = tempfile::tempdir()?;
//! #   std::env::set_current_dir(&dir)?;
//!     let store = SqliteStore::open("jobs.db").await?;
//!     let ratchet = Ratchet::builder().store(store).jobs(jobs![charge]).state(Gateway).start().await?;
//!     let handle = ratchet.enqueue(charge(17, 4_200)).priority(Priority::High).tags(["billing"]).submit().await?;
//!     println!("receipt {}", handle.result().await?);
//!     ratchet.shutdown().await;
//!     Ok(())
//! }
//! #
//! # struct Gateway;
//! # impl Gateway {
//! #     async fn charge(&self, invoice: u64, cents: u64) -> Result<String, ChargeError> {
//! #         if cents == 0 { Err(ChargeError::Nothing) } else { Ok(format!("{invoice}-{cents}")) }
//! #     }
//! # }
//! ```
//!
//! # Where to look
//!
//! | to | see |
//! |---|---|
//! | write a job | [`#[job]`](macro@job), or the trait [`Job`] by hand |
//! | reach what the application has | [`State`], [`JobContext`] |
//! | say which errors are worth another attempt | [`derive(JobError)`](derive@JobError), [`Failure`] |
//! | run jobs | [`Ratchet::builder`] |
//! | only submit and steer them | [`Ratchet::client`] |
//! | submit with options | [`Client::enqueue`], [`Enqueue`] |
//! | follow a job and read its result | [`JobHandle`] |
//! | let jobs follow each other | [`Enqueue::then`], [`Enqueue::when`], [`Client::workflow`], [`Prev`], [`#[condition]`](macro@condition) |
//! | fire jobs again and again | `#[job(cron = "…")]`, [`Client::schedule`] |
//! | let a job wait for a person, or for another system | [`Enqueue::await_signal`], [`Client::signal`], [`JobContext::signal`] |
//! | count many jobs together | [`Client::batch`], [`BatchHandle`] |
//! | submit or complete in a transaction of your own | `SubmitIn` and `CompleteIn` in `ratchet::sqlite`, `ratchet::postgres`, `ratchet::mysql` |
//! | hear what happens | [`Client::events`], [`JobEvent`] |
//! | say what may be submitted, and who may do and see what | [`JobPolicy`], [`AllowList`], [`Client::as_principal`], [`Authorizer`], [`OwnJobs`] |
//! | keep arguments and results from being read in the database | [`PayloadCodec`] |
//! | run handlers on a runtime of their own | [`ExecutorProvider`] |
//! | write into a job's log, and read it | [`JobContext::log`], [`Client::job_log`], [`JobLogs`], [`JobLogSink`] |
//! | follow a trace into a job and out of it | [`Enqueue::trace_context`], [`JobContext::trace_context`], [`TraceCapture`] |
//! | leave a service alone while it fails | `#[job(service = "…")]`, [`BreakerConfig`], [`Ratchet::services`], [`Client::open_breaker`] |
//! | know whether a node is well | [`Ratchet::health`], [`HealthProbe`] |
//! | watch metrics | [`metrics`], [`MetricsCollector`], the feature `prometheus` |
//! | change how Ratchet decides | [`RetryPolicy`], [`ResilienceStrategy`], [`ErrorSanitizer`], [`PollingStrategy`], [`LifecycleHook`], [`NodeIdentity`] |
//! | write a store | [`store`], and the suite in `ratchet-conformance` |
//! | wake nodes of other processes | [`RatchetBuilder::coordinator`], [`ClusterCoordinator`] |
//!
//! # What is promised
//!
//! A job runs at least once: after a crash it runs again, so its effects should bear repeating, or be committed together
//! with its completion in one transaction. Of two nodes, one owns a job; a node that lost it can write nothing about it.
//! An outcome and everything that follows from it are one transaction.
//!
//! # Features
//!
//! | feature | gives | by default |
//! |---|---|---|
//! | `macros` | [`#[job]`](macro@job) and [`derive(JobError)`](derive@JobError) | yes |
//! | `sqlite` | the store in a SQLite file, in `ratchet::sqlite` | yes |
//! | `postgres` | the store on PostgreSQL, in `ratchet::postgres` | no |
//! | `mysql` | the store on MySQL and MariaDB, in `ratchet::mysql` | no |
//! | `prometheus` | the metrics of the process in Prometheus' text form, in `ratchet::prometheus` | no |
//! | `log-layer` | `JobLogLayer`, which brings what is given to `tracing` into jobs' logs | no |
//! | `redis` | word of new work between nodes over Redis, in `ratchet::redis` | no |

mod address;
pub mod coordinator;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod prelude;
#[cfg(feature = "prometheus")]
pub mod prometheus;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[doc(hidden)]
pub mod __private;

// Writing jobs.
pub use ratchet_engine::BoxError;
pub use ratchet_engine::Failure;
pub use ratchet_engine::Job;
pub use ratchet_engine::JobContext;
pub use ratchet_engine::JobDefaults;
pub use ratchet_engine::JobError;
pub use ratchet_engine::Requirement;
pub use ratchet_engine::State;
#[cfg(feature = "macros")]
pub use ratchet_macros::JobError;
#[cfg(feature = "macros")]
pub use ratchet_macros::condition;
#[cfg(feature = "macros")]
pub use ratchet_macros::job;

// Running them.
pub use ratchet_engine::Health;
pub use ratchet_engine::HealthProbe;
pub use ratchet_engine::JobConstructor;
pub use ratchet_engine::LastSuccess;
pub use ratchet_engine::Ratchet;
pub use ratchet_engine::RatchetBuilder;
pub use ratchet_engine::Registration;
pub use ratchet_engine::Slots;
pub use ratchet_engine::StartError;
pub use ratchet_engine::Stats;
pub use ratchet_engine::TestContext;
pub use ratchet_engine::Timing;
pub use ratchet_engine::condition_registration_of;
pub use ratchet_engine::conditions;
pub use ratchet_engine::jobs;
pub use ratchet_engine::registration_of;

// Submitting and steering them.
pub use ratchet_engine::Client;
pub use ratchet_engine::Enqueue;
pub use ratchet_engine::IntoStep;
pub use ratchet_engine::JobExt;
pub use ratchet_engine::JobHandle;
pub use ratchet_engine::ResultError;
pub use ratchet_engine::Step;
pub use ratchet_engine::StepOptions;
pub use ratchet_engine::SubmitError;
pub use ratchet_engine::SubmittedKind;

// Seeing how it goes.
pub use ratchet_core::BreakerRecord;
pub use ratchet_core::NodeBreaker;
pub use ratchet_core::explain::Explanation;
pub use ratchet_core::explain::Reason;
pub use ratchet_core::insight::Depth;
pub use ratchet_core::insight::Percentiles;
pub use ratchet_core::insight::QueueHealth;
pub use ratchet_core::insight::Recent;
pub use ratchet_engine::BreakerOrdered;

// Saying who may do what.
pub use ratchet_engine::Action;
pub use ratchet_engine::AllowList;
pub use ratchet_engine::AllowRule;
pub use ratchet_engine::Authorizer;
pub use ratchet_engine::Denied;
pub use ratchet_engine::JobPolicy;
pub use ratchet_engine::OwnJobs;
pub use ratchet_engine::PolicyRefusal;
pub use ratchet_engine::Scope;
pub use ratchet_engine::Target;

// Caring for what has ended.
pub use ratchet_core::DeadLetter;
pub use ratchet_core::DeadLetterFilter;
pub use ratchet_core::DeadLetterGroup;
pub use ratchet_core::Fingerprint;
pub use ratchet_core::HeldKey;
pub use ratchet_core::Retention;
pub use ratchet_core::page::ArchiveScope;
pub use ratchet_core::store::RetriedAll;
pub use ratchet_engine::BulkEvent;
pub use ratchet_engine::BulkEventKind;
pub use ratchet_engine::BulkEventStream;
pub use ratchet_engine::DeadLetterGroups;

// Letting them follow each other.
pub use ratchet_core::Edge;
pub use ratchet_core::Input;
pub use ratchet_core::StepName;
pub use ratchet_core::flow;
pub use ratchet_core::flow::Condition;
pub use ratchet_core::flow::Join;
pub use ratchet_core::flow::WorkflowState;
pub use ratchet_engine::ConditionStep;
pub use ratchet_engine::FromPrev;
pub use ratchet_engine::IntoBranch;
pub use ratchet_engine::Prev;
pub use ratchet_engine::ResultAt;
pub use ratchet_engine::ResultCondition;
pub use ratchet_engine::When;
pub use ratchet_engine::WorkflowBuilder;
pub use ratchet_engine::WorkflowHandle;
pub use ratchet_engine::result;

// Firing them again and again.
pub use ratchet_core::schedule;
pub use ratchet_core::schedule::DstPolicy;
pub use ratchet_core::schedule::MisfirePolicy;
pub use ratchet_core::schedule::OverlapPolicy;
pub use ratchet_core::schedule::ScheduleFilter;
pub use ratchet_core::schedule::ScheduleRecord;
pub use ratchet_engine::ScheduleBuilder;
pub use ratchet_engine::ScheduleHandle;
pub use ratchet_engine::Scheduled;

// Letting them wait for signals.
pub use ratchet_core::DeliveryId;
pub use ratchet_core::Signal;
pub use ratchet_core::SignalDecision;
pub use ratchet_core::SignalKey;
pub use ratchet_core::SignalRecord;
pub use ratchet_engine::KEEP_FOR_DEFAULT;
pub use ratchet_engine::SendSignal;
pub use ratchet_engine::SignalError;
pub use ratchet_engine::SignalOutcome;
// Counting many of them together.
pub use ratchet_core::Batch;
pub use ratchet_core::BatchProgress;
pub use ratchet_core::BatchSummary;
pub use ratchet_core::batch::ProgressEvery;
pub use ratchet_engine::BatchBuilder;
pub use ratchet_engine::BatchHandle;
pub use ratchet_engine::FeedCause;
pub use ratchet_engine::FeedError;
pub use ratchet_engine::OpenBatch;
pub use ratchet_engine::ProgressStream;

// Reading what they wrote down, and following them through other systems.
pub use ratchet_core::LogFilter;
pub use ratchet_core::LogLevel;
pub use ratchet_core::LogLine;
pub use ratchet_core::LogPage;
pub use ratchet_core::LogPlace;
pub use ratchet_core::TraceContext;
pub use ratchet_core::trace;
pub use ratchet_engine::JobLog;
#[cfg(feature = "log-layer")]
pub use ratchet_engine::JobLogLayer;
pub use ratchet_engine::JobLogSink;
pub use ratchet_engine::JobLogs;
pub use ratchet_engine::LogSinkError;
pub use ratchet_engine::TraceCapture;

// Hearing of them.
pub use ratchet_core::DeferReason;
pub use ratchet_core::settlement::DeadLetterReason;
pub use ratchet_engine::EventStream;
pub use ratchet_engine::JobEvent;
pub use ratchet_engine::JobEventKind;

// Changing how Ratchet decides.
pub use ratchet_core::Admission;
pub use ratchet_core::BreakerConfig;
pub use ratchet_core::BreakerState;
pub use ratchet_core::CallEnd;
pub use ratchet_core::Clock;
pub use ratchet_core::ClusterCoordinator;
pub use ratchet_core::Hint;
pub use ratchet_core::Ticket;
pub use ratchet_engine::AdaptivePolling;
pub use ratchet_engine::AdaptiveWaits;
pub use ratchet_engine::AlwaysAdmit;
pub use ratchet_engine::Attempt;
pub use ratchet_engine::CircuitBreakers;
pub use ratchet_engine::CodecError;
pub use ratchet_engine::DefaultErrorSanitizer;
pub use ratchet_engine::DefaultRetryPolicy;
pub use ratchet_engine::ErrorSanitizer;
pub use ratchet_engine::ExecutorProvider;
pub use ratchet_engine::FacadeMetrics;
pub use ratchet_engine::HostIdentity;
pub use ratchet_engine::LifecycleHook;
pub use ratchet_engine::MetricsCollector;
pub use ratchet_engine::NodeIdentity;
pub use ratchet_engine::Part;
pub use ratchet_engine::PayloadCodec;
pub use ratchet_engine::Poll;
pub use ratchet_engine::PollingStrategy;
pub use ratchet_engine::ResilienceStrategy;
pub use ratchet_engine::RetryPolicy;
pub use ratchet_engine::RetryVerdict;
pub use ratchet_engine::ServiceState;
pub use ratchet_engine::SystemClock;
pub use ratchet_engine::metrics;
pub use ratchet_engine::new_node_id;

// The words of jobs: ids, names, states, records.
pub use ratchet_core::AttemptRecord;
pub use ratchet_core::AttemptStatus;
pub use ratchet_core::Backoff;
pub use ratchet_core::BusinessKey;
pub use ratchet_core::CountBy;
pub use ratchet_core::Counted;
pub use ratchet_core::ErrorKind;
pub use ratchet_core::IdempotencyKey;
pub use ratchet_core::InvalidInput;
pub use ratchet_core::JobId;
pub use ratchet_core::JobRecord;
pub use ratchet_core::JobSpec;
pub use ratchet_core::JobState;
pub use ratchet_core::JobType;
pub use ratchet_core::JsonText;
pub use ratchet_core::Kind;
pub use ratchet_core::NodeId;
pub use ratchet_core::NodeName;
pub use ratchet_core::Origin;
pub use ratchet_core::Principal;
pub use ratchet_core::Priority;
pub use ratchet_core::QueueName;
pub use ratchet_core::ResourceLimit;
pub use ratchet_core::ResourceName;
pub use ratchet_core::ResourceRecord;
pub use ratchet_core::ServiceName;
pub use ratchet_core::StoreError;
pub use ratchet_core::Tag;
/// A point in time, as jobs know it: UTC, stored with microsecond precision.
pub use ratchet_core::Timestamp;
pub use ratchet_core::node::NodeInfo;
pub use ratchet_core::node::NodeRecord;
pub use ratchet_core::node::NodeVitals;
pub use ratchet_core::node::PoolInfo;
pub use ratchet_core::node::QueueRecord;
pub use ratchet_core::page::JobCursor;
pub use ratchet_core::page::JobFilter;
pub use ratchet_core::page::ListCursor;
pub use ratchet_core::page::ListOrder;
pub use ratchet_core::page::Page;
pub use ratchet_core::record::AttemptTiming;
pub use ratchet_core::service::NodeServices;
pub use ratchet_core::service::ServiceStand;
pub use ratchet_core::service::ServiceVitals;
pub use ratchet_core::store::LastAttempts;

// Stores.
pub use address::open_store;
pub use ratchet_core::ManualClock;
pub use ratchet_core::MemoryStore;
pub use ratchet_core::Store;
pub use ratchet_core::limits;
pub use ratchet_core::store;
