//! Batches: counting, the one release of the job that stands for them, growing, canceling, telling of progress.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ratchet_core::batch::{BATCH_KIND, Batch, BatchProgress, NewBatch, ProgressEvery, ProgressHook, tie_child};
use ratchet_core::error::ErrorKind;
use ratchet_core::flow::{Condition, Edge, Operator, ResultTest};
use ratchet_core::page::JobFilter;
use ratchet_core::signal::SignalWait;
use ratchet_core::store::{SubmitUnit, Submitted};
use ratchet_core::{Claim, FollowedBy, JobId, JobState, JobType, NewJob, Settled, SignalKey, Store};

use crate::harness::{
    Harness, assert_about, assert_refused, failure, ids, json, mins, new_id, new_job, pool, request, spec, success,
    success_with, work, work_once, work_with_key, works,
};

use JobState::{Canceled, Failed, Pending, Running, Succeeded, Waiting};

/// A batch to be.
pub(crate) struct Plan {
    pub(crate) batch: NewBatch,
    pub(crate) parent: NewJob,
    pub(crate) children: Vec<NewJob>,
    followers: Vec<NewJob>,
    edges: Vec<Edge>,
}

impl Plan {
    pub(crate) fn of(children: Vec<NewJob>) -> Self {
        let parent = new_job(BATCH_KIND);
        let batch = NewBatch { id: parent.id, sealed: true, hook: None };
        Self { batch, parent, children, followers: Vec::new(), edges: Vec::new() }
    }

    pub(crate) fn open() -> Self {
        let mut plan = Self::of(Vec::new());
        plan.batch.sealed = false;
        plan
    }

    pub(crate) fn telling(mut self, every: ProgressEvery) -> Self {
        self.batch.hook = Some(ProgressHook { spec: spec("tell"), every });
        self
    }

    pub(crate) fn then(mut self, condition: Condition) -> Self {
        let workflow = self.parent.id;
        self.parent.workflow = Some(workflow);
        let next = NewJob { workflow: Some(workflow), ..work() };
        let order = u32::try_from(self.edges.len()).unwrap();
        self.edges.push(Edge { order, ..Edge::new(workflow, workflow, next.id, condition) });
        self.followers.push(next);
        self
    }

    pub(crate) fn unit(self) -> SubmitUnit {
        let mut jobs = vec![self.parent];
        jobs.extend(self.followers);
        let unit = SubmitUnit::workflow(jobs, self.edges).and_then(|unit| unit.with_batch(self.batch, self.children));
        unit.expect("it is sound")
    }

    /// The id of the batch, of its children and of what follows.
    pub(crate) async fn submit(self, harness: &Harness) -> (JobId, Vec<JobId>, Vec<JobId>) {
        let id = self.parent.id;
        let children = self.children.iter().map(|job| job.id).collect();
        let followers = self.followers.iter().map(|job| job.id).collect();
        let outcome = harness.store.submit(&[self.unit()]).await.unwrap().remove(0).expect("it is not refused");
        assert!(outcome.iter().all(|one| matches!(one, Submitted::Created(_))));
        (id, children, followers)
    }
}

pub(crate) async fn batch(harness: &Harness, id: JobId) -> Batch {
    harness.store.find_batches(&[id]).await.unwrap().pop().expect("the batch is there")
}

/// All, succeeded, failed, canceled.
pub(crate) async fn counts(harness: &Harness, id: JobId) -> [u64; 4] {
    let counts = batch(harness, id).await.counts;
    [counts.total, counts.succeeded, counts.failed, counts.canceled]
}

pub(crate) async fn extend(
    harness: &Harness,
    id: JobId,
    children: &[NewJob],
) -> Result<Vec<Submitted>, ratchet_core::StoreError> {
    let mut children = children.to_vec();
    for child in &mut children {
        tie_child(id, child).unwrap();
    }
    harness.store.extend_batch(id, &children).await
}

/// Claims the jobs that stand for batches.
pub(crate) async fn claim_parents(harness: &Harness) -> Vec<Claim> {
    harness.claim(&request(harness.node, vec![pool("default", &[BATCH_KIND])])).await
}

pub(crate) async fn claim_told(harness: &Harness) -> Vec<BatchProgress> {
    let told = harness.claim(&request(harness.node, vec![pool("default", &["tell"])])).await;
    told.iter().map(|claim| claim.job.origin.as_ref().unwrap().result.as_ref().unwrap().decode().unwrap()).collect()
}

/// Runs the job that stands for a batch, as an engine does.
pub(crate) async fn run_parent(harness: &Harness, id: JobId) {
    let claimed = claim_parents(harness).await;
    assert_eq!(ids(&claimed), [id], "it is released");
    let summary = serde_json::to_value(batch(harness, id).await.summary()).unwrap();
    assert_eq!(harness.settle(success_with(&claimed[0], Some(json(&summary)))).await, Settled::Applied);
}

pub(crate) async fn a_batch_comes_back_as_it_was_given(harness: Harness) {
    let plan = Plan::of(works(3)).telling(ProgressEvery::Percent(25));
    let hook = plan.batch.hook.clone();
    let (id, children, _) = plan.submit(&harness).await;
    let found = batch(&harness, id).await;
    assert_eq!((found.state, found.counts.total, found.counts.sealed), (Waiting, 3, true));
    assert_eq!((found.hook, found.next_progress, found.canceling), (hook, Some(25), false));
    assert_about(found.created_at, harness.now().await);
    assert_eq!(found.completed_at, None);
    let parent = harness.job(id).await;
    assert_eq!((parent.state, parent.waits_for, parent.job_type), (Waiting, 1, JobType::BatchParent));
    let child = harness.job(children[0]).await;
    assert_eq!((child.parent, child.job_type, child.state), (Some(id), JobType::BatchChild, Pending));
}

pub(crate) async fn the_last_child_releases_the_job_that_stands_for_the_batch(harness: Harness) {
    let (id, _, _) = Plan::of(works(3)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    for (place, claim) in claimed.iter().enumerate() {
        assert_eq!(harness.state(id).await, Waiting, "it waits for all");
        let turn = harness.turn(&[success(claim)], None).await;
        let released: Vec<_> = turn.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
        let expected = (place == 2).then_some((id, FollowedBy::Released));
        assert_eq!(released, expected.into_iter().collect::<Vec<_>>());
    }
    let parent = harness.job(id).await;
    assert_eq!((parent.state, parent.version, parent.waits_for), (Pending, 1, 0));
    run_parent(&harness, id).await;
    assert_eq!(harness.state(id).await, Succeeded);
}

pub(crate) async fn children_that_end_in_one_turn_are_counted_together(harness: Harness) {
    let (one, _, _) = Plan::of(works(4)).submit(&harness).await;
    let (other, _, _) = Plan::of(works(3)).submit(&harness).await;
    harness.submit(work()).await;
    let claimed = harness.claim_all().await;
    let ends: Vec<_> = claimed.iter().map(success).collect();
    let turn = harness.turn(&ends, None).await;
    assert_eq!(turn.settled, [Settled::Applied; 8]);
    assert_eq!(counts(&harness, one).await, [4, 4, 0, 0]);
    assert_eq!(counts(&harness, other).await, [3, 3, 0, 0]);
    let mut released: Vec<_> = turn.followed.iter().map(|followed| followed.id).collect();
    released.sort_unstable();
    assert_eq!(released, [one, other]);
}

pub(crate) async fn every_way_to_end_is_counted_as_what_it_is(harness: Harness) {
    let (id, children, _) = Plan::of(works(4)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    let turn = harness.turn(&[success(&claimed[0]), failure(&claimed[1], "boom")], None).await;
    assert_eq!(turn.settled, [Settled::Applied; 2]);
    harness.store.cancel(children[2]).await.unwrap().expect("a running child can be canceled");
    assert_eq!(counts(&harness, id).await, [4, 1, 1, 1]);
    assert_eq!(harness.state(id).await, Waiting);
    let done = {
        harness.defer(&claimed[3], Duration::ZERO).await;
        harness.store.cancel(children[3]).await.unwrap().expect("so can one that waits")
    };
    assert_eq!(done.followed.iter().map(|followed| followed.id).collect::<Vec<_>>(), [id], "it was the last");
    assert_eq!(counts(&harness, id).await, [4, 1, 1, 2]);
    assert_eq!(harness.state(id).await, Pending);
}

pub(crate) async fn a_child_that_goes_back_is_not_counted(harness: Harness) {
    let (id, _, _) = Plan::of(works(1)).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.defer(&first, Duration::ZERO).await;
    let again = harness.claim_one().await;
    harness.reschedule(&again, Duration::ZERO).await;
    let third = harness.claim_one().await;
    harness.rescue(&third).await;
    assert_eq!(counts(&harness, id).await, [1, 0, 0, 0]);
    let last = harness.claim_one().await;
    harness.succeed(&last).await;
    assert_eq!(counts(&harness, id).await, [1, 1, 0, 0]);
}

pub(crate) async fn a_child_counts_once_however_often_its_end_is_brought(harness: Harness) {
    let (id, _, _) = Plan::of(works(2)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    let twice = harness.turn(&[success(&claimed[0]), success(&claimed[0])], None).await;
    assert_eq!(twice.settled, [Settled::Applied, Settled::Conflict]);
    let again = ratchet_core::Settlement { maybe_applied: true, ..success(&claimed[0]) };
    assert_eq!(harness.settle(again).await, Settled::AlreadyApplied);
    assert_eq!(counts(&harness, id).await, [2, 1, 0, 0]);
}

pub(crate) async fn a_stale_settlement_counts_nothing(harness: Harness) {
    let (id, _, _) = Plan::of(works(2)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    harness.rescue(&claimed[0]).await;
    let turn = harness.turn(&[success(&claimed[0]), failure(&claimed[0], "late")], None).await;
    assert_eq!(turn.settled, [Settled::Conflict; 2]);
    assert_eq!(harness.settle(success(&claimed[0])).await, Settled::Conflict);
    assert_eq!(counts(&harness, id).await, [2, 0, 0, 0]);
}

pub(crate) async fn a_child_that_another_job_stands_for_is_not_counted(harness: Harness) {
    let first = harness.submit(work_once("order-7")).await;
    let plan = Plan::of(vec![work(), work_once("order-7")]);
    let (id, stored) = (plan.parent.id, plan.children[0].id);
    let outcome = harness.store.submit(&[plan.unit()]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcome, [Submitted::Created(id), Submitted::Created(stored), Submitted::Existing(first)]);
    assert_eq!(counts(&harness, id).await[0], 1);
    let (open, _, _) = Plan::open().submit(&harness).await;
    assert_eq!(extend(&harness, open, &[work_once("order-7")]).await.unwrap(), [Submitted::Existing(first)]);
    assert_eq!(counts(&harness, open).await[0], 0);
}

pub(crate) async fn a_batch_submitted_again_by_its_key_stands_for_the_first(harness: Harness) {
    let plan = || {
        let mut plan = Plan::of(works(2));
        plan.parent.idempotency_key = Some(crate::harness::idempotency_key("import-7"));
        plan
    };
    let (first, _, _) = plan().submit(&harness).await;
    let again = plan();
    let lost: Vec<JobId> = again.children.iter().map(|job| job.id).collect();
    let outcome = harness.store.submit(&[again.unit()]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcome, [Submitted::Existing(first); 3]);
    assert_eq!(harness.store.find(&lost).await.unwrap(), []);
}

pub(crate) async fn an_unknown_batch_is_none(harness: Harness) {
    let (id, _, _) = Plan::of(works(1)).submit(&harness).await;
    assert_eq!(harness.store.find_batches(&[new_id()]).await.unwrap(), []);
    let plain = harness.submit(work()).await;
    assert_eq!(harness.store.find_batches(&[plain]).await.unwrap(), [], "a job is not a batch");
    let found = harness.store.find_batches(&[new_id(), id]).await.unwrap();
    assert_eq!(found.iter().map(|batch| batch.id).collect::<Vec<_>>(), [id]);
}

pub(crate) async fn a_failed_child_can_be_retried_while_its_batch_waits(harness: Harness) {
    let (id, children, _) = Plan::of(works(2)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    harness.fail(&claimed[0], "boom").await;
    assert_eq!(counts(&harness, id).await, [2, 0, 1, 0]);
    harness.store.retry(children[0]).await.unwrap().expect("its batch still waits");
    assert_eq!(counts(&harness, id).await, [2, 0, 0, 0]);
    harness.succeed(&claimed[1]).await;
    assert_eq!(harness.state(id).await, Waiting, "it waits for the retried one");
    let again = harness.claim_one().await;
    harness.succeed(&again).await;
    assert_eq!(counts(&harness, id).await, [2, 2, 0, 0]);
    assert_eq!(harness.state(id).await, Pending);
}

pub(crate) async fn a_failed_child_cannot_be_retried_when_its_batch_is_over(harness: Harness) {
    let (id, children, _) = Plan::of(vec![work_with_key("once")]).submit(&harness).await;
    let claim = harness.claim_one().await;
    harness.fail(&claim, "boom").await;
    assert_refused(harness.store.retry(children[0]).await, &ErrorKind::Conflict);
    run_parent(&harness, id).await;
    assert_refused(harness.store.retry(children[0]).await, &ErrorKind::Conflict);
    assert_eq!(harness.state(children[0]).await, Failed);
    assert_eq!(harness.holder("once").await, None, "nothing has changed");
    assert_eq!(counts(&harness, id).await, [1, 0, 1, 0]);
    let (canceled, children, _) = Plan::of(works(2)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    harness.fail(&claimed[0], "boom").await;
    harness.store.cancel(canceled).await.unwrap().unwrap();
    assert_refused(harness.store.retry(children[0]).await, &ErrorKind::Conflict);
}

pub(crate) async fn a_canceled_batch_takes_its_children_along_in_portions(harness: Harness) {
    let plan = Plan::of(works(6)).then(Condition::Ended).then(Condition::Success);
    let (id, children, followers) = plan.submit(&harness).await;
    let running = harness.claim_one().await;
    harness.store.pause(children[1]).await.unwrap().unwrap();
    let done = harness.claim(&ratchet_core::ClaimRequest { limit: 1, ..harness.request() }).await.remove(0);
    harness.succeed(&done).await;
    assert_eq!(harness.store.cancel_children(id, None, 10).await.unwrap().children, [], "it was not canceled");
    harness.store.cancel(id).await.unwrap().expect("a waiting batch can be canceled");
    assert_eq!(harness.state(id).await, Canceled);
    let states = [harness.state(followers[0]).await, harness.state(followers[1]).await];
    assert_eq!(states, [Pending, Canceled], "what depends on it has its answer");
    assert!(batch(&harness, id).await.canceling);
    assert_eq!(harness.store.canceling_batches(10).await.unwrap(), [id]);
    let mut after = None;
    let mut portions = Vec::new();
    loop {
        let portion = harness.store.cancel_children(id, after, 2).await.unwrap();
        portions.push(portion.children.len());
        after = portion.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(portions, [2, 1, 2], "two are looked at at a time, and the last is the last");
    assert_eq!(counts(&harness, id).await, [6, 1, 0, 5]);
    assert_eq!(harness.settle(success(&running)).await, Settled::Conflict);
    assert_eq!(harness.job(children[5]).await.canceled_because, Some(id));
    assert!(!batch(&harness, id).await.canceling);
    assert_eq!(harness.store.canceling_batches(10).await.unwrap(), []);
    assert_eq!(harness.state(id).await, Canceled, "the last child releases nothing");
    assert_eq!(harness.attempts(running.job.id).await.len(), 1, "the attempt that ran is recorded");
}

pub(crate) async fn a_canceled_childs_key_is_free(harness: Harness) {
    let (id, _, _) = Plan::of(vec![work_with_key("held")]).submit(&harness).await;
    harness.store.cancel(id).await.unwrap().unwrap();
    assert!(harness.holder("held").await.is_some());
    harness.store.cancel_children(id, None, 10).await.unwrap();
    assert_eq!(harness.holder("held").await, None);
}

pub(crate) async fn a_batch_keeps_its_times_and_its_end_once(harness: Harness) {
    let (id, _, _) = Plan::of(works(2)).submit(&harness).await;
    let began = batch(&harness, id).await.created_at;
    for claim in harness.claim_all().await {
        harness.advance(mins(5));
        harness.succeed(&claim).await;
    }
    assert_eq!(batch(&harness, id).await.completed_at, None, "not before the job that stands for it has run");
    harness.advance(mins(5));
    run_parent(&harness, id).await;
    let found = batch(&harness, id).await;
    assert_eq!(found.counts.child_execution, Duration::from_secs(3));
    assert_about(found.updated_at, ratchet_core::clock::later(began, mins(10)));
    assert_about(found.completed_at.expect("it is over"), ratchet_core::clock::later(began, mins(15)));
    let summary = found.summary();
    assert!((600_000..630_000).contains(&summary.total_ms), "{summary:?}");
    harness.advance(mins(5));
    assert!(harness.store.cancel(id).await.unwrap().is_none());
    assert_eq!(batch(&harness, id).await, found, "nothing changes any more");
}

pub(crate) async fn jobs_depend_on_the_summary_of_a_batch(harness: Harness) {
    let test = |pointer: &str, operator, value: serde_json::Value| {
        Condition::Result(ResultTest::new(pointer, operator, value).unwrap())
    };
    let plan = Plan::of(works(4))
        .then(test("/clean", Operator::Is, true.into()))
        .then(test("/clean", Operator::Is, false.into()))
        .then(test("/success_rate", Operator::AtLeast, 0.5.into()))
        .then(test("/failed", Operator::AtLeast, 2.into()));
    let (id, _, followers) = plan.submit(&harness).await;
    let claimed = harness.claim_all().await;
    for claim in &claimed[1..] {
        harness.succeed(claim).await;
    }
    harness.fail(&claimed[0], "boom").await;
    let states = |harness: &Harness| {
        let (store, followers) = (harness.store.clone(), followers.clone());
        async move { store.find(&followers).await.unwrap().iter().map(|job| job.state).collect::<Vec<_>>() }
    };
    assert_eq!(states(&harness).await, [Waiting; 4], "the last child decides nothing by itself");
    run_parent(&harness, id).await;
    assert_eq!(states(&harness).await, [Canceled, Pending, Pending, Canceled]);
}

pub(crate) async fn batches_are_listed_newest_first(harness: Harness) {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(Plan::of(works(1)).submit(&harness).await.0);
        harness.submit(work()).await;
    }
    all.reverse();
    let first = harness.store.list_batches(None, 3).await.unwrap();
    let second = harness.store.list_batches(first.next, 3).await.unwrap();
    let listed: Vec<JobId> = first.items.iter().chain(&second.items).map(|batch| batch.id).collect();
    assert_eq!(listed, all);
    assert_eq!(second.next, None);
    assert_eq!(first.items[0], batch(&harness, all[0]).await);
    assert_refused(harness.store.list_batches(None, 0).await, &ErrorKind::Invalid);
    assert_refused(harness.store.list_batches(None, 1_001).await, &ErrorKind::Invalid);
}

pub(crate) async fn the_children_of_a_batch_are_listed(harness: Harness) {
    let (id, children, _) = Plan::of(works(5)).submit(&harness).await;
    Plan::of(works(2)).submit(&harness).await;
    let filter = JobFilter { parent: Some(id), ..JobFilter::default() };
    let first = harness.store.list(&filter, None, 3).await.unwrap();
    let second = harness.store.list(&filter, first.next, 3).await.unwrap();
    let listed: Vec<JobId> = first.items.iter().chain(&second.items).map(|job| job.id).collect();
    assert_eq!(listed, children.iter().rev().copied().collect::<Vec<_>>());
    harness.claim_one().await;
    let running = JobFilter { states: vec![Running], ..filter };
    assert_eq!(harness.store.list(&running, None, 10).await.unwrap().items.len(), 1);
}

pub(crate) async fn a_batch_is_deleted_with_its_job_when_all_have_ended(harness: Harness) {
    let (id, _, _) = Plan::of(works(2)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    harness.store.cancel(id).await.unwrap().unwrap();
    assert_refused(harness.store.delete(id).await, &ErrorKind::Conflict);
    harness.store.cancel_children(id, None, 10).await.unwrap();
    assert!(harness.store.delete(id).await.unwrap());
    assert_eq!(harness.store.find_batches(&[id]).await.unwrap(), []);
    assert!(harness.store.delete(claimed[0].job.id).await.unwrap(), "its children are jobs like others");
}

pub(crate) async fn a_thousand_children_are_stored_and_settled_at_once(harness: Harness) {
    let (id, _, _) = Plan::of(works(1_000)).submit(&harness).await;
    let all = ratchet_core::ClaimRequest {
        limit: 1_000,
        ..request(harness.node, vec![ratchet_core::Pool { free: 1_000, ..pool("default", &[crate::harness::KIND]) }])
    };
    let claimed = harness.claim(&all).await;
    let end = |(at, claim): (usize, &Claim)| if at % 10 == 0 { failure(claim, "boom") } else { success(claim) };
    let ends: Vec<_> = claimed.iter().enumerate().map(end).collect();
    harness.turn(&ends, None).await;
    assert_eq!(counts(&harness, id).await, [1_000, 900, 100, 0]);
    assert_eq!(harness.state(id).await, Pending);
}

pub(crate) const ROUNDS: usize = 30;

pub(crate) async fn last_children_that_end_at_the_same_time_release_the_batch_once(harness: Harness) {
    for round in 0..ROUNDS {
        let (id, _, _) = Plan::of(works(4)).submit(&harness).await;
        let (other, _, _) = Plan::of(works(4)).submit(&harness).await;
        let claimed = harness.claim_all().await;
        // Each racer ends one child of each batch, in this order or the other.
        let ends = (0..4).map(|at| {
            let (one, two) = (success(&claimed[at]), success(&claimed[7 - at]));
            let two = if round % 3 == 0 { failure(&claimed[7 - at], "boom") } else { two };
            let store: Arc<dyn Store> = harness.store.clone();
            let pair = if at % 2 == 0 { [one, two] } else { [two, one] };
            tokio::spawn(async move { store.settle_and_claim(&pair, None).await })
        });
        let ends: Vec<_> = ends.collect();
        let mut released = Vec::new();
        for end in join_all(ends).await {
            let turn = end.unwrap().unwrap();
            assert_eq!(turn.settled, [Settled::Applied; 2]);
            released.extend(turn.followed.iter().map(|followed| followed.id));
        }
        released.sort_unstable();
        assert_eq!(released, [id, other], "each once");
        let parent = harness.job(id).await;
        assert_eq!((parent.state, parent.version), (Pending, 1));
        assert_eq!(counts(&harness, id).await, [4, 4, 0, 0]);
        for claim in claim_parents(&harness).await {
            harness.succeed(&claim).await;
        }
    }
}

pub(crate) async fn a_cancellation_and_the_last_child_have_one_winner(harness: Harness) {
    for _ in 0..ROUNDS {
        let (id, _, _) = Plan::of(works(1)).submit(&harness).await;
        let claim = harness.claim_one().await;
        let (canceling, settling) = (harness.store.clone(), harness.store.clone());
        let end = success(&claim);
        let cancel = tokio::spawn(async move { canceling.cancel(id).await });
        let settle = tokio::spawn(async move { settling.settle_and_claim(&[end], None).await });
        cancel.await.unwrap().unwrap().expect("it waits, or is to run");
        assert_eq!(settle.await.unwrap().unwrap().settled, [Settled::Applied]);
        assert_eq!(harness.state(id).await, Canceled);
        assert_eq!(counts(&harness, id).await, [1, 1, 0, 0]);
        assert_eq!(claim_parents(&harness).await, []);
    }
}

pub(crate) async fn a_child_whose_signal_does_not_come_counts_as_failed(harness: Harness) {
    let wait = SignalWait { key: SignalKey::new("approval").unwrap(), timeout: Some(mins(5)) };
    let (id, ..) = Plan::open().submit(&harness).await;
    let children = [work(), work().awaiting(wait)];
    extend(&harness, id, &children).await.unwrap();
    harness.store.seal_batch(id).await.unwrap();
    let first = harness.claim_one().await;
    assert_eq!(first.job.id, children[0].id);
    harness.succeed(&first).await;
    assert_eq!(counts(&harness, id).await, [2, 1, 0, 0]);
    harness.advance(mins(6));
    let expired = harness.store.expire(10).await.unwrap();
    assert!(
        expired.followed.iter().any(|one| one.id == id && one.what == FollowedBy::Released),
        "the batch is through"
    );
    assert_eq!(counts(&harness, id).await, [2, 1, 1, 0]);
    run_parent(&harness, id).await;
}
