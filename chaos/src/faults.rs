//! What is done to nodes and to the server, in an order that a seed decides.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use tokio::sync::Mutex;

use crate::database::OwnServer;
use crate::history::{Fault, FaultKind};
use crate::node::Node;
use crate::proxy::Proxy;
use crate::record::now;
use crate::trial::NodeSettings;

/// A place for a node: the process, which comes and goes, and its way to the server.
#[derive(Debug)]
pub struct Slot {
    /// Its way to the server.
    pub proxy: Proxy,
    /// The node.
    pub node: Node,
}

impl Slot {
    /// A new node with a way of its own.
    ///
    /// # Errors
    /// If it does not start, however often it is tried.
    pub async fn start(server: &Mutex<OwnServer>, settings: &NodeSettings) -> Result<Self> {
        let proxy = server.lock().await.proxy().await?;
        let node = start_node(server, &proxy, settings).await?;
        Ok(Self { proxy, node })
    }
}

/// Tries again while the server is away.
async fn start_node(server: &Mutex<OwnServer>, proxy: &Proxy, settings: &NodeSettings) -> Result<Node> {
    const LIMIT: Duration = Duration::from_secs(40);
    let url = server.lock().await.url_through(proxy);
    let begun = Instant::now();
    loop {
        match tokio::task::block_in_place(|| settings.start(&url)) {
            Ok(node) => return Ok(node),
            Err(error) if begun.elapsed() > LIMIT => return Err(error.context("no new node starts")),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Does things to single nodes until the deadline.
///
/// # Errors
/// If something cannot be done, or a node has ended by itself.
pub async fn befall_nodes(
    slots: &mut [Slot],
    client: &Proxy,
    server: &Mutex<OwnServer>,
    settings: &NodeSettings,
    seed: u64,
    deadline: Instant,
) -> Result<Vec<Fault>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut faults = Vec::new();
    // The server still holds their connections.
    let mut vanished = Vec::new();
    while Instant::now() < deadline {
        for slot in slots.iter_mut() {
            anyhow::ensure!(!slot.node.has_ended(), "node {} has ended by itself", slot.node.pid());
        }
        // All the while: between a COMMIT and its reply is where most can go wrong.
        let losing = random.usize(0..slots.len());
        let (pid, from) = (Some(slots[losing].node.pid()), now());
        let lost = lose_replies(&slots[losing].proxy, &mut random).await;
        faults.extend((0..lost).map(|_| Fault { kind: FaultKind::LostReply, pid, from, to: now() }));
        let at = random.usize(0..slots.len());
        let slot = &mut slots[at];
        let (pid, from) = (Some(slot.node.pid()), now());
        let mut happened = |kind, to| faults.push(Fault { kind, pid, from, to });
        match random.u32(0..100) {
            0..20 => {
                slot.node = {
                    slot.node.signal(Signal::SIGKILL)?;
                    happened(FaultKind::Killed, i64::MAX);
                    start_node(server, &slot.proxy, settings).await?
                };
            }
            20..30 => {
                slot.proxy.freeze();
                slot.node.signal(Signal::SIGKILL)?;
                happened(FaultKind::Vanished, i64::MAX);
                let next = Slot::start(server, settings).await?;
                vanished.push(std::mem::replace(slot, next).proxy);
            }
            30..50 => {
                slot.node.signal(Signal::SIGSTOP)?;
                pause(random.u64(300..=settings.grace_ms * 7 / 4)).await;
                slot.node.signal(Signal::SIGCONT)?;
                happened(FaultKind::Stopped, now());
            }
            50..62 => {
                slot.proxy.cut();
                pause(random.u64(200..=settings.grace_ms * 7 / 4)).await;
                slot.proxy.restore();
                happened(FaultKind::Cut, now());
            }
            62..74 => {
                slot.proxy.freeze();
                pause(random.u64(200..=settings.grace_ms * 7 / 4)).await;
                slot.proxy.restore();
                happened(FaultKind::Frozen, now());
            }
            // The one who submits suffers too; nothing of that is a reason for a node.
            74..90 => {
                lose_replies(client, &mut random).await;
            }
            90..95 => {
                client.cut();
                pause(random.u64(100..=1_000)).await;
                client.restore();
            }
            _ => {
                client.freeze();
                pause(random.u64(100..=1_000)).await;
                client.restore();
            }
        }
    }
    Ok(faults)
}

/// Loses a few replies, if so many are asked for within a while; returns how many.
async fn lose_replies(proxy: &Proxy, random: &mut fastrand::Rng) -> u32 {
    let before = proxy.lost();
    let count = random.u32(1..=5);
    if random.u32(0..3) == 0 {
        proxy.lose_replies(count);
    } else {
        proxy.lose_commit_replies(count);
    }
    let begun = Instant::now();
    while proxy.lost() < before + count && begun.elapsed() < Duration::from_millis(400) {
        pause(5).await;
    }
    proxy.lose_no_more();
    proxy.lost() - before
}

/// Does things to the server until the deadline.
///
/// # Errors
/// If something cannot be done.
pub async fn befall_server(server: &Mutex<OwnServer>, seed: u64, deadline: Instant) -> Result<Vec<Fault>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut faults = Vec::new();
    loop {
        pause(random.u64(1_500..=5_000)).await;
        if Instant::now() >= deadline {
            return Ok(faults);
        }
        let mut server = server.lock().await;
        let from = now();
        let down_ms = random.u64(0..=1_500);
        let kind = tokio::task::block_in_place(|| match random.u32(0..100) {
            0..30 => server.restart().map(|()| FaultKind::ServerRestarted),
            30..60 => {
                server.kill()?;
                std::thread::sleep(Duration::from_millis(down_ms));
                server.start().map(|()| FaultKind::ServerKilled)
            }
            _ => server.terminate_connections().map(|()| FaultKind::Terminated),
        })
        .context("the server cannot be treated so")?;
        faults.push(Fault { kind, pid: None, from, to: now() });
    }
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
