//! The suite for coordinators, outages and nodes, on a real Redis server.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod connecting;
mod nodes;
mod outages;
mod suite;
