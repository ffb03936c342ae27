//! Real servers that are started, killed, started again and removed.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod client;
mod mysql;
mod orphan;
mod pgbouncer;
mod postgres;
mod redis;
