//! Hints that come before anybody listens, for transports that keep them.

use ratchet_core::Priority;

use super::cluster::Cluster;

fn are_kept(cluster: &Cluster) -> bool {
    let kept = cluster.transport().keeps_early_hints();
    if !kept {
        eprintln!("NOT TESTED: this transport keeps no early hints");
    }
    kept
}

pub(super) async fn hints_that_came_early_reach_the_first_listener_as_one(cluster: Cluster) {
    let ((a, _), b) = (cluster.node().await, cluster.deaf_node().await);
    if !are_kept(&cluster) {
        return;
    }
    let mut early = Vec::new();
    for priority in [Priority::Low, Priority::High, Priority::Normal] {
        early.push(a.notifies(priority));
        b.counts("an early hint", |stats| stats.received == early.len() as u64).await;
    }
    let first = b.listens();
    let second = b.listens();
    let late = a.speaks();
    first.hears(&late).await;
    second.hears(&late).await;
    assert_eq!(first.heard(), [early.remove(1), late.clone()]);
    assert_eq!(second.heard(), [late]);
}
