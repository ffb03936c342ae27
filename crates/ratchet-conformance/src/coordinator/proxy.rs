//! A way to the server that a test can cut: connections pass through it, until they do not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Everything passes.
    Open,
    /// Connections break, and new ones too.
    Cut,
    /// Nothing passes, and nobody is told.
    Silent,
    /// Nothing passes on connections from before, and nobody is told; new ones are open. So does a firewall that forgets.
    Forgotten,
}

/// Passes connections on to a server until it is told not to.
#[derive(Debug)]
pub struct Proxy {
    server: String,
    /// Where it listens.
    pub address: SocketAddr,
    way: watch::Sender<Way>,
    connections: Connections,
}

/// What each open connection does with what passes. It belongs to the connection, and is gone with it.
type Connections = Arc<Mutex<Vec<Weak<Mutex<Way>>>>>;

impl Proxy {
    /// A proxy before the server of this URL, on a free port.
    pub async fn before(server: &str) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.expect("there is a free port"), server)
    }

    /// The same with a listener of the caller's.
    pub fn on(listener: TcpListener, server: &str) -> Self {
        let address = listener.local_addr().expect("a listener has an address");
        let (way, state) = watch::channel(Way::Open);
        let connections = Connections::default();
        tokio::spawn(accept(listener, authority(server).to_owned(), state, connections.clone()));
        Self { server: server.to_owned(), address, way, connections }
    }

    /// The server's URL with this proxy in its place.
    pub fn url(&self) -> String {
        self.server.replacen(authority(&self.server), &self.address.to_string(), 1)
    }

    /// Changes what happens to what passes. When this is done every connection heeds it: even a cut of no length breaks them.
    pub async fn set(&self, way: Way) {
        self.way.send_replace(way);
        let heeds = |one: &Weak<Mutex<Way>>| one.upgrade().is_none_or(|one| *one.lock().unwrap() == way);
        while !self.connections.lock().unwrap().iter().all(heeds) {
            tokio::task::yield_now().await;
        }
    }
}

/// The host and port of a URL.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

async fn accept(listener: TcpListener, server: String, way: watch::Receiver<Way>, connections: Connections) {
    while let Ok((client, _)) = listener.accept().await {
        // The way is looked at under the lock: whoever changes it then finds this connection among the others.
        let mut connections = connections.lock().unwrap();
        let state = *way.borrow();
        if state != Way::Cut {
            let heeded = Arc::new(Mutex::new(state));
            connections.retain(|one| one.strong_count() > 0);
            connections.push(Arc::downgrade(&heeded));
            tokio::spawn(forward(client, server.clone(), way.clone(), heeded));
        }
    }
}

async fn forward(mut client: TcpStream, server: String, mut way: watch::Receiver<Way>, heeded: Arc<Mutex<Way>>) {
    // A server that is away looks like a way that is cut.
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let mut is_new = *heeded.lock().unwrap() == Way::Forgotten;
    loop {
        let state = *way.borrow_and_update();
        *heeded.lock().unwrap() = state;
        let passes = match state {
            Way::Open => true,
            Way::Cut => return,
            Way::Silent => false,
            Way::Forgotten => is_new,
        };
        is_new = false;
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server), if passes => return,
            changed = way.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_cut_of_no_length_breaks_every_connection() {
        let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::before(&echo.local_addr().unwrap().to_string()).await;
        tokio::spawn(async move {
            while let Ok((mut client, _)) = echo.accept().await {
                tokio::spawn(async move {
                    let (mut reading, mut writing) = client.split();
                    tokio::io::copy(&mut reading, &mut writing).await
                });
            }
        });
        let mut connections = Vec::new();
        for _ in 0..8 {
            let mut connection = TcpStream::connect(proxy.address).await.unwrap();
            connection.write_all(b"a").await.unwrap();
            assert_eq!(connection.read_u8().await.unwrap(), b'a');
            connections.push(connection);
        }
        proxy.set(Way::Cut).await;
        proxy.set(Way::Open).await;
        for mut connection in connections {
            let _ = connection.write_all(b"b").await;
            assert!(connection.read_u8().await.is_err(), "a connection from before the cut answers");
        }
    }
}
