//! Outages that the suite does not make: connections that die in silence, servers that are killed, blocked runtimes.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use ratchet_conformance::coordinator::{Proxy, Way};
use ratchet_coordinator_redis::RedisCoordinator;
use ratchet_core::ClusterCoordinator;
use ratchet_testdb::{Profile, Server};

use crate::suite::{channel, hint, server};

/// Speaks until it is heard.
pub(crate) async fn hears_again(from: &RedisCoordinator, to: &RedisCoordinator) {
    let (told, heard) = mpsc::channel();
    let _guard = to.listen(ratchet_engine::new_node_id(), Box::new(move |_| _ = told.send(())));
    let begun = Instant::now();
    while heard.try_recv().is_err() {
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?} {:?}", from.stats(), to.stats());
        from.notify(&hint());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_connection_that_dies_in_silence_is_noticed() {
    let (proxy, channel) = (Proxy::before(&server()).await, channel());
    let connect = async |url: String| {
        let options = RedisCoordinator::options(url).channel(&channel).ping_every(Duration::from_millis(100));
        options.connect().await.unwrap()
    };
    let (near, far) = (connect(server()).await, connect(proxy.url()).await);
    hears_again(&near, &far).await;
    proxy.set(Way::Silent).await;
    let begun = Instant::now();
    while far.stats().transport_failures == 0 {
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", far.stats());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    proxy.set(Way::Cut).await;
    proxy.set(Way::Open).await;
    hears_again(&near, &far).await;
    assert!(far.stats().reconnects > 0);
}

#[tokio::test]
async fn a_server_that_is_killed_and_started_again_is_found() {
    let mut server = tokio::task::spawn_blocking(|| Server::redis(Profile::Fast).unwrap()).await.unwrap();
    let (a, b) = (
        RedisCoordinator::connect(server.url()).await.unwrap(),
        RedisCoordinator::connect(server.url()).await.unwrap(),
    );
    hears_again(&a, &b).await;
    let server = tokio::task::spawn_blocking(move || {
        server.kill().unwrap();
        server
    });
    let mut server = server.await.unwrap();
    let same = hint();
    for _ in 0..2_000 {
        a.notify(&same);
    }
    let server = tokio::task::spawn_blocking(move || {
        server.start().unwrap();
        server
    });
    let _server = server.await.unwrap();
    hears_again(&a, &b).await;
    hears_again(&b, &a).await;
    assert!(a.stats().sent > 2_000 && a.stats().coalesced > 1_900, "{:?}", a.stats());
    assert!(a.stats().reconnects > 0 && b.stats().reconnects > 0);
}

/// One thread, and it is blocked: what speaks and hears must have another.
#[tokio::test(flavor = "current_thread")]
async fn a_blocked_runtime_delays_no_hint() {
    let channel = channel();
    let connect = async || RedisCoordinator::options(server()).channel(&channel).connect().await.unwrap();
    let (a, b) = (connect().await, connect().await);
    let (told, heard) = mpsc::channel();
    let _guard = b.listen(ratchet_engine::new_node_id(), Box::new(move |_| _ = told.send(Instant::now())));
    let mut slowest = Duration::ZERO;
    for _ in 0..100 {
        let begun = Instant::now();
        a.notify(&hint());
        let at = heard.recv_timeout(Duration::from_secs(2)).expect("a hint comes while the runtime is blocked");
        slowest = slowest.max(at.duration_since(begun));
    }
    println!("slowest of 100 hints: {slowest:?}");
}

#[tokio::test]
async fn closing_does_not_wait_for_a_server_that_is_away() {
    let (proxy, channel) = (Proxy::before(&server()).await, channel());
    let a = RedisCoordinator::options(proxy.url()).channel(channel).connect().await.unwrap();
    proxy.set(Way::Cut).await;
    a.notify(&hint());
    while a.stats().transport_failures < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let begun = Instant::now();
    a.close().await;
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}
