//! What a node reports: events, metrics, statistics, health and traces.

pub(crate) mod events;
pub(crate) mod settled_events;
pub(crate) mod bus;
pub mod metrics;
pub(crate) mod job_metrics;
pub(crate) mod stats;
pub(crate) mod health;
pub(crate) mod metered;
pub(crate) mod trace;
