//! The words and rules of Ratchet.
//!
//! This crate holds what every other part agrees on: ids, the job model and its limits, the states and the one
//! function that says which may follow which ([`transition`]), the pure decision from an attempt's outcome to what
//! the store must now do ([`mod@decide`]), the traits that a store implements ([`store`]), and how nodes tell each other of
//! new work ([`coordinator`]).
//!
//! It performs no I/O, starts no task and reads no clock: time and randomness come in as arguments.

// Rooms in reading order; their modules are the crate's own.
mod job;
mod rules;
pub mod flow;
pub mod signal;
pub mod batch;
pub mod schedule;
mod query;
mod cluster;
pub mod coordinator;
pub mod store;
pub mod memory;
pub mod clock;
pub mod error;

pub use cluster::{breaker_order, node, resource, service};
pub use job::{
    backoff, id, invalid, json, limits, name, prepare, priority, record, spec, state, trace, transition, uuid7,
};
pub use query::{count, explain, insight, job_head, job_log, page};
pub use rules::{breaker, claim, control, dead_letter, decide, outcome, retention, settle, settlement, submit};

pub use backoff::Backoff;
pub use batch::{Batch, BatchProgress, BatchSummary};
pub use breaker::{Admission, BreakerConfig, BreakerState, CallEnd, Ticket};
pub use breaker_order::{BreakerOrder, BreakerRecord, NodeBreaker};
pub use claim::{Claim, ClaimRequest, Fence, Input, Pool};
pub use clock::{Clock, ManualClock};
pub use coordinator::{ClusterCoordinator, Hint};
pub use count::{CountBy, Counted};
pub use dead_letter::{DeadLetter, DeadLetterFilter, DeadLetterGroup, Fingerprint, HeldKey};
pub use decide::{Decision, decide};
pub use error::{ErrorKind, StoreError};
pub use flow::{Edge, JobFlags};
pub use id::{DeliveryId, JobId, NodeId};
pub use invalid::InvalidInput;
pub use job_head::JobHead;
pub use job_log::{LogFilter, LogLevel, LogLine, LogPage, LogPlace};
pub use json::JsonText;
pub use memory::MemoryStore;
pub use name::{
    BusinessKey, IdempotencyKey, Kind, NodeName, Principal, QueueName, ResourceName, ServiceName, SignalKey, StepName,
    Tag,
};
pub use outcome::{DeferReason, ErrorReport, Outcome, Verdicts};
pub use priority::Priority;
pub use record::{AttemptRecord, AttemptStatus, JobRecord};
pub use resource::{ResourceLimit, ResourceRecord};
pub use retention::Retention;
pub use settlement::{Change, Followed, FollowedBy, Settled, Settlement};
pub use signal::{Signal, SignalDecision, SignalRecord, SignalWait};
pub use spec::{Due, JobSpec, JobType, NewJob, Origin, StartState};
pub use state::JobState;
pub use store::Store;
pub use trace::TraceContext;
pub use transition::Event;

/// A point in time, as jobs know it: UTC, stored with microsecond precision.
pub use jiff::Timestamp;
