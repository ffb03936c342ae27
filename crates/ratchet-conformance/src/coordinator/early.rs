//! Hints that come before anybody listens, for transports that keep them.

use ratchet_core::coordinator::EARLY_HINTS_MAX;

use super::cluster::Cluster;

fn are_kept(cluster: &Cluster) -> bool {
    let kept = cluster.transport().keeps_early_hints();
    if !kept {
        eprintln!("NOT TESTED: this transport keeps no early hints");
    }
    kept
}

pub(super) async fn hints_that_came_early_are_told_to_the_first_listener(cluster: Cluster) {
    let ((a, _), b) = (cluster.node().await, cluster.deaf_node().await);
    if !are_kept(&cluster) {
        return;
    }
    let early = [a.speaks(), a.speaks()];
    b.counts("two early hints", |stats| stats.received == 2).await;
    let first = b.listens();
    let second = b.listens();
    let late = a.speaks();
    first.hears(&late).await;
    second.hears(&late).await;
    let [one, two] = early;
    assert_eq!(first.heard(), [one, two, late.clone()]);
    assert_eq!(second.heard(), [late]);
}

pub(super) async fn of_too_many_early_hints_the_oldest_are_lost_and_counted(cluster: Cluster) {
    let ((a, _), b) = (cluster.node().await, cluster.deaf_node().await);
    if !are_kept(&cluster) {
        return;
    }
    let sent: Vec<_> = (0..EARLY_HINTS_MAX + 10).map(|_| a.speaks()).collect();
    b.counts("all early hints", |stats| stats.received == sent.len() as u64).await;
    b.counts("ten unheard hints", |stats| stats.unheard == 10).await;
    assert_eq!(b.listens().heard(), sent[10..]);
}
