//! Real processes on one SQLite file, killed, stopped and aborted with real signals.

mod abort;
mod blocked;
mod kill;
mod node;
mod stop;
