//! `ratchet nodes`

use std::time::Duration;

use anyhow::Result;
use ratchet::{
    NodeId, NodeInfo, NodeName, NodeRecord, NodeServices, NodeVitals, QueueName, ServiceStand, ServiceVitals, Timestamp,
};
use ratchet_core::clock;
use serde::Serialize;

use crate::exit::Exit;
use crate::output::table;
use crate::session::Session;
use crate::times;

#[derive(Serialize)]
struct NodeView {
    id: NodeId,
    name: NodeName,
    standing: NodeStanding,
    started_at: Timestamp,
    last_heartbeat: Timestamp,
    dead_at: Option<Timestamp>,
    vitals: NodeVitals,
    info: NodeInfo,
}

#[derive(Serialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum NodeStanding {
    Alive,
    /// Not heard of for its grace: others declare it dead, if there are any.
    Silent,
    Dead,
}

/// Lists the nodes, the most recently heard of first.
pub(crate) async fn run(session: &Session) -> Result<Exit> {
    let client = session.client().await?;
    let now = client.store().database_time().await?;
    let nodes: Vec<NodeView> = client.nodes().await?.into_iter().map(|node| view(node, now)).collect();
    session.output.show(&nodes, |nodes| listed(nodes, now))?;
    Ok(Exit::Done)
}

fn view(node: NodeRecord, now: Timestamp) -> NodeView {
    let standing = match node.dead_at {
        Some(_) => NodeStanding::Dead,
        None if node.is_living(now) => NodeStanding::Alive,
        None => NodeStanding::Silent,
    };
    let NodeRecord { id, name, info, started_at, last_heartbeat, vitals, dead_at, .. } = node;
    NodeView { id, name, standing, started_at, last_heartbeat, dead_at, vitals, info }
}

fn listed(nodes: &[NodeView], now: Timestamp) -> String {
    if nodes.is_empty() {
        return "No node runs on this database.".to_owned();
    }
    let rows = nodes.iter().map(|node| {
        let queues: Vec<_> = node.info.queues.iter().map(QueueName::as_str).collect();
        let standing = match node.standing {
            NodeStanding::Alive => "alive",
            NodeStanding::Silent => "silent",
            NodeStanding::Dead => "dead",
        };
        [
            node.name.to_string(),
            node.id.to_string(),
            node.info.version.clone(),
            node.info.kinds.len().to_string(),
            queues.join(" "),
            format!("{}/{}", node.vitals.running, node.info.slots),
            skew(node.vitals.clock_skew_us),
            times::ago(node.last_heartbeat, now),
            standing.to_owned(),
        ]
    });
    let header = ["NAME", "ID", "VERSION", "KINDS", "QUEUES", "LOAD", "SKEW", "HEARD", "STANDING"];
    let mut text = table(&header, QUEUES, rows);
    // Below, because there is nothing to say most of the time, and may be much.
    let tells = |node: &&NodeView| node.standing == NodeStanding::Alive && !node.vitals.services.is_empty();
    let breakers = nodes.iter().filter(tells);
    let row = |node: &NodeView| [node.name.to_string(), node.id.to_string(), not_closed(&node.vitals.services, now)];
    let rows: Vec<_> = breakers.map(row).collect();
    if !rows.is_empty() {
        text.push_str("\n\n");
        text.push_str(&table(&["NAME", "ID", "BREAKERS"], BREAKERS, rows));
    }
    text
}

/// The only columns that may give way: a node can serve and call many.
const QUEUES: usize = 4;
const BREAKERS: usize = 2;

/// `payments open 12 s, mail half-open`
fn not_closed(services: &NodeServices, now: Timestamp) -> String {
    let told = |one: &ServiceVitals| format!("{} {}", one.service, stand(one.stand, now));
    let mut told: Vec<String> = services.not_closed.iter().map(told).collect();
    if services.left_out > 0 {
        told.push(format!("{} more", services.left_out));
    }
    told.join(", ")
}

/// `open 12 s`
pub(crate) fn stand(stand: ServiceStand, now: Timestamp) -> String {
    match stand.until() {
        Some(until) if until > now => format!("{} {}", stand.as_str(), times::short(clock::elapsed(now, until))),
        // Its time was over after the heartbeat: it is tried by now.
        Some(_) => ServiceStand::HalfOpen.as_str().to_owned(),
        None => stand.as_str().to_owned(),
    }
}

/// How far the node's clock is ahead of the database's, or behind it.
fn skew(skew_us: Option<i64>) -> String {
    let Some(us) = skew_us else { return "unknown".to_owned() };
    let sign = if us < 0 { '-' } else { '+' };
    format!("{sign}{}", times::duration(Duration::from_micros(us.unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_is_ahead_or_behind() {
        let check = |skew_us, expected: &str| assert_eq!(skew(skew_us), expected);
        check(None, "unknown");
        check(Some(0), "+0 µs");
        check(Some(-12_000), "-12 ms");
        check(Some(90_000_000), "+1 min 30 s");
        check(Some(i64::MIN), "-106751991 d 4 h");
    }

    #[test]
    fn breakers_are_told_with_how_long_they_stay_open() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let check = |stand, expected: &str| {
            let one = ServiceVitals { service: "payments".to_owned(), stand };
            assert_eq!(not_closed(&NodeServices::of([one]), at(100)), expected);
        };
        check(ServiceStand::Open { until: at(112) }, "payments open 12 s");
        check(ServiceStand::Open { until: at(100) }, "payments half-open");
        check(ServiceStand::HalfOpen, "payments half-open");
        check(ServiceStand::ForcedOpen, "payments forced-open");
        let many = (0..34).map(|n| ServiceVitals { service: format!("s{n:02}"), stand: ServiceStand::ForcedOpen });
        let many = not_closed(&NodeServices::of(many), at(100));
        assert!(many.starts_with("s00 forced-open, s01 forced-open, ") && many.ends_with("s31 forced-open, 2 more"));
    }
}
