//! Batches: counting, the one release of the job that stands for them, growing, cancelling, telling of progress.

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

use crate::bench::{
    Bench, assert_about, assert_refused, failure, ids, json, mins, new_id, new_job, pool, request, spec, success,
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
    pub(crate) async fn submit(self, bench: &Bench) -> (JobId, Vec<JobId>, Vec<JobId>) {
        let id = self.parent.id;
        let children = self.children.iter().map(|job| job.id).collect();
        let followers = self.followers.iter().map(|job| job.id).collect();
        let outcome = bench.store.submit(&[self.unit()]).await.unwrap().remove(0).expect("it is not refused");
        assert!(outcome.iter().all(|one| matches!(one, Submitted::Created(_))));
        (id, children, followers)
    }
}

pub(crate) async fn batch(bench: &Bench, id: JobId) -> Batch {
    bench.store.find_batches(&[id]).await.unwrap().pop().expect("the batch is there")
}

/// All, succeeded, failed, cancelled.
pub(crate) async fn counts(bench: &Bench, id: JobId) -> [u64; 4] {
    let counts = batch(bench, id).await.counts;
    [counts.total, counts.succeeded, counts.failed, counts.canceled]
}

pub(crate) async fn extend(
    bench: &Bench,
    id: JobId,
    children: &[NewJob],
) -> Result<Vec<Submitted>, ratchet_core::StoreError> {
    let mut children = children.to_vec();
    for child in &mut children {
        tie_child(id, child).unwrap();
    }
    bench.store.extend_batch(id, &children).await
}

/// Claims the jobs that stand for batches.
pub(crate) async fn claim_parents(bench: &Bench) -> Vec<Claim> {
    bench.claim(&request(bench.node, vec![pool("default", &[BATCH_KIND])])).await
}

pub(crate) async fn claim_told(bench: &Bench) -> Vec<BatchProgress> {
    let told = bench.claim(&request(bench.node, vec![pool("default", &["tell"])])).await;
    told.iter().map(|claim| claim.job.origin.as_ref().unwrap().result.as_ref().unwrap().decode().unwrap()).collect()
}

/// Runs the job that stands for a batch, as an engine does.
pub(crate) async fn run_parent(bench: &Bench, id: JobId) {
    let claimed = claim_parents(bench).await;
    assert_eq!(ids(&claimed), [id], "it is released");
    let summary = serde_json::to_value(batch(bench, id).await.summary()).unwrap();
    assert_eq!(bench.settle(success_with(&claimed[0], Some(json(&summary)))).await, Settled::Applied);
}

pub(crate) async fn a_batch_comes_back_as_it_was_given(bench: Bench) {
    let plan = Plan::of(works(3)).telling(ProgressEvery::Percent(25));
    let hook = plan.batch.hook.clone();
    let (id, children, _) = plan.submit(&bench).await;
    let found = batch(&bench, id).await;
    assert_eq!((found.state, found.counts.total, found.counts.sealed), (Waiting, 3, true));
    assert_eq!((found.hook, found.next_progress, found.canceling), (hook, Some(25), false));
    assert_about(found.created_at, bench.now().await);
    assert_eq!(found.completed_at, None);
    let parent = bench.job(id).await;
    assert_eq!((parent.state, parent.waits_for, parent.job_type), (Waiting, 1, JobType::BatchParent));
    let child = bench.job(children[0]).await;
    assert_eq!((child.parent, child.job_type, child.state), (Some(id), JobType::BatchChild, Pending));
}

pub(crate) async fn the_last_child_releases_the_job_that_stands_for_the_batch(bench: Bench) {
    let (id, _, _) = Plan::of(works(3)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    for (place, claim) in claimed.iter().enumerate() {
        assert_eq!(bench.state(id).await, Waiting, "it waits for all");
        let turn = bench.turn(&[success(claim)], None).await;
        let released: Vec<_> = turn.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
        let expected = (place == 2).then_some((id, FollowedBy::Released));
        assert_eq!(released, expected.into_iter().collect::<Vec<_>>());
    }
    let parent = bench.job(id).await;
    assert_eq!((parent.state, parent.version, parent.waits_for), (Pending, 1, 0));
    run_parent(&bench, id).await;
    assert_eq!(bench.state(id).await, Succeeded);
}

pub(crate) async fn children_that_end_in_one_turn_are_counted_together(bench: Bench) {
    let (one, _, _) = Plan::of(works(4)).submit(&bench).await;
    let (other, _, _) = Plan::of(works(3)).submit(&bench).await;
    bench.submit(work()).await;
    let claimed = bench.claim_all().await;
    let ends: Vec<_> = claimed.iter().map(success).collect();
    let turn = bench.turn(&ends, None).await;
    assert_eq!(turn.settled, [Settled::Applied; 8]);
    assert_eq!(counts(&bench, one).await, [4, 4, 0, 0]);
    assert_eq!(counts(&bench, other).await, [3, 3, 0, 0]);
    let mut released: Vec<_> = turn.followed.iter().map(|followed| followed.id).collect();
    released.sort_unstable();
    assert_eq!(released, [one, other]);
}

pub(crate) async fn every_way_to_end_is_counted_as_what_it_is(bench: Bench) {
    let (id, children, _) = Plan::of(works(4)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    let turn = bench.turn(&[success(&claimed[0]), failure(&claimed[1], "boom")], None).await;
    assert_eq!(turn.settled, [Settled::Applied; 2]);
    bench.store.cancel(children[2]).await.unwrap().expect("a running child can be cancelled");
    assert_eq!(counts(&bench, id).await, [4, 1, 1, 1]);
    assert_eq!(bench.state(id).await, Waiting);
    let done = {
        bench.defer(&claimed[3], Duration::ZERO).await;
        bench.store.cancel(children[3]).await.unwrap().expect("so can one that waits")
    };
    assert_eq!(done.followed.iter().map(|followed| followed.id).collect::<Vec<_>>(), [id], "it was the last");
    assert_eq!(counts(&bench, id).await, [4, 1, 1, 2]);
    assert_eq!(bench.state(id).await, Pending);
}

pub(crate) async fn a_child_that_goes_back_is_not_counted(bench: Bench) {
    let (id, _, _) = Plan::of(works(1)).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.defer(&first, Duration::ZERO).await;
    let again = bench.claim_one().await;
    bench.reschedule(&again, Duration::ZERO).await;
    let third = bench.claim_one().await;
    bench.rescue(&third).await;
    assert_eq!(counts(&bench, id).await, [1, 0, 0, 0]);
    let last = bench.claim_one().await;
    bench.succeed(&last).await;
    assert_eq!(counts(&bench, id).await, [1, 1, 0, 0]);
}

pub(crate) async fn a_child_counts_once_however_often_its_end_is_brought(bench: Bench) {
    let (id, _, _) = Plan::of(works(2)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    let twice = bench.turn(&[success(&claimed[0]), success(&claimed[0])], None).await;
    assert_eq!(twice.settled, [Settled::Applied, Settled::Conflict]);
    let again = ratchet_core::Settlement { maybe_applied: true, ..success(&claimed[0]) };
    assert_eq!(bench.settle(again).await, Settled::AlreadyApplied);
    assert_eq!(counts(&bench, id).await, [2, 1, 0, 0]);
}

pub(crate) async fn a_stale_settlement_counts_nothing(bench: Bench) {
    let (id, _, _) = Plan::of(works(2)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    bench.rescue(&claimed[0]).await;
    let turn = bench.turn(&[success(&claimed[0]), failure(&claimed[0], "late")], None).await;
    assert_eq!(turn.settled, [Settled::Conflict; 2]);
    assert_eq!(bench.settle(success(&claimed[0])).await, Settled::Conflict);
    assert_eq!(counts(&bench, id).await, [2, 0, 0, 0]);
}

pub(crate) async fn a_child_that_another_job_stands_for_is_not_counted(bench: Bench) {
    let first = bench.submit(work_once("order-7")).await;
    let plan = Plan::of(vec![work(), work_once("order-7")]);
    let (id, stored) = (plan.parent.id, plan.children[0].id);
    let outcome = bench.store.submit(&[plan.unit()]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcome, [Submitted::Created(id), Submitted::Created(stored), Submitted::Existing(first)]);
    assert_eq!(counts(&bench, id).await[0], 1);
    let (open, _, _) = Plan::open().submit(&bench).await;
    assert_eq!(extend(&bench, open, &[work_once("order-7")]).await.unwrap(), [Submitted::Existing(first)]);
    assert_eq!(counts(&bench, open).await[0], 0);
}

pub(crate) async fn a_batch_submitted_again_by_its_key_stands_for_the_first(bench: Bench) {
    let plan = || {
        let mut plan = Plan::of(works(2));
        plan.parent.idempotency_key = Some(crate::bench::idempotency_key("import-7"));
        plan
    };
    let (first, _, _) = plan().submit(&bench).await;
    let again = plan();
    let lost: Vec<JobId> = again.children.iter().map(|job| job.id).collect();
    let outcome = bench.store.submit(&[again.unit()]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcome, [Submitted::Existing(first); 3]);
    assert_eq!(bench.store.find(&lost).await.unwrap(), []);
}

pub(crate) async fn an_unknown_batch_is_none(bench: Bench) {
    let (id, _, _) = Plan::of(works(1)).submit(&bench).await;
    assert_eq!(bench.store.find_batches(&[new_id()]).await.unwrap(), []);
    let plain = bench.submit(work()).await;
    assert_eq!(bench.store.find_batches(&[plain]).await.unwrap(), [], "a job is not a batch");
    let found = bench.store.find_batches(&[new_id(), id]).await.unwrap();
    assert_eq!(found.iter().map(|batch| batch.id).collect::<Vec<_>>(), [id]);
}

pub(crate) async fn a_failed_child_can_be_retried_while_its_batch_waits(bench: Bench) {
    let (id, children, _) = Plan::of(works(2)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    bench.fail(&claimed[0], "boom").await;
    assert_eq!(counts(&bench, id).await, [2, 0, 1, 0]);
    bench.store.retry(children[0]).await.unwrap().expect("its batch still waits");
    assert_eq!(counts(&bench, id).await, [2, 0, 0, 0]);
    bench.succeed(&claimed[1]).await;
    assert_eq!(bench.state(id).await, Waiting, "it waits for the retried one");
    let again = bench.claim_one().await;
    bench.succeed(&again).await;
    assert_eq!(counts(&bench, id).await, [2, 2, 0, 0]);
    assert_eq!(bench.state(id).await, Pending);
}

pub(crate) async fn a_failed_child_cannot_be_retried_when_its_batch_is_over(bench: Bench) {
    let (id, children, _) = Plan::of(vec![work_with_key("once")]).submit(&bench).await;
    let claim = bench.claim_one().await;
    bench.fail(&claim, "boom").await;
    assert_refused(bench.store.retry(children[0]).await, &ErrorKind::Conflict);
    run_parent(&bench, id).await;
    assert_refused(bench.store.retry(children[0]).await, &ErrorKind::Conflict);
    assert_eq!(bench.state(children[0]).await, Failed);
    assert_eq!(bench.holder("once").await, None, "nothing has changed");
    assert_eq!(counts(&bench, id).await, [1, 0, 1, 0]);
    let (canceled, children, _) = Plan::of(works(2)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    bench.fail(&claimed[0], "boom").await;
    bench.store.cancel(canceled).await.unwrap().unwrap();
    assert_refused(bench.store.retry(children[0]).await, &ErrorKind::Conflict);
}

pub(crate) async fn a_cancelled_batch_takes_its_children_along_in_portions(bench: Bench) {
    let plan = Plan::of(works(6)).then(Condition::Ended).then(Condition::Success);
    let (id, children, followers) = plan.submit(&bench).await;
    let running = bench.claim_one().await;
    bench.store.pause(children[1]).await.unwrap().unwrap();
    let done = bench.claim(&ratchet_core::ClaimRequest { limit: 1, ..bench.request() }).await.remove(0);
    bench.succeed(&done).await;
    assert_eq!(bench.store.cancel_children(id, None, 10).await.unwrap().children, [], "it was not cancelled");
    bench.store.cancel(id).await.unwrap().expect("a waiting batch can be cancelled");
    assert_eq!(bench.state(id).await, Canceled);
    let states = [bench.state(followers[0]).await, bench.state(followers[1]).await];
    assert_eq!(states, [Pending, Canceled], "what depends on it has its answer");
    assert!(batch(&bench, id).await.canceling);
    assert_eq!(bench.store.canceling_batches(10).await.unwrap(), [id]);
    let mut after = None;
    let mut portions = Vec::new();
    loop {
        let portion = bench.store.cancel_children(id, after, 2).await.unwrap();
        portions.push(portion.children.len());
        after = portion.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(portions, [2, 1, 2], "two are looked at at a time, and the last is the last");
    assert_eq!(counts(&bench, id).await, [6, 1, 0, 5]);
    assert_eq!(bench.settle(success(&running)).await, Settled::Conflict);
    assert_eq!(bench.job(children[5]).await.canceled_because, Some(id));
    assert!(!batch(&bench, id).await.canceling);
    assert_eq!(bench.store.canceling_batches(10).await.unwrap(), []);
    assert_eq!(bench.state(id).await, Canceled, "the last child releases nothing");
    assert_eq!(bench.attempts(running.job.id).await.len(), 1, "the attempt that ran is recorded");
}

pub(crate) async fn a_cancelled_childs_key_is_free(bench: Bench) {
    let (id, _, _) = Plan::of(vec![work_with_key("held")]).submit(&bench).await;
    bench.store.cancel(id).await.unwrap().unwrap();
    assert!(bench.holder("held").await.is_some());
    bench.store.cancel_children(id, None, 10).await.unwrap();
    assert_eq!(bench.holder("held").await, None);
}

pub(crate) async fn a_batch_keeps_its_times_and_its_end_once(bench: Bench) {
    let (id, _, _) = Plan::of(works(2)).submit(&bench).await;
    let began = batch(&bench, id).await.created_at;
    for claim in bench.claim_all().await {
        bench.advance(mins(5));
        bench.succeed(&claim).await;
    }
    assert_eq!(batch(&bench, id).await.completed_at, None, "not before the job that stands for it has run");
    bench.advance(mins(5));
    run_parent(&bench, id).await;
    let found = batch(&bench, id).await;
    assert_eq!(found.counts.child_execution, Duration::from_secs(3));
    assert_about(found.updated_at, ratchet_core::clock::later(began, mins(10)));
    assert_about(found.completed_at.expect("it is over"), ratchet_core::clock::later(began, mins(15)));
    let summary = found.summary();
    assert!((600_000..630_000).contains(&summary.total_ms), "{summary:?}");
    bench.advance(mins(5));
    assert!(bench.store.cancel(id).await.unwrap().is_none());
    assert_eq!(batch(&bench, id).await, found, "nothing changes any more");
}

pub(crate) async fn jobs_depend_on_the_summary_of_a_batch(bench: Bench) {
    let test = |pointer: &str, operator, value: serde_json::Value| {
        Condition::Result(ResultTest::new(pointer, operator, value).unwrap())
    };
    let plan = Plan::of(works(4))
        .then(test("/clean", Operator::Is, true.into()))
        .then(test("/clean", Operator::Is, false.into()))
        .then(test("/success_rate", Operator::AtLeast, 0.5.into()))
        .then(test("/failed", Operator::AtLeast, 2.into()));
    let (id, _, followers) = plan.submit(&bench).await;
    let claimed = bench.claim_all().await;
    for claim in &claimed[1..] {
        bench.succeed(claim).await;
    }
    bench.fail(&claimed[0], "boom").await;
    let states = |bench: &Bench| {
        let (store, followers) = (bench.store.clone(), followers.clone());
        async move { store.find(&followers).await.unwrap().iter().map(|job| job.state).collect::<Vec<_>>() }
    };
    assert_eq!(states(&bench).await, [Waiting; 4], "the last child decides nothing by itself");
    run_parent(&bench, id).await;
    assert_eq!(states(&bench).await, [Canceled, Pending, Pending, Canceled]);
}

pub(crate) async fn batches_are_listed_newest_first(bench: Bench) {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(Plan::of(works(1)).submit(&bench).await.0);
        bench.submit(work()).await;
    }
    all.reverse();
    let first = bench.store.list_batches(None, 3).await.unwrap();
    let second = bench.store.list_batches(first.next, 3).await.unwrap();
    let listed: Vec<JobId> = first.items.iter().chain(&second.items).map(|batch| batch.id).collect();
    assert_eq!(listed, all);
    assert_eq!(second.next, None);
    assert_eq!(first.items[0], batch(&bench, all[0]).await);
    assert_refused(bench.store.list_batches(None, 0).await, &ErrorKind::Invalid);
    assert_refused(bench.store.list_batches(None, 1_001).await, &ErrorKind::Invalid);
}

pub(crate) async fn the_children_of_a_batch_are_listed(bench: Bench) {
    let (id, children, _) = Plan::of(works(5)).submit(&bench).await;
    Plan::of(works(2)).submit(&bench).await;
    let filter = JobFilter { parent: Some(id), ..JobFilter::default() };
    let first = bench.store.list(&filter, None, 3).await.unwrap();
    let second = bench.store.list(&filter, first.next, 3).await.unwrap();
    let listed: Vec<JobId> = first.items.iter().chain(&second.items).map(|job| job.id).collect();
    assert_eq!(listed, children.iter().rev().copied().collect::<Vec<_>>());
    bench.claim_one().await;
    let running = JobFilter { states: vec![Running], ..filter };
    assert_eq!(bench.store.list(&running, None, 10).await.unwrap().items.len(), 1);
}

pub(crate) async fn a_batch_is_deleted_with_its_job_when_all_have_ended(bench: Bench) {
    let (id, _, _) = Plan::of(works(2)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    bench.store.cancel(id).await.unwrap().unwrap();
    assert_refused(bench.store.delete(id).await, &ErrorKind::Conflict);
    bench.store.cancel_children(id, None, 10).await.unwrap();
    assert!(bench.store.delete(id).await.unwrap());
    assert_eq!(bench.store.find_batches(&[id]).await.unwrap(), []);
    assert!(bench.store.delete(claimed[0].job.id).await.unwrap(), "its children are jobs like others");
}

pub(crate) async fn a_thousand_children_are_stored_and_settled_at_once(bench: Bench) {
    let (id, _, _) = Plan::of(works(1_000)).submit(&bench).await;
    let all = ratchet_core::ClaimRequest {
        limit: 1_000,
        ..request(bench.node, vec![ratchet_core::Pool { free: 1_000, ..pool("default", &[crate::bench::KIND]) }])
    };
    let claimed = bench.claim(&all).await;
    let end = |(at, claim): (usize, &Claim)| if at % 10 == 0 { failure(claim, "boom") } else { success(claim) };
    let ends: Vec<_> = claimed.iter().enumerate().map(end).collect();
    bench.turn(&ends, None).await;
    assert_eq!(counts(&bench, id).await, [1_000, 900, 100, 0]);
    assert_eq!(bench.state(id).await, Pending);
}

pub(crate) const ROUNDS: usize = 30;

pub(crate) async fn last_children_that_end_at_the_same_time_release_the_batch_once(bench: Bench) {
    for round in 0..ROUNDS {
        let (id, _, _) = Plan::of(works(4)).submit(&bench).await;
        let (other, _, _) = Plan::of(works(4)).submit(&bench).await;
        let claimed = bench.claim_all().await;
        // Each racer ends one child of each batch, in this order or the other.
        let ends = (0..4).map(|at| {
            let (one, two) = (success(&claimed[at]), success(&claimed[7 - at]));
            let two = if round % 3 == 0 { failure(&claimed[7 - at], "boom") } else { two };
            let store: Arc<dyn Store> = bench.store.clone();
            let pair = if at % 2 == 0 { [one, two] } else { [two, one] };
            tokio::spawn(async move { store.turn(&pair, None).await })
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
        let parent = bench.job(id).await;
        assert_eq!((parent.state, parent.version), (Pending, 1));
        assert_eq!(counts(&bench, id).await, [4, 4, 0, 0]);
        for claim in claim_parents(&bench).await {
            bench.succeed(&claim).await;
        }
    }
}

pub(crate) async fn a_cancellation_and_the_last_child_have_one_winner(bench: Bench) {
    for _ in 0..ROUNDS {
        let (id, _, _) = Plan::of(works(1)).submit(&bench).await;
        let claim = bench.claim_one().await;
        let (canceling, settling) = (bench.store.clone(), bench.store.clone());
        let end = success(&claim);
        let cancel = tokio::spawn(async move { canceling.cancel(id).await });
        let settle = tokio::spawn(async move { settling.turn(&[end], None).await });
        cancel.await.unwrap().unwrap().expect("it waits, or is to run");
        assert_eq!(settle.await.unwrap().unwrap().settled, [Settled::Applied]);
        assert_eq!(bench.state(id).await, Canceled);
        assert_eq!(counts(&bench, id).await, [1, 1, 0, 0]);
        assert_eq!(claim_parents(&bench).await, []);
    }
}

pub(crate) async fn a_child_whose_signal_does_not_come_counts_as_failed(bench: Bench) {
    let wait = SignalWait { key: SignalKey::new("approval").unwrap(), timeout: Some(mins(5)) };
    let (id, ..) = Plan::open().submit(&bench).await;
    let children = [work(), work().awaiting(wait)];
    extend(&bench, id, &children).await.unwrap();
    bench.store.seal_batch(id).await.unwrap();
    let first = bench.claim_one().await;
    assert_eq!(first.job.id, children[0].id);
    bench.succeed(&first).await;
    assert_eq!(counts(&bench, id).await, [2, 1, 0, 0]);
    bench.advance(mins(6));
    let expired = bench.store.expire(10).await.unwrap();
    assert!(
        expired.followed.iter().any(|one| one.id == id && one.what == FollowedBy::Released),
        "the batch is through"
    );
    assert_eq!(counts(&bench, id).await, [2, 1, 1, 0]);
    run_parent(&bench, id).await;
}
