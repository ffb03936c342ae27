//! Leases for what one node in the cluster does.

use crate::bench::{Bench, mins};

pub(crate) async fn a_lease_has_one_owner(bench: Bench) {
    let other = bench.another_node().await;
    assert!(bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap());
    assert!(!bench.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    assert!(bench.store.acquire_lease("archive", other, mins(5)).await.unwrap(), "another name is another lease");
}

pub(crate) async fn a_released_lease_can_be_taken_by_another(bench: Bench) {
    let other = bench.another_node().await;
    assert!(bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap());
    bench.store.release_lease("purge", bench.node).await.unwrap();
    assert!(bench.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    bench.store.release_lease("purge", other).await.unwrap();
    assert!(bench.store.acquire_lease("purge", other, mins(5)).await.unwrap(), "also by the same node");
}

pub(crate) async fn a_lease_can_be_renewed_by_its_owner(bench: Bench) {
    let other = bench.another_node().await;
    assert!(bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap());
    bench.advance(mins(4));
    assert!(bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap());
    bench.advance(mins(4));
    assert!(!bench.store.acquire_lease("purge", other, mins(5)).await.unwrap(), "eight minutes in, it was renewed");
    bench.advance(mins(2));
    assert!(bench.store.acquire_lease("purge", other, mins(5)).await.unwrap());
}

pub(crate) async fn an_expired_lease_can_be_taken(bench: Bench) {
    let other = bench.another_node().await;
    assert!(bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap());
    bench.advance(mins(6));
    assert!(bench.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    assert!(!bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap(), "its first owner has lost it");
}

pub(crate) async fn a_lease_is_released_by_its_owner_alone(bench: Bench) {
    let other = bench.another_node().await;
    assert!(bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap());
    bench.store.release_lease("purge", other).await.expect("harmless");
    assert!(!bench.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    bench.advance(mins(6));
    assert!(bench.store.acquire_lease("purge", other, mins(5)).await.unwrap());
    bench.store.release_lease("purge", bench.node).await.expect("harmless: the lease it had is over");
    assert!(!bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap());
}

pub(crate) async fn releasing_a_lease_that_nobody_holds_is_harmless(bench: Bench) {
    bench.store.release_lease("purge", bench.node).await.expect("harmless");
    assert!(bench.store.acquire_lease("purge", bench.node, mins(5)).await.unwrap());
}
