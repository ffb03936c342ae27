//! What a store knows of nodes, queues and leases.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::elapsed;
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

    /// Whether it lives: no other node has declared it dead, and it was heard of within its grace.
    ///
    /// A node that was not may still be there: cut off, and then it has canceled what it ran, or suspended. The last node of a
    /// cluster has nobody who could declare it dead.
    pub fn is_living(&self, now: Timestamp) -> bool {
        self.dead_at.is_none() && elapsed(self.last_heartbeat, now) < NodeInfo::of(self).grace()
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
    /// Its slots, by queue and sort of handler; nothing of a node that does not say.
    pools: Vec<PoolInfo>,
    /// Kinds whose handlers block a thread.
    blocking: Vec<String>,
    /// How long it may be silent; nothing of a node that does not say.
    grace_ms: Option<u64>,
}

/// Slots of a node for one queue and one sort of handler.
#[derive(Deserialize, Default)]
#[serde(default)]
struct PoolInfo {
    queue: String,
    /// Whether they are for handlers that block a thread.
    blocking: bool,
    slots: u64,
}

/// Room for jobs of a kind and queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) slots: u64,
    pub(crate) taken: u64,
}

impl NodeInfo {
    pub(crate) fn of(node: &NodeRecord) -> Self {
        node.info.decode().unwrap_or_default()
    }

    fn grace(&self) -> Duration {
        self.grace_ms.map_or(GRACE_DEFAULT, Duration::from_millis)
    }

    /// What jobs of this kind call there: one that names no service is its own.
    pub(crate) fn service_of<'a>(&'a self, kind: &'a str) -> &'a str {
        self.services.get(kind).map_or(kind, String::as_str)
    }

    /// What room there is for jobs of this kind in this queue; `None` if the node does not run them.
    ///
    /// A node that does not say which slots are taken is judged by all of them.
    pub(crate) fn room(&self, kind: &str, queue: &str, vitals: &NodeVitals) -> Option<Room> {
        if !self.kinds.iter().any(|one| one == kind) || !self.queues.iter().any(|one| one == queue) {
            return None;
        }
        let all = Room { slots: self.slots, taken: u64::from(vitals.running) };
        if self.pools.is_empty() {
            return Some(all);
        }
        let blocking = self.blocking.iter().any(|one| one == kind);
        let at = self.pools.iter().position(|pool| pool.queue == queue && pool.blocking == blocking)?;
        let taken = vitals.taken.get(at).filter(|_| vitals.taken.len() == self.pools.len());
        Some(taken.map_or(all, |taken| Room { slots: self.pools[at].slots, taken: u64::from(*taken) }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_lives_until_it_is_silent_for_its_grace_or_declared_dead() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let check = |info: &str, heard, dead_at: Option<i64>, lives: bool, why: &str| {
            let (id, name) = (NodeId(uuid::Uuid::nil()), NodeName::new("node").unwrap());
            let (info, vitals) = (JsonText::from_store(info), NodeVitals::default());
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

    #[test]
    fn room_is_that_of_the_queue_and_the_sort_of_handler() {
        let info = r#"{"kinds": ["mail", "zip"], "queues": ["default", "reports"], "slots": 16, "blocking": ["zip"], "pools": [
            {"queue": "default", "blocking": false, "slots": 10}, {"queue": "default", "blocking": true, "slots": 5},
            {"queue": "reports", "blocking": false, "slots": 1}]}"#;
        let info: NodeInfo = serde_json::from_str(info).unwrap();
        let check = |kind, queue, taken: &[u32], expected: Option<(u64, u64)>, why: &str| {
            let vitals = NodeVitals { running: 7, taken: taken.to_vec(), ..NodeVitals::default() };
            let room = expected.map(|(slots, taken)| Room { slots, taken });
            assert_eq!(info.room(kind, queue, &vitals), room, "{why}");
        };
        check("mail", "default", &[4, 2, 1], Some((10, 4)), "async handlers");
        check("zip", "default", &[4, 2, 1], Some((5, 2)), "blocking ones");
        check("mail", "reports", &[4, 2, 1], Some((1, 1)), "another queue");
        check("zip", "reports", &[4, 2, 1], None, "which has no threads");
        check("fax", "default", &[4, 2, 1], None, "not registered");
        check("mail", "elsewhere", &[4, 2, 1], None, "not served");
        check("mail", "reports", &[], Some((16, 7)), "nothing is said of the pools");
        check("mail", "reports", &[1], Some((16, 7)), "something else is said");
    }
}
