//! Real processes on one SQLite file and on real servers: killed, stopped, aborted, cut off, with servers that come and go.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod abort;
mod blocked;
mod broken;
mod checker;
mod cluster;
mod dead_node;
mod death;
mod exactly_once;
mod full_disk;
mod kill;
mod kill_flow;
mod lost_reply;
mod permits;
mod site;
mod stop;
mod timed;
mod trials;
mod until;
mod vanish;
