//! The parts that the transports of hints share.
//!
//! A transport implements [`ClusterCoordinator`](ratchet_core::ClusterCoordinator) with a [`Hub`], which owns the
//! listeners and the counters, encodes and decodes hints as text, and decides when they are sent. Only moving the text
//! is left to the transport.

mod envelope;
mod failures;
mod hub;

pub use envelope::{ENVELOPE_CHARS_MAX, Envelope, Rejected};
pub use failures::Failures;
pub use hub::{Hub, ORIGINS_MAX, WINDOW};
