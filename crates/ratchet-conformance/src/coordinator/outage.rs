//! Losing the transport costs latency and nothing else.

use std::time::{Duration, Instant};

use super::cluster::{Cluster, Ear, Node};

/// How soon a transport that is back must carry hints again: its pauses between attempts may have grown.
const BACK_WITHIN: Duration = Duration::from_secs(10);
/// Notifying waits for nothing.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Speaks until it is heard.
async fn is_heard_again(a: &Node, ear: &Ear) {
    let begun = Instant::now();
    while !ear.does_hear(Duration::from_millis(100), &a.speaks()).await {
        assert!(begun.elapsed() < BACK_WITHIN, "no hint arrives after the outage");
    }
}

pub(super) async fn notify_is_quick_and_harmless_while_the_transport_is_away(cluster: Cluster) {
    let ((a, _), (_b, ear)) = (cluster.node().await, cluster.node().await);
    let hint = a.speaks();
    ear.hears(&hint).await;
    if !cluster.cut().await {
        return;
    }
    let begun = Instant::now();
    for _ in 0..2_000 {
        a.speaks();
    }
    assert!(begun.elapsed() < AT_ONCE * 10, "2,000 hints took {:?}", begun.elapsed());
    let begun = Instant::now();
    a.speaks();
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

pub(super) async fn hints_arrive_again_after_an_outage(cluster: Cluster) {
    let ((a, ear_a), (b, ear_b)) = (cluster.node().await, cluster.node().await);
    if !cluster.cut().await {
        return;
    }
    let lost = a.speaks();
    assert!(!ear_b.does_hear(Duration::from_millis(300), &lost).await, "the transport was not cut");
    cluster.transport().restore().await;
    is_heard_again(&a, &ear_b).await;
    is_heard_again(&b, &ear_a).await;
}

pub(super) async fn an_outage_is_counted(cluster: Cluster) {
    let ((a, _), (b, ear)) = (cluster.node().await, cluster.node().await);
    // A listener that is still on its way would come after the cut, and have nothing to count.
    is_heard_again(&a, &ear).await;
    if !cluster.cut().await {
        return;
    }
    a.speaks();
    let all = || [a.stats(), b.stats()];
    super::cluster::eventually("a failure of the transport", || all().iter().any(|s| s.transport_failures > 0)).await;
    cluster.transport().restore().await;
    is_heard_again(&a, &ear).await;
    assert!(all().iter().any(|stats| stats.reconnects > 0), "{:?}", all());
}
