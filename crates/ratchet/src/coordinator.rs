//! Hints between nodes, and the parts of a transport of your own.

pub use ratchet_coordinator::ENVELOPE_CHARS_MAX;
pub use ratchet_coordinator::Envelope;
pub use ratchet_coordinator::Failures;
pub use ratchet_coordinator::Hub;
pub use ratchet_coordinator::ORIGINS_MAX;
pub use ratchet_coordinator::Rejected;
pub use ratchet_coordinator::WINDOW;
pub use ratchet_core::coordinator::ClusterCoordinator;
pub use ratchet_core::coordinator::CoordinatorStats;
pub use ratchet_core::coordinator::Hint;
pub use ratchet_core::coordinator::ListenGuard;
pub use ratchet_core::coordinator::Listener;
pub use ratchet_core::coordinator::NoCoordinator;
