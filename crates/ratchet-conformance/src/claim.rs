//! Taking jobs to run them: who gets what, and how much.

use std::time::Duration;

use ratchet_core::claim::{ClaimRequest, Pool};
use ratchet_core::{ErrorKind, JobState, NewJob, NodeId, Settled, StartState};
use uuid::Uuid;

use crate::harness::{
    Harness, KIND, assert_about, assert_refused, deferral, ids, mins, new_job, pool, queue, request, success, work,
    work_after, works,
};

pub(crate) async fn a_job_is_claimed_once(harness: Harness) {
    let all = harness.submit_each(works(3)).await;
    assert_eq!(ids(&harness.claim_all().await), all);
    assert!(harness.claim_all().await.is_empty());
    let other = harness.another_node().await;
    assert!(harness.claim(&ClaimRequest { node: other, ..harness.request() }).await.is_empty());
}

pub(crate) async fn a_claim_sets_owner_time_and_version(harness: Harness) {
    let id = harness.submit(work()).await;
    harness.advance(mins(3));
    let claim = harness.claim_one().await;
    assert_eq!((claim.fence.job_id, claim.fence.version, claim.fence.node), (id, 1, harness.node));
    assert_eq!((claim.job.state, claim.job.version, claim.job.picked_by), (JobState::Running, 1, Some(harness.node)));
    assert_about(claim.job.picked_at.expect("it knows since when it runs"), harness.now().await);
    assert_eq!(harness.job(id).await, claim.job, "the claim shows the job as it now is");
}

pub(crate) async fn a_claim_carries_the_whole_job(harness: Harness) {
    let given = crate::submit::full_job();
    harness.submit(given.clone()).await;
    let request = request(harness.node, vec![pool("reports", &["report.print"])]);
    let claim = harness.claim(&request).await.remove(0);
    crate::submit::assert_same_spec(&claim.job.spec, &given.spec);
    assert_eq!((claim.job.business_key, claim.job.idempotency_key), (given.business_key, given.idempotency_key));
    assert_eq!((claim.job.on_success, claim.job.on_failure), (given.on_success, given.on_failure));
}

pub(crate) async fn a_claim_takes_no_more_than_its_limit(harness: Harness) {
    harness.submit_each(works(5)).await;
    let request = ClaimRequest { limit: 2, ..harness.request() };
    assert_eq!(harness.claim(&request).await.len(), 2);
    assert_eq!(harness.claim(&request).await.len(), 2);
    assert_eq!(harness.claim(&request).await.len(), 1);
}

pub(crate) async fn a_claim_takes_no_more_than_a_pool_has_room_for(harness: Harness) {
    harness.submit_each(works(5)).await;
    let mut small = harness.request();
    small.pools[0].free = 3;
    assert_eq!(harness.claim(&small).await.len(), 3);
    small.pools[0].free = 0;
    assert!(harness.claim(&small).await.is_empty());
}

pub(crate) async fn pools_have_room_each_for_itself(harness: Harness) {
    let mut jobs = works(3);
    jobs.extend((0..3).map(|_| new_job("blocking")));
    let all = harness.submit_each(jobs).await;
    let pools = vec![
        Pool { free: 1, ..pool("default", &["blocking"]) },
        Pool { free: 2, ..pool("default", &[KIND]) },
        Pool { free: 5, ..pool("elsewhere", &[KIND]) },
    ];
    let claimed = harness.claim(&request(harness.node, pools.clone())).await;
    assert_eq!(ids(&claimed), [all[3], all[0], all[1]], "pool by pool, in order within each");
    let limited = ClaimRequest { limit: 1, ..request(harness.node, pools) };
    assert_eq!(harness.claim(&limited).await.len(), 1, "the limit is over all pools");
}

pub(crate) async fn a_poll_that_finds_nothing_is_empty(harness: Harness) {
    assert!(harness.claim_all().await.is_empty());
    assert!(harness.claim(&request(harness.node, vec![])).await.is_empty());
    let turn = harness.turn(&[], None).await;
    assert!(turn.settled.is_empty() && turn.claimed.is_empty());
}

pub(crate) async fn a_job_is_claimed_when_its_time_has_come(harness: Harness) {
    let id = harness.submit(work_after(mins(10))).await;
    assert!(harness.claim_all().await.is_empty());
    harness.advance(mins(9));
    assert!(harness.claim_all().await.is_empty());
    harness.advance(mins(1));
    assert_eq!(ids(&harness.claim_all().await), [id]);
}

pub(crate) async fn only_pending_jobs_are_claimed(harness: Harness) {
    harness.running(work()).await;
    harness.failed(work(), "boom").await;
    let done = harness.running(work()).await;
    harness.succeed(&done).await;
    let canceled = harness.submit(work()).await;
    harness.store.cancel(canceled).await.unwrap();
    let paused = harness.submit(work()).await;
    harness.store.pause(paused).await.unwrap();
    harness.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    assert!(harness.claim_all().await.is_empty());
    let pending = harness.submit(work()).await;
    assert_eq!(ids(&harness.claim_all().await), [pending]);
}

pub(crate) async fn only_kinds_of_the_pool_are_claimed(harness: Harness) {
    let unknown = harness.submit(new_job("unknown.kind")).await;
    let known = harness.submit(work()).await;
    assert_eq!(ids(&harness.claim_all().await), [known]);
    assert_eq!(harness.state(unknown).await, JobState::Pending, "unknown work waits");
    let request = request(harness.node, vec![pool("default", &["unknown.kind", "third.kind"])]);
    assert_eq!(ids(&harness.claim(&request).await), [unknown]);
}

pub(crate) async fn only_jobs_of_the_pools_queue_are_claimed(harness: Harness) {
    let mut elsewhere = work();
    elsewhere.spec.queue = queue("elsewhere");
    let elsewhere = harness.submit(elsewhere).await;
    let here = harness.submit(work()).await;
    assert_eq!(ids(&harness.claim_all().await), [here]);
    let request = request(harness.node, vec![pool("elsewhere", &[KIND])]);
    assert_eq!(ids(&harness.claim(&request).await), [elsewhere]);
}

pub(crate) async fn a_job_on_probation_is_claimed_only_if_asked_for(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.rescue(&claim).await;
    let healthy = harness.submit(work()).await;
    assert_eq!(ids(&harness.claim(&ClaimRequest { probation: false, ..harness.request() }).await), [healthy]);
    assert_eq!(ids(&harness.claim(&ClaimRequest { probation: true, ..harness.request() }).await), [claim.job.id]);
}

pub(crate) async fn at_most_one_job_on_probation_is_claimed_at_a_time(harness: Harness) {
    harness.submit_each(works(3)).await;
    for claim in harness.claim_all().await {
        harness.rescue(&claim).await;
    }
    let healthy = harness.submit(work()).await;
    let claimed = harness.claim_all().await;
    assert_eq!(claimed.len(), 2, "the healthy one and one of three");
    assert_eq!(claimed[1].job.id, healthy, "which stands in the order like any other");
    assert_eq!(harness.claim_all().await.len(), 1);
    let two_pools = vec![pool("default", &[KIND]), pool("default", &[KIND, "other"])];
    assert_eq!(harness.claim(&request(harness.node, two_pools)).await.len(), 1);
}

pub(crate) async fn an_unregistered_node_claims_nothing(harness: Harness) {
    let id = harness.submit(work()).await;
    let stranger = ClaimRequest { node: NodeId(Uuid::new_v4()), ..harness.request() };
    assert_refused(harness.store.settle_and_claim(&[], Some(&stranger)).await, &ErrorKind::Conflict);
    assert_eq!(harness.state(id).await, JobState::Pending);
}

pub(crate) async fn a_deregistered_node_claims_nothing(harness: Harness) {
    harness.submit(work()).await;
    harness.store.deregister(harness.node).await.unwrap();
    assert_refused(harness.store.settle_and_claim(&[], Some(&harness.request())).await, &ErrorKind::Conflict);
}

pub(crate) async fn a_node_that_was_declared_dead_claims_nothing(harness: Harness) {
    let dead = harness.another_node().await;
    harness.submit_each(works(2)).await;
    harness.claim_one_as(dead).await;
    harness.advance(mins(10));
    assert!(harness.beat(harness.node).await);
    let found = harness.store.orphans(harness.node, mins(5), 10).await.unwrap();
    assert_eq!(found.declared_dead, [dead]);
    let request = ClaimRequest { node: dead, ..harness.request() };
    assert_refused(harness.store.settle_and_claim(&[], Some(&request)).await, &ErrorKind::Conflict);
    assert_eq!(harness.claim_all().await.len(), 1, "others do");
}

pub(crate) async fn a_turn_that_fails_settles_nothing(harness: Harness) {
    let claim = harness.running(work()).await;
    let before = harness.job(claim.job.id).await;
    let stranger = ClaimRequest { node: NodeId(Uuid::new_v4()), ..harness.request() };
    assert_refused(harness.store.settle_and_claim(&[success(&claim)], Some(&stranger)).await, &ErrorKind::Conflict);
    assert_eq!(harness.job(claim.job.id).await, before);
    assert!(harness.attempts(claim.job.id).await.is_empty());
    harness.succeed(&claim).await;
}

pub(crate) async fn a_turn_settles_before_it_claims(harness: Harness) {
    let claim = harness.running(work()).await;
    let turn = harness.turn(&[deferral(&claim, Duration::ZERO)], Some(&harness.request())).await;
    assert_eq!(turn.settled, [Settled::Applied]);
    assert_eq!(ids(&turn.claimed), [claim.job.id], "what went back can be taken again");
    assert_eq!(turn.claimed[0].fence.version, claim.fence.version + 2);
}
