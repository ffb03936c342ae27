//! What a node says of itself when it registers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::node::{GRACE_DEFAULT, NodeVitals};
use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::json::JsonText;
use crate::name::{Kind, QueueName, ServiceName};

/// What a node runs, as it says when it registers. A store keeps it as JSON: a field that this version does not know is passed
/// over, and one that is missing has its default.
///
/// ```
/// use ratchet_core::node::NodeInfo;
///
/// let info = NodeInfo::from_json(r#"{"slots": 4, "from a newer version": true}"#);
/// assert_eq!(info, NodeInfo { slots: 4, ..NodeInfo::default() });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeInfo {
    /// The version of Ratchet.
    pub version: String,
    /// The kinds that are registered.
    pub kinds: Vec<Kind>,
    /// The queues that it serves.
    pub queues: Vec<QueueName>,
    /// The number of its slots.
    pub slots: u64,
    /// Its slots by queue and class of handler; empty for a node that does not say.
    pub pools: Vec<PoolInfo>,
    /// The kinds whose handlers block a thread.
    pub blocking: Vec<Kind>,
    /// The services that its kinds call, where that is not the kind itself.
    pub services: BTreeMap<Kind, ServiceName>,
    /// The schedules that its code declares.
    pub schedules: Vec<JobId>,
    /// How long it may be silent, in milliseconds; `None` for a node that does not say.
    pub grace_ms: Option<u64>,
}

/// Slots of a node for one queue and one class of handler.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolInfo {
    /// The queue.
    pub queue: QueueName,
    /// Whether the slots are for handlers that block a thread.
    pub blocking: bool,
    /// The number of slots.
    pub slots: u64,
}

/// Room for jobs of a kind and queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) slots: u64,
    pub(crate) taken: u64,
}

/// The most bytes of JSON that a node may need to say what it runs.
const BYTES_MAX: usize = 1024 * 1024;

impl NodeInfo {
    /// Reads what a store kept. What cannot be read says nothing: a node of another version must not break lists of nodes.
    pub fn from_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Returns the JSON that a store keeps.
    ///
    /// # Errors
    /// If it is over a mebibyte.
    pub fn to_json(&self) -> Result<JsonText, InvalidInput> {
        JsonText::encode("node info", self, BYTES_MAX)
    }

    /// How long the node may be silent.
    pub(crate) fn grace(&self) -> Duration {
        self.grace_ms.map_or(GRACE_DEFAULT, Duration::from_millis)
    }

    /// What jobs of this kind call there: one that names no service is its own.
    pub(crate) fn service_of<'a>(&'a self, kind: &'a Kind) -> &'a str {
        self.services.get(kind).map_or(kind.as_str(), ServiceName::as_str)
    }

    /// What room there is for jobs of this kind in this queue; `None` if the node does not run them.
    ///
    /// A node that does not say which slots are taken is judged by all of them.
    pub(crate) fn room(&self, kind: &Kind, queue: &QueueName, vitals: &NodeVitals) -> Option<Room> {
        if !self.kinds.contains(kind) || !self.queues.contains(queue) {
            return None;
        }
        let all = Room { slots: self.slots, taken: u64::from(vitals.running) };
        if self.pools.is_empty() {
            return Some(all);
        }
        let blocking = self.blocking.contains(kind);
        let at = self.pools.iter().position(|pool| pool.queue == *queue && pool.blocking == blocking)?;
        let taken = vitals.taken.get(at).filter(|_| vitals.taken.len() == self.pools.len());
        Some(taken.map_or(all, |taken| Room { slots: self.pools[at].slots, taken: u64::from(*taken) }))
    }

    /// Whether jobs that the node runs call this service.
    pub(crate) fn calls(&self, service: &str) -> bool {
        self.kinds.iter().any(|kind| self.service_of(kind) == service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str) -> Kind {
        Kind::new(name).unwrap()
    }

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    fn pool(name: &str, blocking: bool, slots: u64) -> PoolInfo {
        PoolInfo { queue: queue(name), blocking, slots }
    }

    fn info() -> NodeInfo {
        NodeInfo {
            version: "1.2.3".to_owned(),
            kinds: vec![kind("mail"), kind("zip")],
            queues: vec![queue("default"), queue("reports")],
            slots: 16,
            pools: vec![pool("default", false, 10), pool("default", true, 5), pool("reports", false, 1)],
            blocking: vec![kind("zip")],
            services: [(kind("mail"), ServiceName::new("smtp").unwrap())].into(),
            schedules: vec![JobId(uuid::Uuid::from_u128(7))],
            grace_ms: Some(30_000),
        }
    }

    #[test]
    fn info_survives_its_json_and_is_written_as_always() {
        let json = info().to_json().unwrap();
        assert_eq!(NodeInfo::from_json(json.as_str()), info());
        let written = r#"{"version":"1.2.3","kinds":["mail","zip"],"queues":["default","reports"],"slots":16,"pools":[
            {"queue":"default","blocking":false,"slots":10},{"queue":"default","blocking":true,"slots":5},
            {"queue":"reports","blocking":false,"slots":1}],"blocking":["zip"],"services":{"mail":"smtp"},
            "schedules":["00000000-0000-0000-0000-000000000007"],"grace_ms":30000}"#;
        assert!(json.means_the_same(&JsonText::from_store(written)), "other versions read it: {json:?}");
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        let default = NodeInfo::default();
        for text in ["", "no JSON", "null", "[]", r#"{"kinds": 7}"#, r#"{"kinds": ["No Kind"], "slots": 4}"#] {
            assert_eq!(NodeInfo::from_json(text), default, "{text}");
        }
        let partly = NodeInfo::from_json(r#"{"grace_ms": null, "pools": [{"slots": 3}], "new": {}}"#);
        assert_eq!(partly, NodeInfo { pools: vec![pool("default", false, 3)], ..default });
    }

    #[test]
    fn info_is_bounded() {
        let long = NodeInfo { version: "x".repeat(BYTES_MAX), ..NodeInfo::default() };
        assert_eq!(long.to_json().unwrap_err().field(), "node info");
    }

    #[test]
    fn room_is_that_of_the_queue_and_the_class_of_handler() {
        let check = |name, queue_name, taken: &[u32], expected: Option<(u64, u64)>, why: &str| {
            let vitals = NodeVitals { running: 7, taken: taken.to_vec(), ..NodeVitals::default() };
            let room = expected.map(|(slots, taken)| Room { slots, taken });
            assert_eq!(info().room(&kind(name), &queue(queue_name), &vitals), room, "{why}");
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
