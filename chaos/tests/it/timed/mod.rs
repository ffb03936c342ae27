//! Tests that measure time, or use all that the machine has: nothing else runs beside them.

mod archiving;
mod dead_node;
mod drain;
mod schedules;

pub(crate) use dead_node::time_to_run_elsewhere;
