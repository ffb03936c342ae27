//! What a store knows of nodes, queues and leases.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::clock::elapsed;
use crate::id::NodeId;
use crate::name::{NodeName, QueueName};
use crate::service::NodeServices;
use crate::state::JobState;

pub(crate) use super::node_info::Room;
pub use super::node_info::{NodeInfo, PoolInfo};

/// A node that begins its life.
#[derive(Debug, Clone)]
pub struct NodeRegistration {
    /// This incarnation.
    pub id: NodeId,
    /// Its label for people.
    pub name: NodeName,
    /// What it runs: version, kinds, queues.
    pub info: NodeInfo,
}

/// How long a node may be silent, unless it is configured otherwise.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(30);

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
    /// How many slots hold a job, of each pool in the order of its info; nothing from a node that does not say.
    pub taken: Vec<u32>,
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
    pub info: NodeInfo,
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
        info: NodeInfo,
        started_at: Timestamp,
        last_heartbeat: Timestamp,
        vitals: NodeVitals,
        dead_at: Option<Timestamp>,
    ) -> Self {
        Self { id, name, info, started_at, last_heartbeat, vitals, dead_at }
    }

    /// Whether it lives: no other node has declared it dead, and it was heard of within its grace.
    ///
    /// A node that was not may still be there: cut off, and then it has canceled what it ran, or suspended. The last node of a
    /// cluster has nobody who could declare it dead.
    pub fn is_living(&self, now: Timestamp) -> bool {
        self.dead_at.is_none() && elapsed(self.last_heartbeat, now) < self.info.grace()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_lives_until_it_is_silent_for_its_grace_or_declared_dead() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let check = |info: &str, heard, dead_at: Option<i64>, lives: bool, why: &str| {
            let (id, name) = (NodeId(uuid::Uuid::nil()), NodeName::new("node").unwrap());
            let (info, vitals) = (NodeInfo::from_json(info), NodeVitals::default());
            let node = NodeRecord::from_parts(id, name, info, at(0), at(heard), vitals, dead_at.map(at));
            assert_eq!(node.is_living(at(1_000)), lives, "{why}");
        };
        check("{}", 971, None, true, "heard of within the usual grace");
        check("{}", 970, None, false, "not heard of for the usual grace");
        check("{}", 1_001, None, true, "heard of after the question was asked");
        check(r#"{"grace_ms": 60000}"#, 941, None, true, "it may be silent for longer");
        check(r#"{"grace_ms": 60000}"#, 940, None, false, "and was");
        check(r#"{"grace_ms": 1500}"#, 998, None, false, "it may be silent for less");
        check("{}", 1_000, Some(999), false, "declared dead, whatever was heard of it");
        check("no JSON", 971, None, true, "who says nothing is judged by the usual grace");
    }
}
