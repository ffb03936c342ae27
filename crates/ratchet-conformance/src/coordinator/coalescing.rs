//! A burst of hints leaves as a few messages, and wakes other nodes as well as all of them would.

use std::time::Instant;

use ratchet_coordinator::WINDOW;
use ratchet_core::{Hint, Priority};

use super::cluster::{Cluster, new_id};

pub(super) async fn a_burst_leaves_in_few_messages_and_each_hint_is_counted(cluster: Cluster) {
    let ((a, _), (b, _)) = (cluster.node().await, cluster.node().await);
    let begun = Instant::now();
    let mut sent = 0;
    while begun.elapsed() < WINDOW * 20 {
        a.notifies(Priority::Normal);
        sent += 1;
        tokio::task::yield_now().await;
    }
    let windows = begun.elapsed().as_millis() / WINDOW.as_millis();
    let messages = || a.stats().sent - a.stats().coalesced;
    b.counts("every message of the burst", |stats| stats.received == messages()).await;
    assert_eq!(a.stats().sent, sent);
    // The first leaves at once, one in each window, and one after the burst.
    assert!(u128::from(messages()) <= windows + 2, "{} messages in {windows} windows", messages());
}

pub(super) async fn of_coalesced_hints_the_highest_priority_of_each_origin_arrives(cluster: Cluster) {
    let ((a, _), (_b, ear)) = (cluster.node().await, cluster.node().await);
    // Now and then a window ends in the midst of a round, and nothing is coalesced.
    for _ in 0..5 {
        let [one, two] = [new_id(), new_id()];
        for (of_one, of_two) in [
            (Priority::Low, Priority::Lowest),
            (Priority::Critical, Priority::Low),
            (Priority::Normal, Priority::High),
            (Priority::Lowest, Priority::Low),
        ] {
            a.coordinator.notify(&Hint { origin: one, priority: of_one });
            a.coordinator.notify(&Hint { origin: two, priority: of_two });
        }
        ear.hears(&Hint { origin: one, priority: Priority::Critical }).await;
        ear.hears(&Hint { origin: two, priority: Priority::High }).await;
    }
}
