//! `ratchet nodes`

use std::time::Duration;

use anyhow::Result;
use ratchet::{JsonText, NodeId, NodeName, NodeRecord, Timestamp};
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
    kinds: Vec<String>,
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
    let NodeRecord { id, name, info, started_at, last_heartbeat, dead_at, .. } = node;
    let standing = match dead_at {
        Some(_) => Standing::Dead,
        None if clock::elapsed(last_heartbeat, now) > SILENT_AFTER => Standing::Silent,
        None => Standing::Alive,
    };
    NodeView { id, name, standing, started_at, last_heartbeat, dead_at, info }
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
            node.id.to_string(),
            node.name.to_string(),
            standing.to_owned(),
            times::ago(node.last_heartbeat, now),
            info.slots.to_string(),
            info.kinds.len().to_string(),
        ]
    });
    table(&["ID", "NAME", "STANDING", "HEARD", "SLOTS", "KINDS"], 1, rows)
}
