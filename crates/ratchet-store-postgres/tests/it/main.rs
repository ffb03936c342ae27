//! What is PostgreSQL's own; what every store must do is in `ratchet-conformance`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod bursts;
mod conformance;
mod coordinator;
mod database;
mod isolation;
mod lists;
mod migrate;
mod outages;
mod plan;
mod pooled;
mod timed;

use ratchet_conformance::success;
use ratchet_testdb::suite::{job, register, request, run};
