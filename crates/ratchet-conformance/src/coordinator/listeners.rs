//! Listeners do not depend on each other.

use ratchet_core::Hint;

use super::cluster::Cluster;

pub(super) async fn every_listener_is_told(cluster: Cluster) {
    let ((a, _), (b, first)) = (cluster.node().await, cluster.node().await);
    let (second, third) = (b.listens(), b.listens());
    let hint = a.speaks();
    for ear in [first, second, third] {
        ear.hears(&hint).await;
    }
}

pub(super) async fn a_panicking_listener_does_not_harm_the_others(cluster: Cluster) {
    let (a, b) = (cluster.deaf_node().await, cluster.deaf_node().await);
    let breaks = |_: &Hint| panic!("a listener gone wrong: the case wants it so");
    let before = b.listens();
    let _breaks = b.coordinator.listen(b.id, Box::new(breaks));
    let after = b.listens();
    for failures in 1..=2 {
        let hint = a.speaks();
        before.hears(&hint).await;
        after.hears(&hint).await;
        b.counts("the count of a failed listener", |stats| stats.listener_failures == failures).await;
    }
}

pub(super) async fn a_listener_is_told_nothing_after_its_guard_is_dropped(cluster: Cluster) {
    let ((a, _), (b, mut gone)) = (cluster.node().await, cluster.node().await);
    let stays = b.listens();
    let first = a.speaks();
    gone.hears(&first).await;
    gone.closes();
    let second = a.speaks();
    stays.hears(&second).await;
    assert_eq!(gone.heard(), [first]);
}
