//! The suites on the store and the bus in memory, and on stores that are broken on purpose.

mod broken;
mod coordinator;
mod flowing;
mod memory;
mod shared;
