//! The suite that every Ratchet store passes, and in [`coordinator`] that of every cluster coordinator.
//!
//! It is public, so that anyone's store can prove itself. A store's test is a function that gives a fresh, empty store,
//! and one line; every case becomes a test of its own name:
//!
//! ```
//! use ratchet_conformance::Fixture;
//! use ratchet_core::MemoryStore;
//!
//! async fn fresh() -> Fixture {
//!     let (store, _clock) = MemoryStore::manual();
//!     Fixture::new(store, ())
//! }
//!
//! ratchet_conformance::suite!(fresh);
//! # fn main() {}
//! ```
//!
//! The suite tests itself too: [`broken`] holds stores that break one rule each, and every [`Case`] names those that must
//! turn it red.
//!
//! `RATCHET_SEED` repeats a random case with the seed that its failure printed.

#![allow(clippy::unwrap_used, reason = "the crate is a test: a panic is its way to say that a store is wrong")]

pub mod broken;
pub mod coordinator;
pub mod cost;
pub mod scene;

mod harness;
mod branches;
mod cases;

mod archive;
mod batches;
mod breakers;
mod claim;
mod cluster;
mod control;
mod counts;
mod dead_letters;
mod declarations;
mod delete;
mod effects;
mod growth;
mod insight;
mod job_log;
mod keys;
mod leases;
mod mailbox;
mod next_due;
mod order;
mod permits;
mod query;
mod queues;
mod races;
mod random;
mod schedules;
mod replace;
mod retry;
mod revivals;
mod schedule_queues;
mod settle;
mod signals;
mod submit;
mod texts;
mod unwanted;
mod walk;
mod workflows;

use std::future::Future;
use std::pin::Pin;

pub use cases::CASES;
pub use harness::{Fixture, Harness, success};

/// One thing that a store must do right.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// What must be true, as a sentence.
    pub name: &'static str,
    /// Runs it; panics if it is not true.
    pub run: fn(Harness) -> Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The broken stores that must make it panic.
    pub broken_by: &'static [broken::Flaw],
}

/// Runs the case of this name on a fresh store; panics if the store is wrong. [`suite!`] calls it for every case.
pub fn run<F: Future<Output = Fixture>>(name: &str, fixture: impl FnOnce() -> F) {
    let case = CASES.iter().find(|case| case.name == name).expect("the list of cases knows its own names");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a test can start a runtime");
    runtime.block_on(async { (case.run)(Harness::new(fixture().await).await).await });
}
