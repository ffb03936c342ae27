//! A way to the server that can be cut, frozen, and that can lose replies.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::commit::{CommitFinder, Protocol};

/// How the way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Everything goes through.
    Open,
    /// Every connection is closed, and every new one at once.
    Cut,
    /// Connections stay and are taken, but nothing goes through: neither side learns that the other is gone.
    Frozen,
}

/// A proxy before one server, on a port of its own.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    way: watch::Sender<Way>,
    accept: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    protocol: Protocol,
    server: u16,
    commits_to_lose: AtomicU32,
    any_to_lose: AtomicU32,
    lost: AtomicU32,
    /// Freezes everything when the next COMMIT comes, before the server sees it.
    freeze_at_commit: AtomicBool,
}

impl Proxy {
    /// A proxy before the server on this port of the loopback.
    ///
    /// # Errors
    /// If there is no port to be had.
    pub async fn before(server: u16, protocol: Protocol) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port for a proxy")?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            protocol,
            server,
            commits_to_lose: AtomicU32::new(0),
            any_to_lose: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            freeze_at_commit: AtomicBool::new(false),
        });
        let way = watch::Sender::new(Way::Open);
        let accept = tokio::spawn(accept(listener, shared.clone(), way.clone()));
        Ok(Self { port, shared, way, accept })
    }

    /// Its port on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Closes all connections, and every new one at once.
    pub fn cut(&self) {
        self.way.send_replace(Way::Cut);
    }

    /// Holds all connections, and every new one, without letting anything through.
    pub fn freeze(&self) {
        self.way.send_replace(Way::Frozen);
    }

    /// Lets everything through again; what was frozen goes on.
    pub fn restore(&self) {
        self.way.send_replace(Way::Open);
    }

    /// How the way is now.
    pub fn way(&self) -> Way {
        *self.way.borrow()
    }

    /// Lets the next `count` COMMITs reach the server, waits for its answer, and closes the connection in its place.
    pub fn lose_commit_replies(&self, count: u32) {
        self.shared.commits_to_lose.store(count, Ordering::SeqCst);
    }

    /// The same for whatever is asked next.
    pub fn lose_replies(&self, count: u32) {
        self.shared.any_to_lose.store(count, Ordering::SeqCst);
    }

    /// Freezes everything when the next COMMIT comes, which does not reach the server: a machine that loses its power
    /// in the middle of a transaction.
    pub fn freeze_at_commit(&self) {
        self.shared.freeze_at_commit.store(true, Ordering::SeqCst);
    }

    /// Waits until [`freeze_at_commit`](Self::freeze_at_commit) has happened.
    pub async fn frozen_at_commit(&self) {
        let mut way = self.way.subscribe();
        way.wait_for(|way| *way == Way::Frozen).await.expect("the proxy holds the sender");
    }

    /// How many replies were lost so far.
    pub fn lost(&self) -> u32 {
        self.shared.lost.load(Ordering::SeqCst)
    }

    /// Stops losing replies; returns how many were still to be lost.
    pub fn lose_no_more(&self) -> u32 {
        self.shared.commits_to_lose.swap(0, Ordering::SeqCst) + self.shared.any_to_lose.swap(0, Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accept.abort();
        self.way.send_replace(Way::Cut);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, way: watch::Sender<Way>) {
    loop {
        // An error is one of the connection that would have been.
        let Ok((client, _)) = listener.accept().await else { continue };
        if *way.borrow() != Way::Cut {
            tokio::spawn(carry(client, shared.clone(), way.clone()));
        }
    }
}

/// Carries one connection until either side closes it or the way is cut.
async fn carry(client: TcpStream, shared: Arc<Shared>, way: watch::Sender<Way>) {
    let mut cut = way.subscribe();
    tokio::select! {
        // Whatever ends it, both sockets are closed.
        _ = carry_open(client, &shared, &way) => {}
        _ = cut.wait_for(|way| *way == Way::Cut) => {}
    }
}

async fn carry_open(mut client: TcpStream, shared: &Shared, way: &watch::Sender<Way>) -> Result<()> {
    let mut state = way.subscribe();
    state.wait_for(|way| *way == Way::Open).await?;
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut commits = CommitFinder::new(shared.protocol);
    let mut asked = vec![0; 64 * 1_024];
    let mut answer = vec![0; 64 * 1_024];
    loop {
        state.wait_for(|way| *way == Way::Open).await?;
        tokio::select! {
            biased;
            changed = state.changed() => changed?,
            read = client.read(&mut asked) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                let is_commit = commits.find(&asked[..read]);
                if is_commit && shared.freeze_at_commit.swap(false, Ordering::SeqCst) {
                    way.send_replace(Way::Frozen);
                }
                // It may have been frozen meanwhile; then it waits here.
                state.wait_for(|way| *way == Way::Open).await?;
                server.write_all(&asked[..read]).await?;
                if (is_commit && take(&shared.commits_to_lose)) || take(&shared.any_to_lose) {
                    commits.wait_for_answer(&mut server, is_commit).await?;
                    shared.lost.fetch_add(1, Ordering::SeqCst);
                    return Ok(());
                }
            }
            read = server.read(&mut answer) => {
                let read = read?;
                state.wait_for(|way| *way == Way::Open).await?;
                if read == 0 {
                    return Ok(());
                }
                client.write_all(&answer[..read]).await?;
            }
        }
    }
}

fn take(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}
