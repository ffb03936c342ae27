//! Taking jobs to run them: who gets what, and how much.

use std::time::Duration;

use ratchet_core::claim::{ClaimRequest, Pool};
use ratchet_core::{ErrorKind, JobState, NewJob, NodeId, Settled, StartState};
use uuid::Uuid;

use crate::bench::{
    Bench, KIND, assert_about, assert_refused, deferral, ids, mins, new_job, pool, queue, request, success, work,
    work_after, works,
};

pub(crate) async fn a_job_is_claimed_once(bench: Bench) {
    let all = bench.submit_each(works(3)).await;
    assert_eq!(ids(&bench.claim_all().await), all);
    assert!(bench.claim_all().await.is_empty());
    let other = bench.another_node().await;
    assert!(bench.claim(&ClaimRequest { node: other, ..bench.request() }).await.is_empty());
}

pub(crate) async fn a_claim_sets_owner_time_and_version(bench: Bench) {
    let id = bench.submit(work()).await;
    bench.advance(mins(3));
    let claim = bench.claim_one().await;
    assert_eq!((claim.fence.job_id, claim.fence.version, claim.fence.node), (id, 1, bench.node));
    assert_eq!((claim.job.state, claim.job.version, claim.job.picked_by), (JobState::Running, 1, Some(bench.node)));
    assert_about(claim.job.picked_at.expect("it knows since when it runs"), bench.now().await);
    assert_eq!(bench.job(id).await, claim.job, "the claim shows the job as it now is");
}

pub(crate) async fn a_claim_carries_the_whole_job(bench: Bench) {
    let given = crate::submit::full_job();
    bench.submit(given.clone()).await;
    let request = request(bench.node, vec![pool("reports", &["report.print"])]);
    let claim = bench.claim(&request).await.remove(0);
    crate::submit::assert_same_spec(&claim.job.spec, &given.spec);
    assert_eq!((claim.job.business_key, claim.job.idempotency_key), (given.business_key, given.idempotency_key));
    assert_eq!((claim.job.on_success, claim.job.on_failure), (given.on_success, given.on_failure));
}

pub(crate) async fn a_claim_takes_no_more_than_its_limit(bench: Bench) {
    bench.submit_each(works(5)).await;
    let request = ClaimRequest { limit: 2, ..bench.request() };
    assert_eq!(bench.claim(&request).await.len(), 2);
    assert_eq!(bench.claim(&request).await.len(), 2);
    assert_eq!(bench.claim(&request).await.len(), 1);
}

pub(crate) async fn a_claim_takes_no_more_than_a_pool_has_room_for(bench: Bench) {
    bench.submit_each(works(5)).await;
    let mut small = bench.request();
    small.pools[0].free = 3;
    assert_eq!(bench.claim(&small).await.len(), 3);
    small.pools[0].free = 0;
    assert!(bench.claim(&small).await.is_empty());
}

pub(crate) async fn pools_have_room_each_for_itself(bench: Bench) {
    let mut jobs = works(3);
    jobs.extend((0..3).map(|_| new_job("blocking")));
    let all = bench.submit_each(jobs).await;
    let pools = vec![
        Pool { free: 1, ..pool("default", &["blocking"]) },
        Pool { free: 2, ..pool("default", &[KIND]) },
        Pool { free: 5, ..pool("elsewhere", &[KIND]) },
    ];
    let claimed = bench.claim(&request(bench.node, pools.clone())).await;
    assert_eq!(ids(&claimed), [all[3], all[0], all[1]], "pool by pool, in order within each");
    let limited = ClaimRequest { limit: 1, ..request(bench.node, pools) };
    assert_eq!(bench.claim(&limited).await.len(), 1, "the limit is over all pools");
}

pub(crate) async fn a_poll_that_finds_nothing_is_empty(bench: Bench) {
    assert!(bench.claim_all().await.is_empty());
    assert!(bench.claim(&request(bench.node, vec![])).await.is_empty());
    let turn = bench.turn(&[], None).await;
    assert!(turn.settled.is_empty() && turn.claimed.is_empty());
}

pub(crate) async fn a_job_is_claimed_when_its_time_has_come(bench: Bench) {
    let id = bench.submit(work_after(mins(10))).await;
    assert!(bench.claim_all().await.is_empty());
    bench.advance(mins(9));
    assert!(bench.claim_all().await.is_empty());
    bench.advance(mins(1));
    assert_eq!(ids(&bench.claim_all().await), [id]);
}

pub(crate) async fn only_pending_jobs_are_claimed(bench: Bench) {
    bench.running(work()).await;
    bench.failed(work(), "boom").await;
    let done = bench.running(work()).await;
    bench.succeed(&done).await;
    let canceled = bench.submit(work()).await;
    bench.store.cancel(canceled).await.unwrap();
    let paused = bench.submit(work()).await;
    bench.store.pause(paused).await.unwrap();
    bench.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    assert!(bench.claim_all().await.is_empty());
    let pending = bench.submit(work()).await;
    assert_eq!(ids(&bench.claim_all().await), [pending]);
}

pub(crate) async fn only_kinds_of_the_pool_are_claimed(bench: Bench) {
    let unknown = bench.submit(new_job("unknown.kind")).await;
    let known = bench.submit(work()).await;
    assert_eq!(ids(&bench.claim_all().await), [known]);
    assert_eq!(bench.state(unknown).await, JobState::Pending, "unknown work waits");
    let request = request(bench.node, vec![pool("default", &["unknown.kind", "third.kind"])]);
    assert_eq!(ids(&bench.claim(&request).await), [unknown]);
}

pub(crate) async fn only_jobs_of_the_pools_queue_are_claimed(bench: Bench) {
    let mut elsewhere = work();
    elsewhere.spec.queue = queue("elsewhere");
    let elsewhere = bench.submit(elsewhere).await;
    let here = bench.submit(work()).await;
    assert_eq!(ids(&bench.claim_all().await), [here]);
    let request = request(bench.node, vec![pool("elsewhere", &[KIND])]);
    assert_eq!(ids(&bench.claim(&request).await), [elsewhere]);
}

pub(crate) async fn a_job_on_probation_is_claimed_only_if_asked_for(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.rescue(&claim).await;
    let healthy = bench.submit(work()).await;
    assert_eq!(ids(&bench.claim(&ClaimRequest { probation: false, ..bench.request() }).await), [healthy]);
    assert_eq!(ids(&bench.claim(&ClaimRequest { probation: true, ..bench.request() }).await), [claim.job.id]);
}

pub(crate) async fn at_most_one_job_on_probation_is_claimed_at_a_time(bench: Bench) {
    bench.submit_each(works(3)).await;
    for claim in bench.claim_all().await {
        bench.rescue(&claim).await;
    }
    let healthy = bench.submit(work()).await;
    let claimed = bench.claim_all().await;
    assert_eq!(claimed.len(), 2, "the healthy one and one of three");
    assert_eq!(claimed[1].job.id, healthy, "which stands in the order like any other");
    assert_eq!(bench.claim_all().await.len(), 1);
    let two_pools = vec![pool("default", &[KIND]), pool("default", &[KIND, "other"])];
    assert_eq!(bench.claim(&request(bench.node, two_pools)).await.len(), 1);
}

pub(crate) async fn an_unregistered_node_claims_nothing(bench: Bench) {
    let id = bench.submit(work()).await;
    let stranger = ClaimRequest { node: NodeId(Uuid::new_v4()), ..bench.request() };
    assert_refused(bench.store.turn(&[], Some(&stranger)).await, &ErrorKind::Conflict);
    assert_eq!(bench.state(id).await, JobState::Pending);
}

pub(crate) async fn a_deregistered_node_claims_nothing(bench: Bench) {
    bench.submit(work()).await;
    bench.store.deregister(bench.node).await.unwrap();
    assert_refused(bench.store.turn(&[], Some(&bench.request())).await, &ErrorKind::Conflict);
}

pub(crate) async fn a_node_that_was_declared_dead_claims_nothing(bench: Bench) {
    let dead = bench.another_node().await;
    bench.submit_each(works(2)).await;
    bench.claim_one_as(dead).await;
    bench.advance(mins(10));
    assert!(bench.beat(bench.node).await);
    let found = bench.store.orphans(bench.node, mins(5), 10).await.unwrap();
    assert_eq!(found.declared_dead, [dead]);
    let request = ClaimRequest { node: dead, ..bench.request() };
    assert_refused(bench.store.turn(&[], Some(&request)).await, &ErrorKind::Conflict);
    assert_eq!(bench.claim_all().await.len(), 1, "others do");
}

pub(crate) async fn a_turn_that_fails_settles_nothing(bench: Bench) {
    let claim = bench.running(work()).await;
    let before = bench.job(claim.job.id).await;
    let stranger = ClaimRequest { node: NodeId(Uuid::new_v4()), ..bench.request() };
    assert_refused(bench.store.turn(&[success(&claim)], Some(&stranger)).await, &ErrorKind::Conflict);
    assert_eq!(bench.job(claim.job.id).await, before);
    assert!(bench.attempts(claim.job.id).await.is_empty());
    bench.succeed(&claim).await;
}

pub(crate) async fn a_turn_settles_before_it_claims(bench: Bench) {
    let claim = bench.running(work()).await;
    let turn = bench.turn(&[deferral(&claim, Duration::ZERO)], Some(&bench.request())).await;
    assert_eq!(turn.settled, [Settled::Applied]);
    assert_eq!(ids(&turn.claimed), [claim.job.id], "what went back can be taken again");
    assert_eq!(turn.claimed[0].fence.version, claim.fence.version + 2);
}
