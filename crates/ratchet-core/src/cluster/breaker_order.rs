//! Orders about circuit breakers, which people give for the whole cluster, and how breakers stand there.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::id::NodeId;
use crate::name::{NodeName, ServiceName};
use crate::node::NodeRecord;
use crate::service::ServiceStand;

/// The last order about the circuit breaker of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerOrder {
    /// The service.
    pub service: ServiceName,
    /// Whether the breaker is held open on every node. If not, it was reset.
    pub held_open: bool,
    /// Which order about this service it is, from 1 on: a node that knows of another one has something to do.
    pub number: u64,
    /// When it was given, by the database's clock.
    pub ordered_at: Timestamp,
}

/// A service whose circuit breaker is held open, or is not closed on some living node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BreakerRecord {
    /// The service.
    pub service: ServiceName,
    /// Since when it is held open on every node; `None` if it is not.
    pub held_open_since: Option<Timestamp>,
    /// How many living nodes have jobs that call it.
    pub calling: usize,
    /// Those on which it is not closed, by their last heartbeats.
    pub not_closed: Vec<NodeBreaker>,
}

/// How a breaker stands on a node, if it is not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeBreaker {
    /// The node.
    pub node: NodeId,
    /// Its label for people.
    pub name: NodeName,
    /// How the breaker stands there.
    #[serde(flatten)]
    pub stand: ServiceStand,
}

/// Every service whose breaker is held open, or is not closed on some living node, by name.
pub fn breakers(orders: &[BreakerOrder], nodes: &[NodeRecord], now: Timestamp) -> Vec<BreakerRecord> {
    let held = orders.iter().filter(|order| order.held_open);
    let mut found: BTreeMap<&str, Option<Timestamp>> =
        held.map(|order| (order.service.as_str(), Some(order.ordered_at))).collect();
    for one in living(nodes, now).flat_map(|node| &node.vitals.services.not_closed) {
        found.entry(&one.service).or_default();
    }
    let record = |(service, held_open_since): (&str, _)| {
        // What nodes call has passed the same check.
        let name = ServiceName::new(service).ok()?;
        let not_closed = living(nodes, now).filter_map(|node| {
            let stand = node.vitals.services.stand(service)?;
            Some(NodeBreaker { node: node.id, name: node.name.clone(), stand })
        });
        let (calling, not_closed) = (calling(service, nodes, now), not_closed.collect());
        Some(BreakerRecord { service: name, held_open_since, calling, not_closed })
    };
    found.into_iter().filter_map(record).collect()
}

/// How many living nodes have jobs that call a service.
pub fn calling(service: &str, nodes: &[NodeRecord], now: Timestamp) -> usize {
    living(nodes, now).filter(|node| node.info.calls(service)).count()
}

fn living(nodes: &[NodeRecord], now: Timestamp) -> impl Iterator<Item = &NodeRecord> {
    nodes.iter().filter(move |node| node.is_living(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{NodeInfo, NodeVitals};
    use crate::service::{NodeServices, ServiceVitals};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// When everybody but the dead was just heard of.
    const NOW: i64 = 20;

    fn order(service: &str, held_open: bool, second: i64) -> BreakerOrder {
        BreakerOrder { service: ServiceName::new(service).unwrap(), held_open, number: 1, ordered_at: at(second) }
    }

    /// A node that runs `charge`, which calls `payments`, and `mail`, which names no service.
    fn node(number: u8, not_closed: &[(&str, ServiceStand)], dead_at: Option<Timestamp>) -> NodeRecord {
        let id = NodeId(uuid::Uuid::from_bytes([number; 16]));
        let info = NodeInfo::from_json(r#"{"kinds":["charge","mail"],"services":{"charge":"payments"}}"#);
        let name = NodeName::new(format!("node-{number}")).unwrap();
        let vital = |(service, stand): &(&str, _)| ServiceVitals { service: (*service).to_owned(), stand: *stand };
        let services = NodeServices::of(not_closed.iter().map(vital));
        let vitals = NodeVitals { services, ..NodeVitals::default() };
        NodeRecord::from_parts(id, name, info, at(0), at(NOW), vitals, dead_at)
    }

    #[test]
    fn services_are_listed_that_are_held_open_or_not_closed_somewhere() {
        let (forced, half) = (ServiceStand::ForcedOpen, ServiceStand::HalfOpen);
        let orders = [order("fax", true, 7), order("mail", false, 8), order("payments", true, 9)];
        let nodes = [
            node(1, &[("payments", forced)], None),
            node(2, &[("mail", half)], None),
            node(3, &[("mail", forced), ("sms", forced)], Some(at(5))),
        ];
        let told: Vec<_> = breakers(&orders, &nodes, at(NOW))
            .into_iter()
            .map(|one| {
                let nodes: Vec<_> = one.not_closed.iter().map(|it| (it.name.to_string(), it.stand)).collect();
                (one.service.to_string(), one.held_open_since, one.calling, nodes)
            })
            .collect();
        let expected = [
            ("fax".to_owned(), Some(at(7)), 0, vec![]),
            ("mail".to_owned(), None, 2, vec![("node-2".to_owned(), half)]),
            ("payments".to_owned(), Some(at(9)), 2, vec![("node-1".to_owned(), forced)]),
        ];
        assert_eq!(told, expected);
        let found = breakers(&orders[1..2], &nodes[2..], at(NOW));
        assert_eq!(found, [], "neither what was reset nor what the dead said");
        let found = breakers(&orders[1..2], &nodes, at(NOW + 30));
        assert_eq!(found, [], "nor what those said who have been silent since");
    }

    #[test]
    fn a_node_calls_what_its_kinds_name_or_else_the_kinds_themselves() {
        let nodes = [node(1, &[], None), node(2, &[], None), node(3, &[], Some(at(5)))];
        let check = |service, expected| assert_eq!(calling(service, &nodes, at(NOW)), expected, "{service}");
        check("payments", 2);
        check("mail", 2);
        check("charge", 0);
        check("fax", 0);
        assert_eq!(calling("payments", &nodes, at(NOW + 30)), 0, "all are silent");
    }
}
