//! `ratchet nodes`

use std::time::Duration;

use anyhow::Result;
use ratchet::{JsonText, NodeId, NodeName, NodeRecord, NodeVitals, Timestamp};
use ratchet_core::clock;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::output::table;
use crate::session::Session;
use crate::times;

/// Not heard of for the default grace: others will soon declare it dead, unless its own grace is longer.
const SILENT_AFTER: Duration = Duration::from_secs(30);

#[derive(Serialize)]
struct NodeView {
    id: NodeId,
    name: NodeName,
    standing: Standing,
    started_at: Timestamp,
    last_heartbeat: Timestamp,
    dead_at: Option<Timestamp>,
    vitals: NodeVitals,
    info: JsonText,
}

#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Standing {
    Alive,
    Silent,
    Dead,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Info {
    version: String,
    kinds: Vec<String>,
    queues: Vec<String>,
    slots: u64,
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
    let NodeRecord { id, name, info, started_at, last_heartbeat, vitals, dead_at, .. } = node;
    let standing = match dead_at {
        Some(_) => Standing::Dead,
        None if clock::elapsed(last_heartbeat, now) > SILENT_AFTER => Standing::Silent,
        None => Standing::Alive,
    };
    NodeView { id, name, standing, started_at, last_heartbeat, dead_at, vitals, info }
}

fn listed(nodes: &[NodeView], now: Timestamp) -> String {
    if nodes.is_empty() {
        return "No node runs on this database.".to_owned();
    }
    let rows = nodes.iter().map(|node| {
        let info: Info = node.info.decode().unwrap_or_default();
        let standing = match node.standing {
            Standing::Alive => "alive",
            Standing::Silent => "silent",
            Standing::Dead => "dead",
        };
        [
            node.name.to_string(),
            node.id.to_string(),
            info.version,
            info.kinds.len().to_string(),
            info.queues.join(" "),
            format!("{}/{}", node.vitals.running, info.slots),
            skew(node.vitals.clock_skew_us),
            times::ago(node.last_heartbeat, now),
            standing.to_owned(),
        ]
    });
    table(&["NAME", "ID", "VERSION", "KINDS", "QUEUES", "LOAD", "SKEW", "HEARD", "STANDING"], QUEUES, rows)
}

/// The only column that may give way: a node can serve many.
const QUEUES: usize = 4;

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
}
