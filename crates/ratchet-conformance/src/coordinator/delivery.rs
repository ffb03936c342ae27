//! Hints arrive: once, in time, unchanged, and not where they came from.

use ratchet_core::Priority;

use super::cluster::{Cluster, new_id};

pub(super) async fn a_hint_reaches_another_node_once_and_in_time(cluster: Cluster) {
    let ((a, _), (_b, ear)) = (cluster.node().await, cluster.node().await);
    let first = a.speaks();
    ear.hears(&first).await;
    // What follows shows that the first does not come again.
    let second = a.speaks();
    ear.hears(&second).await;
    assert_eq!(ear.heard(), [first, second]);
}

pub(super) async fn every_priority_arrives_as_it_was_sent(cluster: Cluster) {
    let ((a, _), (_b, ear)) = (cluster.node().await, cluster.node().await);
    for priority in Priority::ALL {
        let hint = a.notifies(priority);
        ear.hears(&hint).await;
    }
    let priorities: Vec<_> = ear.heard().iter().map(|hint| hint.priority).collect();
    assert_eq!(priorities, Priority::ALL);
}

pub(super) async fn origin_and_priority_arrive_exactly(cluster: Cluster) {
    let ((a, ear_a), (b, ear_b), (_c, ear)) = (cluster.node().await, cluster.node().await, cluster.node().await);
    let (from_a, from_b) = (a.notifies(Priority::Critical), b.notifies(Priority::Lowest));
    ear.hears(&from_a).await;
    ear.hears(&from_b).await;
    ear_b.hears(&from_a).await;
    ear_a.hears(&from_b).await;
}

pub(super) async fn a_node_does_not_hear_its_own_hints(cluster: Cluster) {
    let ((a, ear_a), (b, ear_b)) = (cluster.node().await, cluster.node().await);
    let own = a.notifies(Priority::Normal);
    ear_b.hears(&own).await;
    // By now the transport has brought it to everyone it would; what comes later comes after it.
    let other = b.speaks();
    ear_a.hears(&other).await;
    assert_eq!(ear_a.heard(), [other]);
}

pub(super) async fn those_who_share_a_coordinator_hear_each_other_once(cluster: Cluster) {
    let ((a, ear), (b, ear_b)) = (cluster.node().await, cluster.node().await);
    let neighbor = a.listens_as(new_id());
    let hint = a.notifies(Priority::Normal);
    neighbor.hears(&hint).await;
    ear_b.hears(&hint).await;
    let last = b.speaks();
    neighbor.hears(&last).await;
    assert_eq!(neighbor.heard(), [hint, last.clone()]);
    ear.hears(&last).await;
    assert_eq!(ear.heard(), [last]);
}
