//! Word of new work between nodes over Redis pub/sub, for stores that cannot carry it themselves.

pub use ratchet_coordinator_redis::ConnectError;
pub use ratchet_coordinator_redis::RedisCoordinator;
pub use ratchet_coordinator_redis::RedisOptions;
