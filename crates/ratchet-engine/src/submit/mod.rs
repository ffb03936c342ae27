//! Submitting, in the order in which a job passes through it.
//!
//! A builder gathers options: [`enqueue`] over [`step`], or those of workflows and batches. They become a unit, which
//! [`unit`] submits: through the one door ([`admission`]), together with the units of concurrent callers ([`submitter`]).

pub(crate) mod step;
pub(crate) mod enqueue;
pub(crate) mod unit;
pub(crate) mod admission;
pub(crate) mod submitter;
pub(crate) mod error;
