//! What lets jobs pass, and where they could run.

use jiff::Timestamp;

use super::{LocalNode, Reason};
use crate::breaker_order::BreakerOrder;
use crate::error::StoreError;
use crate::id::NodeId;
use crate::name::{Kind, QueueName, ResourceName};
use crate::node::{NodeInfo, NodeRecord, NodeVitals, Room};
use crate::resource::ResourceRecord;
use crate::service::ServiceStand;
use crate::store::Store;

/// What lets jobs pass, or some of them, or none.
pub(super) struct Gates {
    pub(super) now: Timestamp,
    living: Vec<Living>,
    resources: Vec<ResourceRecord>,
    orders: Vec<BreakerOrder>,
}

/// What holds up all jobs of a kind, queue and resource, and where they could run.
pub(super) struct HeldUp {
    pub(super) held: Vec<Reason>,
    pub(super) serving: Vec<Serving>,
}

impl Gates {
    pub(super) async fn look(store: &dyn Store, now: Timestamp, here: &LocalNode) -> Result<Self, StoreError> {
        Self::among(store.nodes().await?, store, now, here).await
    }

    /// The same if the nodes are known.
    pub(super) async fn among(
        nodes: Vec<NodeRecord>,
        store: &dyn Store,
        now: Timestamp,
        here: &LocalNode,
    ) -> Result<Self, StoreError> {
        let living = nodes.into_iter().filter(|node| node.is_living(now));
        let living = living.map(|node| Living::of(node, now, here)).collect();
        let (resources, orders) = (store.resources().await?, store.breaker_orders().await?);
        Ok(Self { now, living, resources, orders })
    }

    /// How many nodes live.
    pub(super) fn living(&self) -> usize {
        self.living.len()
    }

    /// The reason if nobody could run jobs of this kind and queue.
    pub(super) fn nowhere(&self, kind: &Kind, queue: &QueueName) -> Option<Reason> {
        let serves = self.living.iter().any(|node| node.serves(kind, queue).is_some());
        (!serves).then(|| self.no_node(kind, queue))
    }

    fn no_node(&self, kind: &Kind, queue: &QueueName) -> Reason {
        Reason::NoNode { kind: kind.clone(), queue: queue.clone(), living: self.living() }
    }

    pub(super) fn standing(&self, kind: &Kind, queue: &QueueName, resource: Option<&ResourceName>) -> HeldUp {
        let mut serving: Vec<Serving> = self.living.iter().filter_map(|node| node.serves(kind, queue)).collect();
        for node in &mut serving {
            node.stand = self.ordered(node);
        }
        let nowhere = serving.is_empty().then(|| self.no_node(kind, queue));
        let reasons = [nowhere, breaker(&serving, self.now), self.permit(resource)];
        HeldUp { held: reasons.into_iter().flatten().collect(), serving }
    }

    /// How a service stands on a node that has heeded what was ordered: all of them do, within seconds.
    fn ordered(&self, node: &Serving) -> Option<ServiceStand> {
        match self.orders.iter().find(|order| order.service.as_str() == node.service) {
            Some(order) if order.held_open => Some(ServiceStand::ForcedOpen),
            // It was reset after the node has told that.
            Some(order) if order.ordered_at >= node.told_at => None,
            _ => node.stand,
        }
    }

    fn permit(&self, resource: Option<&ResourceName>) -> Option<Reason> {
        let record = self.resources.iter().find(|record| Some(&record.name) == resource)?;
        let limit = record.limit.as_ref().filter(|limit| record.in_use >= limit.max_concurrent)?;
        let max_concurrent = limit.max_concurrent;
        Some(Reason::Permit { resource: record.name.clone(), in_use: record.in_use, max_concurrent })
    }
}

impl HeldUp {
    /// Whether jobs that stand so can be in the way of one that stands like this: some node could run either, and nothing holds
    /// them up that does not hold up this one too.
    pub(super) fn yields_to(&self, others: &Self) -> bool {
        let meets = |here: &Serving| others.serving.iter().any(|there| there.node == here.node);
        (self.serving.is_empty() || self.serving.iter().any(meets))
            && others.held.iter().all(|reason| self.held.contains(reason))
    }
}

/// A node that could run a job.
pub(super) struct Serving {
    node: NodeId,
    pub(super) room: Room,
    /// What the job calls there.
    service: String,
    /// How that stands there, if not as usual.
    stand: Option<ServiceStand>,
    /// When the node said so.
    told_at: Timestamp,
}

/// A living node, and how it is.
struct Living {
    id: NodeId,
    info: NodeInfo,
    vitals: NodeVitals,
    told_at: Timestamp,
}

impl Living {
    fn of(node: NodeRecord, now: Timestamp, here: &LocalNode) -> Self {
        let fresh = here.node.as_ref().filter(|(id, _)| *id == node.id).map(|(_, vitals)| vitals.clone());
        let (vitals, told_at) = fresh.map_or((node.vitals, node.last_heartbeat), |vitals| (vitals, now));
        Self { id: node.id, info: node.info, vitals, told_at }
    }

    /// What it has to do with a job of this kind and queue; `None` if it could not run it.
    fn serves(&self, kind: &Kind, queue: &QueueName) -> Option<Serving> {
        let Self { id, info, vitals, told_at } = self;
        let room = info.room(kind, queue, vitals)?;
        let service = info.service_of(kind).to_owned();
        let stand = vitals.services.stand(&service);
        Some(Serving { node: *id, room, service, stand, told_at: *told_at })
    }
}

/// The breaker is the reason if every node leaves the service alone: one that only tries it, or calls it, takes the job.
fn breaker(serving: &[Serving], now: Timestamp) -> Option<Reason> {
    let first = serving.first()?;
    let all_refuse = serving.iter().all(|node| node.stand.is_some_and(|stand| stand.refuses(now)));
    let until = serving.iter().filter_map(|node| node.stand?.until()).min();
    all_refuse.then(|| Reason::Breaker { service: first.service.clone(), nodes: serving.len(), until })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::NodeName;
    use crate::resource::ResourceLimit;
    use crate::service::{NodeServices, ServiceVitals};

    const NOW: i64 = 1_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn vitals(service: &str, stand: Option<ServiceStand>) -> NodeVitals {
        let services = stand.map(|stand| ServiceVitals { service: service.to_owned(), stand });
        NodeVitals { services: NodeServices::of(services), ..NodeVitals::default() }
    }

    /// A node that runs `charge`, which calls `payments`, and `mail`, which names no service.
    fn node(number: u8, vitals: NodeVitals) -> NodeRecord {
        let id = NodeId(uuid::Uuid::from_bytes([number; 16]));
        let info = r#"{"kinds":["charge","mail"],"queues":["default"],"slots":1,"services":{"charge":"payments"}}"#;
        let (name, info) = (NodeName::new("node").unwrap(), NodeInfo::from_json(info));
        NodeRecord::from_parts(id, name, info, at(0), at(0), vitals, None)
    }

    fn reason(nodes: &[NodeRecord], kind: &str, here: &LocalNode) -> Option<Reason> {
        let (kind, queue) = (Kind::new(kind).unwrap(), QueueName::default());
        let living: Vec<Living> = nodes.iter().map(|node| Living::of(node.clone(), at(NOW), here)).collect();
        let serving: Vec<Serving> = living.iter().filter_map(|node| node.serves(&kind, &queue)).collect();
        breaker(&serving, at(NOW))
    }

    const FORCED: Option<ServiceStand> = Some(ServiceStand::ForcedOpen);
    const HALF: Option<ServiceStand> = Some(ServiceStand::HalfOpen);

    #[test]
    fn a_breaker_is_the_reason_if_it_is_open_wherever_the_job_could_run() {
        let check = |stands: &[Option<ServiceStand>], expected: Option<Option<i64>>, why: &str| {
            let nodes: Vec<_> = (0..).zip(stands).map(|(n, stand)| node(n, vitals("payments", *stand))).collect();
            let until = |until: Option<i64>| Reason::Breaker {
                service: "payments".to_owned(),
                nodes: stands.len(),
                until: until.map(at),
            };
            assert_eq!(reason(&nodes, "charge", &LocalNode::default()), expected.map(until), "{why}");
        };
        let open = |until| Some(ServiceStand::Open { until: at(until) });
        check(&[], None, "no node could run it, which is another reason");
        check(&[None], None, "closed");
        check(&[open(NOW + 10)], Some(Some(NOW + 10)), "open on the only node");
        check(&[open(NOW)], None, "its time is over: it is tried");
        check(&[HALF], None, "it is tried");
        check(&[FORCED], Some(None), "by hand: nobody knows until when");
        check(&[open(NOW + 30), open(NOW + 10)], Some(Some(NOW + 10)), "the first that tries it again");
        check(&[FORCED, open(NOW + 10)], Some(Some(NOW + 10)), "the other one tries it");
        check(&[open(NOW + 10), None], None, "the other one calls it");
        check(&[open(NOW + 10), HALF], None, "the other one tries it now");
    }

    #[test]
    fn a_kind_that_names_no_service_is_its_own() {
        let check = |kind: &str, service: &str, told: bool| {
            let found = reason(&[node(1, vitals(service, FORCED))], kind, &LocalNode::default());
            assert_eq!(found.is_some(), told, "{kind} while {service} is open");
        };
        check("mail", "mail", true);
        check("mail", "payments", false);
        check("charge", "payments", true);
        check("charge", "charge", false);
        check("unknown", "unknown", false);
    }

    #[test]
    fn a_node_knows_itself_better_than_its_last_heartbeat() {
        let check = |told: Option<ServiceStand>, now: Option<ServiceStand>, is_reason: bool| {
            let node = node(1, vitals("payments", told));
            let here = LocalNode { node: Some((node.id, vitals("payments", now))), ..LocalNode::default() };
            assert_eq!(reason(&[node], "charge", &here).is_some(), is_reason, "{told:?}, now {now:?}");
        };
        check(None, FORCED, true);
        check(FORCED, None, false);
        let other =
            LocalNode { node: Some((NodeId(uuid::Uuid::nil()), vitals("payments", None))), ..LocalNode::default() };
        assert!(reason(&[node(1, vitals("payments", FORCED))], "charge", &other).is_some(), "not what others say");
    }

    #[test]
    fn who_is_held_up_alone_is_not_in_the_way() {
        let resource = |name: &str, in_use| ResourceRecord {
            name: ResourceName::new(name).unwrap(),
            limit: Some(ResourceLimit::new(name, 1).unwrap()),
            by_hand: false,
            in_use,
        };
        let info = r#"{"kinds":["fax"],"queues":["default"],"slots":1}"#;
        let (name, info) = (NodeName::new("other").unwrap(), NodeInfo::from_json(info));
        let other = NodeRecord::from_parts(
            NodeId(uuid::Uuid::from_bytes([9; 16])),
            name,
            info,
            at(0),
            at(0),
            NodeVitals::default(),
            None,
        );
        let gates = Gates {
            now: at(NOW),
            living: [node(1, vitals("payments", FORCED)), other]
                .map(|node| Living::of(node, at(NOW), &LocalNode::default()))
                .into(),
            resources: vec![resource("full", 1), resource("free", 0)],
            orders: Vec::new(),
        };
        let standing = |(kind, resource): (&str, Option<&str>)| {
            let resource = resource.map(|name| ResourceName::new(name).unwrap());
            gates.standing(&Kind::new(kind).unwrap(), &QueueName::default(), resource.as_ref())
        };
        let check = |mine, others, in_the_way, why: &str| {
            assert_eq!(standing(mine).yields_to(&standing(others)), in_the_way, "{why}");
        };
        let (mail, charge, fax, unknown) = (("mail", None), ("charge", None), ("fax", None), ("unknown", None));
        check(mail, mail, true, "its like");
        check(mail, ("mail", Some("free")), true, "they have a permit to take");
        check(mail, ("mail", Some("full")), false, "they have none");
        check(("mail", Some("full")), ("mail", Some("full")), true, "they wait for the same");
        check(("mail", Some("full")), mail, true, "they can go");
        check(mail, charge, false, "what they call is left alone");
        check(charge, charge, true, "they wait for the same service");
        check(charge, mail, true, "they can go");
        check(mail, unknown, false, "nobody runs them");
        check(unknown, unknown, true, "nobody runs either");
        check(mail, fax, false, "another node runs them");
    }
}
