//! Counters are exact: operators judge a transport by them.

use super::cluster::Cluster;

pub(super) async fn every_notify_is_counted_as_sent_once(cluster: Cluster) {
    let ((a, _), (b, ear)) = (cluster.node().await, cluster.node().await);
    for sent in 1..=5 {
        let hint = a.speaks();
        ear.hears(&hint).await;
        assert_eq!((a.stats().sent, b.stats().sent), (sent, 0));
    }
}

pub(super) async fn every_hint_that_comes_in_is_counted_once(cluster: Cluster) {
    let ((a, _), (b, ear)) = (cluster.node().await, cluster.node().await);
    // More listeners do not make more hints.
    let _second = b.listens();
    for received in 1..=5 {
        let hint = a.speaks();
        ear.hears(&hint).await;
        assert_eq!((a.stats().received, b.stats().received), (0, received));
    }
}

pub(super) async fn own_hints_that_come_back_are_counted_as_such_once(cluster: Cluster) {
    let ((a, ear_a), (b, ear_b)) = (cluster.node().await, cluster.node().await);
    for _ in 0..3 {
        let own = a.speaks();
        ear_b.hears(&own).await;
    }
    let other = b.speaks();
    ear_a.hears(&other).await;
    let stats = a.stats();
    assert!(
        [0, 3].contains(&stats.self_suppressed),
        "each is counted once, or the transport keeps them back: {stats:?}"
    );
    assert_eq!(stats.received, 1, "{stats:?}");
}
