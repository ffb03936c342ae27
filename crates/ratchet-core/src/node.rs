//! What a store knows of nodes, queues and leases.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::id::NodeId;
use crate::json::JsonText;
use crate::name::{NodeName, QueueName};
use crate::service::NodeServices;
use crate::state::JobState;

/// A node that begins its life.
#[derive(Debug, Clone)]
pub struct NodeRegistration {
    /// This incarnation.
    pub id: NodeId,
    /// Its label for people.
    pub name: NodeName,
    /// What it runs: version, kinds, queues.
    pub info: JsonText,
}

/// What a node says of itself with every heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NodeVitals {
    /// How many jobs it runs.
    pub running: u32,
    /// How far its clock is ahead of the database's, in microseconds; below zero if it is behind. `None` until it has
    /// been measured.
    pub clock_skew_us: Option<i64>,
    /// Services whose circuit breaker is not closed there.
    pub services: NodeServices,
}

/// A node as the store knows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NodeRecord {
    /// This incarnation.
    pub id: NodeId,
    /// Its label for people.
    pub name: NodeName,
    /// What it runs.
    pub info: JsonText,
    /// When it registered.
    pub started_at: Timestamp,
    /// When it was last heard of.
    pub last_heartbeat: Timestamp,
    /// What it said of itself then.
    pub vitals: NodeVitals,
    /// When another node declared it dead.
    pub dead_at: Option<Timestamp>,
}

impl NodeRecord {
    /// A node that has just registered.
    pub fn registered(node: &NodeRegistration, now: Timestamp) -> Self {
        Self::from_parts(node.id, node.name.clone(), node.info.clone(), now, now, NodeVitals::default(), None)
    }

    /// A node from what a store kept of it.
    pub fn from_parts(
        id: NodeId,
        name: NodeName,
        info: JsonText,
        started_at: Timestamp,
        last_heartbeat: Timestamp,
        vitals: NodeVitals,
        dead_at: Option<Timestamp>,
    ) -> Self {
        Self { id, name, info, started_at, last_heartbeat, vitals, dead_at }
    }
}

/// A queue as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueRecord {
    /// Its name.
    pub name: QueueName,
    /// Whether claims pass it by.
    pub paused: bool,
    /// Live jobs by state.
    pub live: BTreeMap<JobState, u64>,
}
