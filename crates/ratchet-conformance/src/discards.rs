//! Successes that nobody wants to keep: deleted with their end, unless something hangs on them.

use std::time::Duration;

use ratchet_core::page::JobFilter;
use ratchet_core::store::Submitted;
use ratchet_core::{Claim, JobId, JobState, NewJob, Settled, Settlement, Tag};

use crate::batches;
use crate::bench::{
    Bench, another_try, failure, idempotency_key, mins, new_id, new_job, spec, success, work, work_with_key, works,
};
use crate::signals::{awaiting, to_key};
use crate::workflows::Plan;

use JobState::{Failed, Pending, Succeeded};

fn discarding(settlement: Settlement) -> Settlement {
    Settlement { discards: true, ..settlement }
}

/// Lets a claimed job succeed, kept by nobody; says whether it is still there.
async fn stays(bench: &Bench, claim: &Claim) -> bool {
    assert_eq!(bench.settle(discarding(success(claim))).await, Settled::Applied);
    bench.exists(claim.job.id).await
}

pub(crate) async fn a_discarded_success_leaves_nothing_but_its_idempotency_key(bench: Bench) {
    let mut job = NewJob { idempotency_key: Some(idempotency_key("once")), ..work_with_key("key") };
    job.spec.tags = vec![Tag::new("a").unwrap()];
    let again = NewJob { id: new_id(), ..job.clone() };
    let claim = bench.running(job).await;
    bench.reschedule(&claim, Duration::ZERO).await;
    let claim = bench.claim_one().await;
    let id = claim.job.id;
    bench.log_lines(&claim, 2).await;
    let other = bench.running(work()).await;
    assert!(!stays(&bench, &claim).await);
    assert_eq!((bench.attempts(id).await.len(), bench.log(id).await.len()), (0, 0));
    assert_eq!(bench.holder("key").await, None, "its business key is free");
    let tagged = JobFilter { tag: Some(Tag::new("a").unwrap()), ..JobFilter::default() };
    assert!(bench.store.list(&tagged, None, 10).await.unwrap().items.is_empty());
    assert!(bench.exists(other.job.id).await, "others are not touched");
    assert_eq!(bench.try_submit(again).await.unwrap(), [Submitted::Existing(id)], "what was done is not done twice");
}

pub(crate) async fn only_successes_are_discarded(bench: Bench) {
    let claim = bench.running(work()).await;
    assert_eq!(bench.settle(discarding(another_try(&claim, Duration::ZERO))).await, Settled::Applied);
    assert_eq!(bench.state(claim.job.id).await, Pending);
    let claim = bench.claim_one().await;
    assert_eq!(bench.settle(discarding(failure(&claim, "boom"))).await, Settled::Applied);
    assert_eq!(bench.state(claim.job.id).await, Failed);
    let claim = bench.running(work()).await;
    assert_eq!(bench.settle(success(&claim)).await, Settled::Applied);
    assert_eq!(bench.state(claim.job.id).await, Succeeded, "who does not ask for it keeps it");
}

pub(crate) async fn what_hangs_on_others_is_not_discarded(bench: Bench) {
    Plan::chain(2).submit(&bench).await;
    for step in ["first", "last"] {
        let claim = bench.claim_one().await;
        assert!(stays(&bench, &claim).await, "the {step} step of a chain");
    }
    let (batch, ..) = batches::Plan::of(works(1)).submit(&bench).await;
    let child = bench.claim_one().await;
    assert!(stays(&bench, &child).await, "a child of a batch");
    let parent = batches::claim_parents(&bench).await.remove(0);
    assert_eq!(parent.job.id, batch);
    assert!(stays(&bench, &parent).await, "a job that stands for a batch");
    bench.submit(awaiting("door", Some(mins(60)))).await;
    bench.store.deliver(&to_key("door")).await.unwrap();
    let signaled = bench.claim_one().await;
    assert!(stays(&bench, &signaled).await, "a job that had a signal");
    let claim = bench.running(NewJob { on_success: Some(spec("after")), ..work() }).await;
    let followed = Settlement { new_jobs: vec![new_job("after")], ..discarding(success(&claim)) };
    assert_eq!(bench.settle(followed).await, Settled::Applied);
    assert!(bench.exists(claim.job.id).await, "a job with a callback");
}

pub(crate) async fn a_job_that_somebody_waits_for_is_not_discarded(bench: Bench) {
    let ids = bench.submit_each(works(3)).await;
    bench.store.keep(ids[0]).await.unwrap();
    let claims = bench.claim_all().await;
    bench.store.keep(ids[1]).await.unwrap();
    bench.store.keep(ids[1]).await.unwrap();
    let before: Vec<JobId> = claims.iter().map(|claim| claim.job.id).collect();
    assert_eq!(before, ids, "it is claimed as ever");
    let settlements: Vec<_> = claims.iter().map(|claim| discarding(success(claim))).collect();
    assert_eq!(bench.turn(&settlements, None).await.settled, [Settled::Applied; 3]);
    let [first, second, third] = [ids[0], ids[1], ids[2]];
    assert!(bench.exists(first).await && bench.exists(second).await && !bench.exists(third).await);
    assert!(bench.job(first).await.flow.is_none(), "it has no ties");
    bench.store.keep(first).await.unwrap();
    bench.store.keep(third).await.unwrap();
    assert!(bench.store.delete(first).await.unwrap(), "it can be deleted as ever");
}

pub(crate) async fn a_discarded_success_whose_reply_was_lost_is_recognised(bench: Bench) {
    let claim = bench.running(work()).await;
    let settlement = discarding(success(&claim));
    assert_eq!(bench.settle(settlement.clone()).await, Settled::Applied);
    assert_eq!(bench.settle(settlement.clone()).await, Settled::Conflict);
    assert_eq!(bench.settle(Settlement { maybe_applied: true, ..settlement }).await, Settled::AlreadyApplied);
    // One that others have taken over meanwhile is not gone.
    let claim = bench.running(work()).await;
    bench.rescue(&claim).await;
    let late = Settlement { maybe_applied: true, ..discarding(success(&claim)) };
    assert_eq!(bench.settle(late).await, Settled::Conflict);
    assert_eq!(bench.state(claim.job.id).await, Pending);
}

pub(crate) async fn hundreds_of_successes_are_discarded_at_once(bench: Bench) {
    bench.submit_each(works(600)).await;
    let mut claims = Vec::new();
    while claims.len() < 600 {
        claims.extend(bench.claim_all().await);
    }
    let settlements: Vec<_> = claims.iter().map(|claim| discarding(success(claim))).collect();
    assert_eq!(bench.turn(&settlements, None).await.settled, vec![Settled::Applied; 600]);
    assert!(bench.store.list(&JobFilter::default(), None, 10).await.unwrap().items.is_empty());
}
