//! Successes whose retention is zero: deleted a moment after their end, unless they have ties to other jobs.

use std::time::Duration;

use ratchet_core::page::JobFilter;
use ratchet_core::store::{ArchiveRequest, Archived, Removal, Submitted};
use ratchet_core::{JobId, JobState, NewJob, Settled, Settlement, Tag};

use crate::batches;
use crate::harness::{Harness, idempotency_key, mins, new_id, success, work, work_with_key, works};
use crate::signals::{awaiting, to_key};
use crate::workflows::Plan;

use JobState::{Canceled, Failed, Pending, Running, Succeeded};

/// How long successes stay in these cases.
const STAY: Duration = mins(1);

async fn delete_successes(harness: &Harness) -> Archived {
    let removal = Removal::Delete;
    let request = ArchiveRequest { removal, state: Succeeded, age: STAY, after: None, limit: 1_000, only: None };
    harness.store.archive(&request).await.unwrap()
}

/// Lets successes be deleted that are old enough by now. Returns how many were.
async fn deleted(harness: &Harness) -> u64 {
    harness.advance(STAY);
    delete_successes(harness).await.deleted
}

pub(crate) async fn a_deleted_success_leaves_nothing_but_its_idempotency_key(harness: Harness) {
    let mut job = NewJob { idempotency_key: Some(idempotency_key("once")), ..work_with_key("key") };
    job.spec.tags = vec![Tag::new("a").unwrap()];
    let again = NewJob { id: new_id(), ..job.clone() };
    let claim = harness.running(job).await;
    harness.reschedule(&claim, Duration::ZERO).await;
    let claim = harness.claim_one().await;
    let id = claim.job.id;
    harness.log_lines(&claim, 2).await;
    let other = harness.running(work()).await;
    assert_eq!(harness.settle(success(&claim)).await, Settled::Applied);
    assert!(harness.exists(id).await, "it is there when it has just ended");
    assert_eq!(deleted(&harness).await, 1);
    assert!(!harness.exists(id).await);
    assert_eq!((harness.attempts(id).await.len(), harness.log(id).await.len()), (0, 0));
    assert_eq!(harness.holder("key").await, None, "its business key is free");
    let tagged = JobFilter { tag: Some(Tag::new("a").unwrap()), ..JobFilter::default() };
    assert!(harness.store.list(&tagged, None, 10).await.unwrap().items.is_empty());
    assert!(harness.exists(other.job.id).await, "others are not touched");
    assert_eq!(harness.try_submit(again).await.unwrap(), [Submitted::Existing(id)], "what was done is not done twice");
}

pub(crate) async fn only_successes_are_deleted(harness: Harness) {
    let failed = harness.failed(work(), "boom").await;
    let canceled = harness.submit(work()).await;
    harness.store.cancel(canceled).await.unwrap();
    let done = harness.running(work()).await;
    harness.succeed(&done).await;
    let running = harness.running(work()).await.job.id;
    let waiting = harness.submit(work()).await;
    assert_eq!(deleted(&harness).await, 1);
    for (id, state) in [(failed, Failed), (canceled, Canceled), (running, Running), (waiting, Pending)] {
        assert_eq!(harness.state(id).await, state);
    }
    assert!(!harness.exists(done.job.id).await);
}

pub(crate) async fn a_success_with_ties_is_archived_instead(harness: Harness) {
    let mut tied: Vec<JobId> = Vec::new();
    Plan::chain(2).submit(&harness).await;
    for _ in 0..2 {
        let step = harness.claim_one().await;
        harness.succeed(&step).await;
        tied.push(step.job.id);
    }
    batches::Plan::of(works(1)).submit(&harness).await;
    let child = harness.claim_one().await;
    harness.succeed(&child).await;
    let parent = batches::claim_parents(&harness).await.remove(0);
    harness.succeed(&parent).await;
    harness.submit(awaiting("door", Some(mins(60)))).await;
    harness.store.deliver(&to_key("door")).await.unwrap();
    let signaled = harness.claim_one().await;
    harness.succeed(&signaled).await;
    tied.extend([child.job.id, parent.job.id, signaled.job.id]);
    harness.advance(STAY);
    // What a batch's last child and its parent have to do with each other may take a second look.
    let mut gone = Archived::default();
    for _ in 0..3 {
        let done = delete_successes(&harness).await;
        (gone.moved, gone.deleted) = (gone.moved + done.moved, gone.deleted + done.deleted);
    }
    assert_eq!((gone.moved, gone.deleted), (tied.len() as u64, 0));
    for id in tied {
        assert!(harness.job(id).await.archived_at.is_some(), "a retry of what follows it finds its result");
    }
}

pub(crate) async fn a_success_stays_for_its_time(harness: Harness) {
    let ids = harness.submit_each(works(2)).await;
    let claims = harness.claim_all().await;
    harness.succeed(&claims[1]).await;
    harness.advance(STAY / 2);
    assert_eq!(delete_successes(&harness).await.deleted, 0, "a handle may still wait for it");
    assert!(harness.exists(ids[1]).await);
    harness.advance(STAY / 2);
    harness.succeed(&claims[0]).await;
    assert_eq!(delete_successes(&harness).await.deleted, 1);
    assert!(harness.exists(ids[0]).await && !harness.exists(ids[1]).await, "what was made first may end last");
    assert_eq!(deleted(&harness).await, 1);
    assert!(!harness.exists(ids[0]).await);
}

pub(crate) async fn a_success_whose_reply_was_lost_is_recognized_after_it_was_deleted(harness: Harness) {
    let claim = harness.running(work()).await;
    let settlement = success(&claim);
    assert_eq!(harness.settle(settlement.clone()).await, Settled::Applied);
    assert_eq!(deleted(&harness).await, 1);
    assert_eq!(harness.settle(settlement.clone()).await, Settled::Conflict);
    assert_eq!(harness.settle(Settlement { maybe_applied: true, ..settlement }).await, Settled::AlreadyApplied);
    // One that others have taken over meanwhile is not gone.
    let claim = harness.running(work()).await;
    harness.rescue(&claim).await;
    let late = Settlement { maybe_applied: true, ..success(&claim) };
    assert_eq!(harness.settle(late).await, Settled::Conflict);
    assert_eq!(harness.state(claim.job.id).await, Pending);
}

pub(crate) async fn hundreds_of_successes_are_deleted_at_once(harness: Harness) {
    harness.submit_each(works(600)).await;
    let mut claims = Vec::new();
    for _ in 0..600 {
        if claims.len() < 600 {
            claims.extend(harness.claim_all().await);
        }
    }
    let settlements: Vec<_> = claims.iter().map(success).collect();
    assert_eq!(harness.turn(&settlements, None).await.settled, vec![Settled::Applied; 600]);
    assert_eq!(deleted(&harness).await, 600);
    assert!(harness.store.list(&JobFilter::default(), None, 10).await.unwrap().items.is_empty());
}
