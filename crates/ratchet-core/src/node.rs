//! What a store knows of nodes, queues and leases.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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

/// What a node says of itself when it registers, as far as others heed it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct NodeInfo {
    pub(crate) kinds: Vec<String>,
    pub(crate) queues: Vec<String>,
    pub(crate) slots: u64,
    /// What its kinds call, where that is not the kind itself.
    services: BTreeMap<String, String>,
}

impl NodeInfo {
    pub(crate) fn of(node: &NodeRecord) -> Self {
        node.info.decode().unwrap_or_default()
    }

    /// What jobs of this kind call there: one that names no service is its own.
    pub(crate) fn service_of<'a>(&'a self, kind: &'a str) -> &'a str {
        self.services.get(kind).map_or(kind, String::as_str)
    }

    /// Whether jobs that the node runs call this service.
    pub(crate) fn calls(&self, service: &str) -> bool {
        self.kinds.iter().any(|kind| self.service_of(kind) == service)
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
