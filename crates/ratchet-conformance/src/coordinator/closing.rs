//! A closed coordinator is silent on both sides, and harmless.

use super::cluster::{Cluster, silence};

pub(super) async fn closing_twice_is_harmless(cluster: Cluster) {
    let (a, ear) = cluster.node().await;
    a.coordinator.close().await;
    a.coordinator.close().await;
    tokio::join!(a.coordinator.close(), a.coordinator.close());
    drop(ear);
}

pub(super) async fn a_closed_coordinator_tells_nothing(cluster: Cluster) {
    let ((a, _), (b, closed), (_c, open)) = (cluster.node().await, cluster.node().await, cluster.node().await);
    let first = a.speaks();
    closed.hears(&first).await;
    b.coordinator.close().await;
    let late = b.listens();
    let second = a.speaks();
    open.hears(&second).await;
    silence().await;
    assert_eq!(closed.heard(), [first]);
    assert_eq!(late.heard(), []);
}

pub(super) async fn a_closed_coordinator_sends_nothing(cluster: Cluster) {
    let ((a, _), (b, _), (_c, ear)) = (cluster.node().await, cluster.node().await, cluster.node().await);
    let first = a.speaks();
    ear.hears(&first).await;
    a.coordinator.close().await;
    a.speaks();
    let last = b.speaks();
    ear.hears(&last).await;
    silence().await;
    assert_eq!(ear.heard(), [first, last]);
    assert_eq!(a.stats().sent, 1);
}

pub(super) async fn what_was_announced_before_the_close_is_sent(cluster: Cluster) {
    let ((a, _), (_b, ear)) = (cluster.node().await, cluster.node().await);
    let last = a.speaks();
    a.coordinator.close().await;
    ear.hears(&last).await;
}
