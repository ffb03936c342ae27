//! Waking nodes of other processes over a transport of your own: here UDP between two sockets. The `Hub` has everything
//! but the transport. (For Redis there is `ratchet::redis`, and PostgreSQL needs nothing.)

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet::coordinator::{CoordinatorStats, Hub, ListenGuard, Listener};
use ratchet::prelude::*;
use ratchet::{Client, ClusterCoordinator, Hint, MemoryStore, NodeId, SystemClock, new_node_id};

#[derive(Debug)]
struct Udp {
    hub: Hub,
}

impl Udp {
    fn new(socket: UdpSocket, peer: SocketAddr) -> std::io::Result<Self> {
        let hub = Hub::new(new_node_id().0);
        // What the hub has to say goes out; a datagram that is lost costs latency and nothing else.
        let (out, speaking) = (socket.try_clone()?, hub.clone());
        tokio::spawn(async move {
            while let Some(texts) = speaking.next_outgoing().await {
                for text in texts {
                    if out.send_to(text.as_bytes(), peer).is_err() {
                        speaking.transport_failed();
                    }
                }
            }
        });
        // What comes in goes to the hub, which looks at it closely: anybody may have sent it.
        let listening = hub.clone();
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while !listening.is_closed() {
                if let Ok(length) = socket.recv(&mut buffer) {
                    listening.incoming(&String::from_utf8_lossy(&buffer[..length]));
                }
            }
        });
        Ok(Self { hub })
    }
}

#[async_trait]
impl ClusterCoordinator for Udp {
    fn notify(&self, hint: &Hint) {
        self.hub.notify(hint);
    }
    fn listen(&self, own: NodeId, listener: Listener) -> ListenGuard {
        self.hub.listen(own, listener)
    }
    async fn flush(&self) {
        self.hub.flushed().await;
    }
    async fn close(&self) {
        self.hub.close();
    }
    fn stats(&self) -> CoordinatorStats {
        self.hub.stats()
    }
}

#[job]
async fn greet(name: String) -> String {
    format!("hello, {name}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (here, there) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    let (here_at, there_at) = (here.local_addr()?, there.local_addr()?);
    let (here, there) = (Arc::new(Udp::new(here, there_at)?), Arc::new(Udp::new(there, here_at)?));

    // A store in memory can wake nobody, so that what wakes the node is the hint.
    let store = MemoryStore::new(Arc::new(SystemClock));
    let node = Ratchet::builder().store(store.clone()).jobs(jobs![greet]).coordinator(here.clone()).start().await?;
    let client = Client::with_coordinator(store, there.clone());

    let handle = client.enqueue(greet("Ada".into())).submit().await?;
    println!("{}", handle.result().await?);
    println!("hints sent {}, heard {}", there.stats().sent, node.stats().hints);

    node.shutdown().await;
    here.close().await;
    there.close().await;
    Ok(())
}
