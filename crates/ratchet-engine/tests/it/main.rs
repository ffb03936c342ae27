//! The engine on the in-memory store: what a user sees, and what happens when the store fails.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod batches;
mod breaker_orders;
mod breakers;
mod callbacks;
mod callers;
mod retention;
mod codecs;
mod control;
mod events;
mod executors;
mod faults;
mod faulty;
mod health;
mod hints;
mod inputs;
mod insight;
mod job_logs;
mod lifecycle;
#[cfg(feature = "log-layer")]
mod log_layer;
mod metrics;
mod panics;
mod overlap;
mod permits;
mod policies;
mod schedules;
mod shapes;
mod signals;
mod spans;
mod start;
mod support;
mod timed;
mod traces;
mod upkeep;
mod vitals;
mod unwanted;
mod workflows;
