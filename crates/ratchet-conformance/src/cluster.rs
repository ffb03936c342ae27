//! Nodes, heartbeats, orphans, and what a node runs according to the store.

use std::time::Duration;

use ratchet_core::claim::ClaimRequest;
use ratchet_core::clock::later;
use ratchet_core::node::NodeVitals;
use ratchet_core::service::{NodeServices, ServiceStand, ServiceVitals};
use ratchet_core::store::{Progress, Running};
use ratchet_core::{Claim, ErrorKind, JobState, NodeId, Settled};
use uuid::Uuid;

use crate::harness::{
    Harness, assert_about, assert_refused, ids, mins, new_id, registration, rescue, success, work, works,
};

pub(crate) async fn a_registered_node_is_listed_alive(harness: Harness) {
    let node = registration("second");
    harness.store.register(&node).await.unwrap();
    let record = harness.find_node(node.id).await.expect("the node is there");
    assert_eq!((&record.name, record.dead_at), (&node.name, None));
    assert_about(record.started_at, harness.now().await);
    assert_about(record.last_heartbeat, harness.now().await);
    assert_eq!(harness.store.nodes().await.unwrap().len(), 2);
}

pub(crate) async fn a_heartbeat_moves_the_time_and_nothing_else(harness: Harness) {
    let before = harness.find_node(harness.node).await.unwrap();
    harness.advance(mins(3));
    assert!(harness.beat(harness.node).await);
    let after = harness.find_node(harness.node).await.unwrap();
    assert_about(after.last_heartbeat, harness.now().await);
    assert_eq!((after.started_at, after.dead_at), (before.started_at, None));
}

pub(crate) async fn a_heartbeat_says_how_the_node_is(harness: Harness) {
    let mut heartbeat = harness.store.open_heartbeat().await.unwrap();
    for vitals in [
        NodeVitals { running: 7, clock_skew_us: Some(-1_500_000), ..NodeVitals::default() },
        NodeVitals { running: 0, clock_skew_us: Some(0), ..NodeVitals::default() },
        NodeVitals { running: 200, clock_skew_us: None, ..NodeVitals::default() },
        NodeVitals { running: 3, taken: vec![0, 3, 0], ..NodeVitals::default() },
        NodeVitals { running: 0, taken: vec![0, 0, 0], ..NodeVitals::default() },
    ] {
        assert!(heartbeat.beat(harness.node, vitals.clone()).await.unwrap());
        assert_eq!(harness.find_node(harness.node).await.unwrap().vitals, vitals);
    }
}

pub(crate) async fn a_heartbeat_says_which_breakers_are_not_closed(harness: Harness) {
    let mut heartbeat = harness.store.open_heartbeat().await.unwrap();
    let second = harness.another_node().await;
    let until = later(harness.now().await, mins(1));
    let stands = [ServiceStand::Open { until }, ServiceStand::ForcedOpen, ServiceStand::HalfOpen];
    let services = |count: usize| {
        let named = |(n, stand)| ServiceVitals { service: format!("κόσμος 🦀 {n}"), stand };
        NodeServices::of((0..count).zip(stands.into_iter().cycle()).map(named))
    };
    for count in [3, 1, NodeServices::LISTED_MAX + 8, 0] {
        let vitals = NodeVitals { running: 3, clock_skew_us: None, services: services(count), taken: vec![1, 2] };
        assert!(heartbeat.beat(harness.node, vitals.clone()).await.unwrap());
        assert_eq!(harness.find_node(harness.node).await.unwrap().vitals, vitals, "of the last heartbeat alone");
        assert!(harness.find_node(second).await.unwrap().vitals.services.is_empty(), "others have their own");
    }
}

pub(crate) async fn the_most_recently_heard_of_node_is_listed_first(harness: Harness) {
    harness.advance(mins(1));
    let second = harness.another_node().await;
    harness.advance(mins(1));
    let third = harness.another_node().await;
    harness.advance(mins(1));
    assert!(harness.beat(second).await);
    let order: Vec<_> = harness.store.nodes().await.unwrap().iter().map(|node| node.id).collect();
    assert_eq!(order, [second, third, harness.node]);
}

pub(crate) async fn a_stranger_has_no_heartbeat(harness: Harness) {
    assert!(!harness.beat(NodeId(Uuid::new_v4())).await);
    assert_eq!(harness.store.nodes().await.unwrap().len(), 1, "a heartbeat registers nobody");
}

pub(crate) async fn a_node_can_register_through_its_heartbeat(harness: Harness) {
    let node = registration("reborn");
    let mut heartbeat = harness.store.open_heartbeat().await.unwrap();
    heartbeat.register(&node).await.unwrap();
    assert!(heartbeat.beat(node.id, NodeVitals::default()).await.unwrap());
    assert_about(heartbeat.database_time().await.unwrap(), harness.now().await);
    harness.submit(work()).await;
    assert_eq!(harness.claim_one_as(node.id).await.job.picked_by, Some(node.id));
}

pub(crate) async fn a_deregistered_node_is_gone(harness: Harness) {
    let node = harness.another_node().await;
    harness.store.deregister(node).await.unwrap();
    assert_eq!(harness.find_node(node).await, None);
    assert!(!harness.beat(node).await);
    harness.store.deregister(node).await.expect("once more is harmless");
    assert!(harness.find_node(harness.node).await.is_some(), "the others stay");
}

/// The grace of these cases.
const GRACE: Duration = mins(5);

async fn orphans(harness: &Harness) -> (Vec<NodeId>, Vec<Claim>) {
    assert!(harness.beat(harness.node).await);
    let found = harness.store.orphans(harness.node, GRACE, 100).await.unwrap();
    (found.declared_dead, found.jobs)
}

pub(crate) async fn a_dead_nodes_job_is_an_orphan_and_can_be_rescued(harness: Harness) {
    let node = harness.another_node().await;
    harness.submit(work()).await;
    let claim = harness.claim_one_as(node).await;
    harness.advance(mins(6));
    let (dead, jobs) = orphans(&harness).await;
    assert_eq!(dead, [node]);
    assert_eq!(jobs, std::slice::from_ref(&claim), "with the dead owner's fence, unchanged");
    assert_eq!(harness.state(claim.job.id).await, JobState::Running, "looking changes no job");
    harness.rescue(&jobs[0]).await;
    let job = harness.job(claim.job.id).await;
    assert_eq!((job.state, job.crash_count), (JobState::Pending, 1));
    assert!(orphans(&harness).await.1.is_empty());
}

pub(crate) async fn a_slow_job_of_a_live_node_is_no_orphan(harness: Harness) {
    let node = harness.another_node().await;
    harness.submit(work()).await;
    harness.claim_one_as(node).await;
    harness.advance(mins(60));
    assert!(harness.beat(node).await);
    assert_eq!(orphans(&harness).await, (vec![], vec![]));
    assert!(harness.beat(node).await);
}

pub(crate) async fn a_node_within_its_grace_is_alive(harness: Harness) {
    let node = harness.another_node().await;
    harness.submit(work()).await;
    harness.claim_one_as(node).await;
    harness.advance(mins(4));
    assert_eq!(orphans(&harness).await, (vec![], vec![]));
    assert!(harness.beat(node).await);
}

pub(crate) async fn a_grace_may_be_shorter_than_a_minute(harness: Harness) {
    let node = harness.another_node().await;
    harness.submit(work()).await;
    let claim = harness.claim_one_as(node).await;
    harness.advance(Duration::from_secs(45));
    assert!(harness.beat(harness.node).await);
    let found = harness.store.orphans(harness.node, Duration::from_secs(15), 100).await.unwrap();
    assert_eq!((found.declared_dead, ids(&found.jobs)), (vec![node], vec![claim.job.id]));
}

pub(crate) async fn a_job_picked_within_the_grace_is_not_yet_an_orphan(harness: Harness) {
    let node = harness.another_node().await;
    harness.advance(mins(4));
    harness.submit(work()).await;
    let claim = harness.claim_one_as(node).await;
    harness.advance(mins(2));
    assert_eq!(orphans(&harness).await, (vec![node], vec![]), "dead, but the job was picked two minutes ago");
    assert!(harness.find_node(node).await.expect("kept while it has a job").dead_at.is_some());
    harness.advance(mins(4));
    assert_eq!(ids(&orphans(&harness).await.1), [claim.job.id]);
}

pub(crate) async fn jobs_of_a_deregistered_node_are_orphans_at_once(harness: Harness) {
    let node = harness.another_node().await;
    harness.submit_each(works(2)).await;
    let claim = harness.claim_one_as(node).await;
    harness.claim_one().await;
    harness.store.deregister(node).await.unwrap();
    assert_eq!(ids(&orphans(&harness).await.1), [claim.job.id]);
}

pub(crate) async fn only_running_jobs_are_orphans(harness: Harness) {
    let node = harness.another_node().await;
    harness.submit_each(works(4)).await;
    let claims = harness.claim(&ClaimRequest { node, limit: 3, ..harness.request() }).await;
    harness.store.cancel(claims[0].job.id).await.unwrap();
    harness.succeed(&claims[1]).await;
    harness.advance(mins(6));
    let (dead, jobs) = orphans(&harness).await;
    assert_eq!((dead, ids(&jobs)), (vec![node], vec![claims[2].job.id]));
}

pub(crate) async fn orphans_come_in_portions(harness: Harness) {
    let node = harness.another_node().await;
    let mut all = harness.submit_each(works(5)).await;
    harness.claim(&ClaimRequest { node, ..harness.request() }).await;
    harness.advance(mins(6));
    assert!(harness.beat(harness.node).await);
    let mut rescued = Vec::new();
    for expected in [2, 2, 1, 0] {
        let found = harness.store.orphans(harness.node, GRACE, 2).await.unwrap();
        assert_eq!(found.jobs.len(), expected);
        for orphan in found.jobs {
            harness.rescue(&orphan).await;
            rescued.push(orphan.job.id);
        }
    }
    rescued.sort();
    all.sort();
    assert_eq!(rescued, all);
}

pub(crate) async fn of_several_rescuers_one_wins(harness: Harness) {
    let (node, second) = (harness.another_node().await, harness.another_node().await);
    harness.submit(work()).await;
    let claim = harness.claim_one_as(node).await;
    harness.advance(mins(6));
    assert!(harness.beat(second).await);
    let (_, first) = orphans(&harness).await;
    let also = harness.store.orphans(second, GRACE, 10).await.unwrap();
    assert_eq!((ids(&first), ids(&also.jobs)), (vec![claim.job.id], vec![claim.job.id]));
    assert_eq!(also.declared_dead, [], "it was declared dead before");
    assert_eq!(harness.settle(rescue(&first[0])).await, Settled::Applied);
    assert_eq!(harness.settle(rescue(&also.jobs[0])).await, Settled::Conflict);
    assert_eq!(harness.job(claim.job.id).await.crash_count, 1);
    assert_eq!(harness.attempts(claim.job.id).await.len(), 1);
}

pub(crate) async fn a_dead_node_has_no_heartbeat_and_is_removed_after_its_jobs(harness: Harness) {
    let node = harness.another_node().await;
    harness.submit(work()).await;
    harness.claim_one_as(node).await;
    harness.advance(mins(6));
    let (_, jobs) = orphans(&harness).await;
    assert!(!harness.beat(node).await, "dead is dead");
    let record = harness.find_node(node).await.expect("it is kept while its job is RUNNING");
    assert_about(record.dead_at.expect("it was declared dead"), harness.now().await);
    harness.rescue(&jobs[0]).await;
    assert_eq!(orphans(&harness).await, (vec![], vec![]));
    assert_eq!(harness.find_node(node).await, None);
    assert!(!harness.beat(node).await);
}

pub(crate) async fn an_idle_dead_node_is_removed(harness: Harness) {
    let node = harness.another_node().await;
    harness.advance(mins(6));
    assert_eq!(orphans(&harness).await, (vec![node], vec![]));
    orphans(&harness).await;
    assert_eq!(harness.find_node(node).await, None);
    assert!(!harness.beat(node).await);
}

pub(crate) async fn the_observer_is_never_among_the_dead(harness: Harness) {
    harness.running(work()).await;
    harness.advance(mins(60));
    let found = harness.store.orphans(harness.node, GRACE, 10).await.unwrap();
    assert_eq!((found.declared_dead, found.jobs), (vec![], vec![]));
    assert!(harness.beat(harness.node).await);
}

pub(crate) async fn a_dead_or_unknown_observer_is_refused(harness: Harness) {
    let node = harness.another_node().await;
    harness.submit(work()).await;
    harness.claim_one_as(node).await;
    harness.advance(mins(6));
    orphans(&harness).await;
    assert_refused(harness.store.orphans(node, GRACE, 10).await, &ErrorKind::Conflict);
    assert_refused(harness.store.orphans(NodeId(Uuid::new_v4()), GRACE, 10).await, &ErrorKind::Conflict);
}

pub(crate) async fn a_node_reads_what_it_runs(harness: Harness) {
    harness.submit_each(works(3)).await;
    let mut claims = vec![harness.claim_one().await, harness.claim_one().await];
    harness.claim_one_as(harness.another_node().await).await;
    let running = |claims: &[Claim]| -> Vec<Running> {
        claims.iter().map(|claim| Running { job_id: claim.job.id, version: claim.fence.version }).collect()
    };
    let mut read = harness.store.reconcile(harness.node, &[]).await.unwrap();
    read.sort_by_key(|running| running.job_id);
    assert_eq!(read, running(&claims));
    harness.store.cancel(claims.remove(0).job.id).await.unwrap();
    assert_eq!(
        harness.store.reconcile(harness.node, &[]).await.unwrap(),
        running(&claims),
        "this is how a cancel is seen"
    );
    harness.succeed(&claims[0]).await;
    assert!(harness.store.reconcile(harness.node, &[]).await.unwrap().is_empty());
}

pub(crate) async fn progress_is_kept_and_changes_no_version(harness: Harness) {
    let claim = harness.running(work()).await;
    let progress = |fraction| Progress { job_id: claim.job.id, version: claim.fence.version, fraction };
    for fraction in [0.25, 1.0, 0.0] {
        let running = harness.store.reconcile(harness.node, &[progress(fraction)]).await.unwrap();
        assert_eq!(running, [Running { job_id: claim.job.id, version: claim.fence.version }]);
        let job = harness.job(claim.job.id).await;
        assert_eq!((job.progress, job.version), (Some(fraction), claim.fence.version));
    }
    assert_eq!(harness.settle(success(&claim)).await, Settled::Applied, "the fence still holds");
}

pub(crate) async fn stale_progress_is_dropped(harness: Harness) {
    let late = harness.running(work()).await;
    harness.defer(&late, Duration::ZERO).await;
    let claim = harness.claim_one().await;
    let progress = |version| Progress { job_id: claim.job.id, version, fraction: 0.5 };
    harness.store.reconcile(harness.node, &[progress(late.fence.version)]).await.unwrap();
    assert_eq!(harness.job(claim.job.id).await.progress, None, "of an earlier claim");
    let other = harness.another_node().await;
    harness.store.reconcile(other, &[progress(claim.fence.version)]).await.unwrap();
    assert_eq!(harness.job(claim.job.id).await.progress, None, "of another node");
    let unknown = Progress { job_id: new_id(), version: 1, fraction: 0.5 };
    let running = harness.store.reconcile(harness.node, &[unknown, progress(claim.fence.version)]).await.unwrap();
    assert_eq!(running.len(), 1);
    assert_eq!(harness.job(claim.job.id).await.progress, Some(0.5), "an unknown one does not harm its neighbors");
}

pub(crate) async fn the_stores_time_moves_with_its_clock(harness: Harness) {
    let before = harness.now().await;
    harness.advance(mins(10));
    let after = harness.now().await;
    assert_eq!(after.duration_since(before).as_mins(), 10);
}
