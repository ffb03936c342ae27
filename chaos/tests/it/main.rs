//! Real processes on one SQLite file, killed, stopped and aborted with real signals.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod abort;
mod blocked;
mod full_disk;
mod kill;
mod node;
mod stop;
