//! What is MySQL and MariaDB's own; what every store must do is in `ratchet-conformance`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod conformance;
mod database;
mod isolation;
mod lists;
mod migrate;
mod plan;

use ratchet_conformance::success;
use ratchet_testdb::suite::{job, register, request, run};
