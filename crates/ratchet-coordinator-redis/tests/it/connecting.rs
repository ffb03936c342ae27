//! What a wrong address says, and that a server that is away is none.

use std::time::{Duration, Instant};

use ratchet_conformance::coordinator::Proxy;
use ratchet_coordinator_redis::{ConnectError, RedisCoordinator};
use ratchet_core::ClusterCoordinator;
use tokio::net::TcpListener;

use crate::outages::hears_again;
use crate::suite::{channel, hint, server};

#[tokio::test]
async fn a_wrong_address_is_an_error_that_hides_the_password() {
    for url in ["", "localhost:6379", "http://localhost", "redis://", "redis://u:s3cret@host:port", "rediss://host"] {
        let error = RedisCoordinator::connect(url).await.expect_err(url);
        assert!(matches!(error, ConnectError::Url(_)), "{url}: {error:?}");
        let text = format!("{error} {error:?} {:?}", RedisCoordinator::options(url));
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn a_channel_without_a_name_is_an_error() {
    for name in ["", "a b", "a\n", &"x".repeat(201)] {
        let connected = RedisCoordinator::options(server()).channel(name).connect().await;
        assert!(matches!(connected, Err(ConnectError::Channel { .. })), "{name:?}");
    }
}

#[tokio::test]
async fn suffixes_keep_installations_apart() {
    let channel = channel();
    let connect = async |suffix: &str| {
        RedisCoordinator::options(server()).channel(&channel).suffix(suffix).connect().await.unwrap()
    };
    let (a, same, other) = (connect("blue").await, connect("blue").await, connect("green").await);
    hears_again(&a, &same).await;
    assert_eq!(other.stats().received, 0);
}

#[tokio::test]
async fn a_server_that_comes_later_is_found() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let channel = channel();
    let connect =
        async || RedisCoordinator::options(format!("redis://{address}")).channel(&channel).connect().await.unwrap();
    let begun = Instant::now();
    let (a, b) = (connect().await, connect().await);
    a.notify(&hint());
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(a.stats().transport_failures > 0);
    let _proxy = Proxy::on(TcpListener::bind(address).await.unwrap(), &server());
    hears_again(&a, &b).await;
    assert_eq!(b.stats().reconnects, 0, "the first connection is none that came back");
}
