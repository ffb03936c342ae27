//! Leases for what one node in the cluster does.

use crate::harness::{Harness, mins};

pub(crate) async fn a_lease_has_one_owner(harness: Harness) {
    let other = harness.another_node().await;
    assert!(harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap());
    assert!(!harness.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    assert!(harness.store.acquire_lease("archive", other, mins(5)).await.unwrap(), "another name is another lease");
}

pub(crate) async fn a_released_lease_can_be_taken_by_another(harness: Harness) {
    let other = harness.another_node().await;
    assert!(harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap());
    harness.store.release_lease("purge", harness.node).await.unwrap();
    assert!(harness.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    harness.store.release_lease("purge", other).await.unwrap();
    assert!(harness.store.acquire_lease("purge", other, mins(5)).await.unwrap(), "also by the same node");
}

pub(crate) async fn a_lease_can_be_renewed_by_its_owner(harness: Harness) {
    let other = harness.another_node().await;
    assert!(harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap());
    harness.advance(mins(4));
    assert!(harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap());
    harness.advance(mins(4));
    assert!(!harness.store.acquire_lease("purge", other, mins(5)).await.unwrap(), "eight minutes in, it was renewed");
    harness.advance(mins(2));
    assert!(harness.store.acquire_lease("purge", other, mins(5)).await.unwrap());
}

pub(crate) async fn an_expired_lease_can_be_taken(harness: Harness) {
    let other = harness.another_node().await;
    assert!(harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap());
    harness.advance(mins(6));
    assert!(harness.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    assert!(!harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap(), "its first owner has lost it");
}

pub(crate) async fn a_lease_is_released_by_its_owner_alone(harness: Harness) {
    let other = harness.another_node().await;
    assert!(harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap());
    harness.store.release_lease("purge", other).await.expect("harmless");
    assert!(!harness.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    harness.advance(mins(6));
    assert!(harness.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    harness.store.release_lease("purge", harness.node).await.expect("harmless: the lease it had is over");
    assert!(!harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap());
}

pub(crate) async fn releasing_a_lease_that_nobody_holds_is_harmless(harness: Harness) {
    harness.store.release_lease("purge", harness.node).await.expect("harmless");
    assert!(harness.store.acquire_lease("purge", harness.node, mins(5)).await.unwrap());
}
