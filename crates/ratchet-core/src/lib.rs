//! The words and rules of Ratchet.
//!
//! This crate holds what every other part agrees on: ids, the job model and its limits, the states and the one
//! function that says which may follow which ([`transition`]), the pure decision from an attempt's outcome to what
//! the store must now do ([`mod@decide`]), the traits that a store implements ([`store`]), and how nodes tell each other of
//! new work ([`coordinator`]).
//!
//! It performs no I/O, starts no task and reads no clock: time and randomness come in as arguments.

pub mod backoff;
pub mod batch;
pub mod breaker;
pub mod breaker_order;
pub mod claim;
pub mod clock;
pub mod control;
pub mod coordinator;
pub mod count;
pub mod dead_letter;
pub mod decide;
pub mod error;
pub mod explain;
pub mod flow;
pub mod id;
pub mod insight;
pub mod invalid;
pub mod job_head;
pub mod job_log;
pub mod json;
pub mod limits;
pub mod memory;
pub mod name;
pub mod node;
pub mod outcome;
pub mod page;
pub mod prepare;
pub mod priority;
pub mod record;
pub mod resource;
pub mod retention;
pub mod schedule;
pub mod service;
pub mod settle;
pub mod settlement;
pub mod signal;
pub mod spec;
pub mod state;
pub mod store;
pub mod submit;
pub mod trace;
pub mod transition;
pub mod uuid7;

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
