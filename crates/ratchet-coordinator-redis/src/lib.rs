//! Word of new work between Ratchet nodes, over Redis pub/sub.
//!
//! For installations whose database cannot tell nodes of each other's submits, or that have a Redis anyway. Jobs do not
//! go through Redis: a message says that there is work, and the node then looks into its store. Losing the server costs
//! latency and nothing else.

mod coordinator;
mod link;
mod options;

pub use coordinator::RedisCoordinator;
pub use options::{ConnectError, RedisOptions};
