//! A way to the server that a test can cut: connections pass through it, until they do not.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Connections break, and new ones too.
    Cut,
    /// Nothing passes, and nobody is told.
    Silent,
}

#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    way: watch::Sender<Way>,
}

impl Proxy {
    pub(crate) async fn before(server: &str) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), server)
    }

    pub(crate) fn on(listener: TcpListener, server: &str) -> Self {
        let address = listener.local_addr().unwrap();
        let (way, state) = watch::channel(Way::Open);
        tokio::spawn(accept(listener, server.trim_start_matches("redis://").to_owned(), state));
        Self { address, way }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn set(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn accept(listener: TcpListener, server: String, way: watch::Receiver<Way>) {
    while let Ok((client, _)) = listener.accept().await {
        if *way.borrow() != Way::Cut {
            tokio::spawn(forward(client, server.clone(), way.clone()));
        }
    }
}

async fn forward(mut client: TcpStream, server: String, mut way: watch::Receiver<Way>) {
    let mut server = TcpStream::connect(server).await.unwrap();
    loop {
        let state = *way.borrow_and_update();
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server), if state == Way::Open => return,
            changed = way.changed() => if changed.is_err() || *way.borrow() == Way::Cut { return },
        }
    }
}
