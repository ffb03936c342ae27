//! The engine on the in-memory store: what a user sees, and what happens when the store fails.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod batches;
mod callbacks;
mod control;
mod events;
mod faults;
mod faulty;
mod hints;
mod inputs;
mod lifecycle;
mod schedules;
mod signals;
mod start;
mod support;
mod vitals;
mod wakeups;
mod workflows;
