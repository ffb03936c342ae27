//! Jobs that hang on each other: releases, cascades, joins, branches, revivals.

use std::collections::BTreeSet;
use std::sync::Arc;

use ratchet_core::error::ErrorKind;
use ratchet_core::flow::{Condition, Edge, EdgeState, Join, Operator, ResultTest, WorkflowState};
use ratchet_core::store::{SubmitUnit, Submitted};
use ratchet_core::{Claim, Due, FollowedBy, JobFlags, JobId, JobState, JobType, NewJob, Settled, StepName, Store};
use serde_json::json as value;

use crate::harness::{
    Harness, assert_about, assert_refused, business_key, failure, ids, json, mins, new_id, success, success_with, work,
    work_once, work_with_key,
};

/// A workflow to be.
pub(crate) struct Plan {
    pub(crate) jobs: Vec<NewJob>,
    pub(crate) edges: Vec<Edge>,
}

impl Plan {
    /// So many jobs without edges; the first is the workflow's id.
    pub(crate) fn of(count: usize) -> Self {
        Self::from((0..count).map(|_| work()).collect())
    }

    pub(crate) fn from(mut jobs: Vec<NewJob>) -> Self {
        let workflow = jobs[0].id;
        for job in &mut jobs {
            job.workflow = Some(workflow);
        }
        Self { jobs, edges: Vec::new() }
    }

    pub(crate) fn edge(mut self, parent: usize, child: usize, condition: Condition) -> Self {
        let order = u32::try_from(self.edges.len()).unwrap();
        let edge = Edge::new(self.jobs[0].id, self.jobs[parent].id, self.jobs[child].id, condition);
        self.edges.push(Edge { order, ..edge });
        self
    }

    /// A chain of so many steps.
    pub(crate) fn chain(count: usize) -> Self {
        (1..count).fold(Self::of(count), |plan, child| plan.edge(child - 1, child, Condition::Success))
    }

    /// Two parents and the job that waits for both.
    pub(crate) fn join(join: Join) -> Self {
        let mut plan = Self::of(3);
        if join == Join::Any {
            plan.jobs[2].flow = JobFlags::JOIN_ANY;
        }
        plan.edge(0, 2, Condition::Success).edge(1, 2, Condition::Success)
    }

    pub(crate) fn unit(self) -> SubmitUnit {
        SubmitUnit::workflow(self.jobs, self.edges).expect("the plan is sound")
    }

    pub(crate) async fn submit(self, harness: &Harness) -> Vec<JobId> {
        let ids: Vec<JobId> = self.jobs.iter().map(|job| job.id).collect();
        let outcome = harness.store.submit(&[self.unit()]).await.unwrap().remove(0).expect("it is not refused");
        assert_eq!(outcome, ids.iter().map(|id| Submitted::Created(*id)).collect::<Vec<_>>());
        ids
    }
}

pub(crate) async fn states(harness: &Harness, ids: &[JobId]) -> Vec<JobState> {
    harness.store.find(ids).await.unwrap().iter().map(|job| job.state).collect()
}

/// Claims what can be claimed, which must be these.
pub(crate) async fn claims(harness: &Harness, expected: &[JobId]) -> Vec<Claim> {
    let claimed = harness.claim_all().await;
    let mut found = ids(&claimed);
    found.sort_unstable();
    assert_eq!(found, expected, "these can be claimed");
    claimed
}

pub(crate) async fn succeed_with(harness: &Harness, claim: &Claim, result: &serde_json::Value) {
    assert_eq!(harness.settle(success_with(claim, Some(json(result)))).await, Settled::Applied);
}

pub(crate) fn test(pointer: &str, operator: Operator, value: impl Into<serde_json::Value>) -> Condition {
    Condition::Result(ResultTest::new(pointer, operator, value).unwrap())
}

use JobState::{Canceled, Failed, Pending, Running, Succeeded, Waiting};

pub(crate) async fn a_workflow_comes_back_as_it_was_given(harness: Harness) {
    let mut plan = Plan::of(3).edge(0, 1, test("/n", Operator::OneOf, value!([1, "ü"]))).edge(0, 2, Condition::Failure);
    plan.jobs[1].step = Some(StepName::new("größer").unwrap());
    plan.jobs[1].job_type = JobType::WorkflowBranch;
    plan.edges[0].description = Some("when it is large".to_owned());
    plan.edges[0].priority = -7;
    plan.edges[0].exclusive = true;
    let edges = plan.edges.clone();
    let given = plan.submit(&harness).await;
    let workflow = harness.store.workflow(given[0]).await.unwrap().expect("it is there");
    assert_eq!(workflow.edges, edges);
    let steps: Vec<_> = workflow.steps.iter().map(|step| step.id).collect();
    assert_eq!(steps, given);
    assert_eq!(workflow.steps[1].step.as_ref().map(StepName::as_str), Some("größer"));
    assert_eq!(workflow.steps[1].job_type, JobType::WorkflowBranch);
    assert_eq!(workflow.state(), WorkflowState::Running);
    let job = harness.job(given[1]).await;
    assert_eq!((job.workflow, job.waits_for, job.state), (Some(given[0]), 1, Waiting));
    assert!(job.flow.has(JobFlags::INPUTS) && !job.flow.has(JobFlags::DEPENDANTS));
    assert_eq!(harness.store.edges_from(&[given[0]]).await.unwrap(), edges);
    assert_eq!(harness.store.edges_from(&[given[1]]).await.unwrap(), []);
    assert_eq!(harness.store.workflow(new_id()).await.unwrap(), None);
}

pub(crate) async fn the_steps_of_a_chain_run_one_after_the_other(harness: Harness) {
    let steps = Plan::chain(3).submit(&harness).await;
    for (place, step) in steps.iter().enumerate() {
        let claimed = claims(&harness, &[*step]).await;
        let later = vec![Waiting; steps.len() - place - 1];
        assert_eq!(states(&harness, &steps[place + 1..]).await, later, "what comes later waits");
        let turn = harness.turn(&[success(&claimed[0])], None).await;
        let next: Vec<_> = turn.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
        let expected = steps.get(place + 1).map(|next| (*next, FollowedBy::Released));
        assert_eq!(next, expected.into_iter().collect::<Vec<_>>());
    }
    let workflow = harness.store.workflow(steps[0]).await.unwrap().unwrap();
    assert_eq!(workflow.state(), WorkflowState::Succeeded);
    assert!(workflow.edges.iter().all(|edge| edge.state == EdgeState::Held));
}

pub(crate) async fn a_settlement_and_the_claim_of_what_it_releases_are_one_turn(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let claimed = claims(&harness, &steps[..1]).await;
    let turn = harness.turn(&[success(&claimed[0])], Some(&harness.request())).await;
    assert_eq!(ids(&turn.claimed), steps[1..], "what was released is claimed at once");
}

pub(crate) async fn a_step_that_goes_back_releases_nothing(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.defer(&first, std::time::Duration::ZERO).await;
    let again = harness.claim_one().await;
    harness.reschedule(&again, std::time::Duration::ZERO).await;
    let third = harness.claim_one().await;
    harness.rescue(&third).await;
    assert_eq!(states(&harness, &steps).await, [Pending, Waiting]);
}

pub(crate) async fn the_failure_of_a_step_cancels_all_that_follow(harness: Harness) {
    let steps = Plan::chain(4).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    let second = harness.claim_one().await;
    let turn = harness.turn(&[failure(&second, "boom")], None).await;
    assert_eq!(states(&harness, &steps).await, [Succeeded, Failed, Canceled, Canceled]);
    for step in &steps[2..] {
        let job = harness.job(*step).await;
        assert_eq!(job.canceled_because, Some(steps[1]), "it knows why");
        assert_eq!(job.version, 1, "one transition");
        assert!(job.terminated_at.is_some() && harness.attempts(*step).await.is_empty());
    }
    let told: Vec<_> = turn.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
    let canceled = |id| (id, FollowedBy::Canceled { because: steps[1] });
    assert_eq!(told, [canceled(steps[2]), canceled(steps[3])]);
    assert_eq!(harness.store.workflow(steps[0]).await.unwrap().unwrap().state(), WorkflowState::Failed);
}

pub(crate) async fn the_cancellation_of_a_step_cancels_all_that_follow(harness: Harness) {
    let steps = Plan::chain(4).submit(&harness).await;
    let done = harness.store.cancel(steps[1]).await.unwrap().expect("a waiting job can be canceled");
    assert_eq!(states(&harness, &steps).await, [Pending, Canceled, Canceled, Canceled]);
    assert_eq!(done.followed.iter().map(|followed| followed.id).collect::<Vec<_>>(), steps[2..]);
    assert_eq!(harness.job(steps[1]).await.canceled_because, None, "a person did");
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    assert_eq!(harness.claim_all().await, [], "nothing comes back by itself");
}

pub(crate) async fn a_running_step_that_is_canceled_takes_its_followers_along(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.store.cancel(steps[0]).await.unwrap().unwrap();
    assert_eq!(harness.settle(success(&first)).await, Settled::Conflict);
    assert_eq!(states(&harness, &steps).await, [Canceled, Canceled]);
}

pub(crate) async fn a_canceled_step_frees_its_business_key(harness: Harness) {
    let plan = Plan::from(vec![work(), work_with_key("next")]).edge(0, 1, Condition::Success);
    let steps = plan.submit(&harness).await;
    assert_eq!(harness.holder("next").await, Some(steps[1]), "a waiting step holds its key");
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    assert_eq!(harness.holder("next").await, None);
}

pub(crate) async fn a_join_waits_for_all_its_parents(harness: Harness) {
    let steps = Plan::join(Join::All).submit(&harness).await;
    let parents = claims(&harness, &steps[..2]).await;
    harness.succeed(&parents[0]).await;
    assert_eq!(harness.job(steps[2]).await.waits_for, 1);
    assert_eq!(harness.claim_all().await, [], "one is not enough");
    harness.succeed(&parents[1]).await;
    claims(&harness, &steps[2..]).await;
}

pub(crate) async fn a_join_whose_parents_end_in_one_turn_is_released_once(harness: Harness) {
    let steps = Plan::join(Join::All).submit(&harness).await;
    let parents = claims(&harness, &steps[..2]).await;
    let turn = harness.turn(&[success(&parents[0]), success(&parents[1])], None).await;
    assert_eq!(turn.settled, [Settled::Applied, Settled::Applied]);
    let join = harness.job(steps[2]).await;
    assert_eq!((join.state, join.version, join.waits_for), (Pending, 1, 0));
}

pub(crate) async fn the_failure_of_one_parent_cancels_a_join(harness: Harness) {
    let steps = Plan::join(Join::All).submit(&harness).await;
    let parents = claims(&harness, &steps[..2]).await;
    harness.fail(&parents[0], "boom").await;
    assert_eq!(harness.state(steps[2]).await, Canceled, "it need not wait for the other");
    harness.succeed(&parents[1]).await;
    assert_eq!(states(&harness, &steps).await, [Failed, Succeeded, Canceled]);
}

pub(crate) async fn a_join_of_any_runs_after_all_have_ended_if_one_edge_held(harness: Harness) {
    for (first_fails, second_fails, expected) in
        [(true, false, Pending), (false, true, Pending), (true, true, Canceled)]
    {
        let steps = Plan::join(Join::Any).submit(&harness).await;
        let parents = claims(&harness, &steps[..2]).await;
        for (fails, claim) in [(first_fails, &parents[0]), (second_fails, &parents[1])] {
            assert_eq!(harness.state(steps[2]).await, Waiting, "it waits for all");
            if fails { harness.fail(claim, "boom").await } else { harness.succeed(claim).await }
        }
        assert_eq!(harness.state(steps[2]).await, expected, "after {first_fails} and {second_fails}");
        harness.store.cancel(steps[2]).await.unwrap();
    }
}

pub(crate) async fn a_steps_delay_begins_with_its_release(harness: Harness) {
    let mut plan = Plan::chain(2);
    plan.jobs[1].due = Due::After(mins(10));
    let steps = plan.submit(&harness).await;
    harness.advance(mins(60));
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    let second = harness.job(steps[1]).await;
    assert_eq!(second.state, Pending);
    assert_about(second.scheduled_time, ratchet_core::clock::later(harness.now().await, mins(10)));
    assert_eq!(harness.claim_all().await, []);
    harness.advance(mins(11));
    claims(&harness, &steps[1..]).await;
}

pub(crate) async fn a_released_step_counts_as_waiting_since_its_release(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    harness.advance(mins(60));
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    assert_about(harness.job(steps[1]).await.scheduled_time, harness.now().await);
}

pub(crate) async fn a_workflow_is_stored_as_a_whole_or_not_at_all(harness: Harness) {
    let holder = harness.submit(work_with_key("taken")).await;
    let plan = Plan::from(vec![work(), work_with_key("taken")]).edge(0, 1, Condition::Success);
    let first = plan.jobs[0].id;
    let outcome = harness.store.submit(&[plan.unit()]).await.unwrap().remove(0);
    assert_refused(outcome, &ErrorKind::Duplicate { business_key: business_key("taken"), holder });
    assert!(!harness.exists(first).await);
    assert_eq!(harness.store.workflow(first).await.unwrap(), None, "no edge was left behind");
}

pub(crate) async fn a_workflow_submitted_again_stands_for_the_first(harness: Harness) {
    let plan = || Plan::from(vec![work_once("order-7"), work()]).edge(0, 1, Condition::Success);
    let first = plan().submit(&harness).await;
    let again = plan();
    let lost: Vec<JobId> = again.jobs.iter().map(|job| job.id).collect();
    let outcome = harness.store.submit(&[again.unit()]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcome, [Submitted::Existing(first[0]); 2]);
    assert_eq!(harness.store.find(&lost).await.unwrap(), []);
    assert_eq!(harness.store.edges_from(&lost).await.unwrap(), []);
    // The very same unit once more, as after a lost reply.
    let unit = Plan::chain(2).unit();
    for _ in 0..2 {
        let outcome = harness.store.submit(std::slice::from_ref(&unit)).await.unwrap().remove(0).unwrap();
        assert_eq!(outcome, [Submitted::Created(unit.jobs[0].id), Submitted::Created(unit.jobs[1].id)]);
    }
}

pub(crate) async fn a_job_that_a_live_one_needs_is_not_deleted(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    assert_refused(harness.store.delete(steps[0]).await, &ErrorKind::Conflict);
    let second = harness.claim_one().await;
    assert_eq!(second.inputs.len(), 1, "its input is still there");
    harness.succeed(&second).await;
    assert!(harness.store.delete(steps[0]).await.unwrap());
    assert_eq!(harness.store.edges_from(&steps).await.unwrap(), [], "its edges went with it");
    assert!(harness.store.delete(steps[1]).await.unwrap());
}

pub(crate) async fn a_job_that_a_retry_needs_is_not_deleted(harness: Harness) {
    let steps = Plan::join(Join::All).submit(&harness).await;
    let parents = claims(&harness, &steps[..2]).await;
    let of = |id| parents.iter().find(|claim| claim.job.id == id).unwrap();
    harness.succeed(of(steps[0])).await;
    harness.fail(of(steps[1]), "boom").await;
    assert_eq!(states(&harness, &steps).await, [Succeeded, Failed, Canceled]);
    assert_refused(harness.store.delete(steps[0]).await, &ErrorKind::Conflict);
    harness.store.retry(steps[1]).await.unwrap().unwrap();
    let second = harness.claim_one().await;
    harness.succeed(&second).await;
    let join = harness.claim_one().await;
    assert_eq!(join.inputs.len(), 2, "both inputs are there");
    harness.fail(&join, "boom").await;
    assert_refused(harness.store.delete(steps[0]).await, &ErrorKind::Conflict);
    for step in steps.iter().rev() {
        assert!(harness.store.delete(*step).await.unwrap(), "from the last to the first all can be");
    }
    // What was canceled because of it does not hold up the one that failed.
    let steps = Plan::chain(2).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    assert!(harness.store.delete(steps[0]).await.unwrap());
}

pub(crate) async fn a_workflow_has_failed_also_if_its_dead_letter_is_put_aside(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let state = async || harness.store.workflow(steps[0]).await.unwrap().unwrap().state();
    harness.store.pause(steps[0]).await.unwrap().unwrap();
    assert_eq!(state().await, WorkflowState::Running, "it has not ended");
    harness.store.resume(steps[0]).await.unwrap().unwrap();
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    harness.store.pause(steps[0]).await.unwrap().unwrap();
    assert_eq!(state().await, WorkflowState::Failed);
}

pub(crate) async fn a_stale_settlement_releases_nothing(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.rescue(&first).await;
    let turn = harness.turn(&[success(&first)], None).await;
    assert_eq!(turn.settled, [Settled::Conflict]);
    assert_eq!(turn.followed, []);
    assert_eq!(states(&harness, &steps).await, [Pending, Waiting]);
}

pub(crate) async fn a_replaced_step_takes_its_followers_along(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    harness.store.replace(steps[0], &work()).await.unwrap();
    assert_eq!(states(&harness, &steps).await, [Canceled, Canceled]);
}

pub(crate) async fn a_thousand_steps_are_stored_at_once_and_canceled_with_their_root(harness: Harness) {
    // A chain of a hundred, whose end fans out to nine hundred.
    let mut plan = Plan::chain(100);
    let workflow = plan.jobs[0].id;
    plan.jobs.extend((0..900).map(|_| NewJob { workflow: Some(workflow), ..work() }));
    let plan = (100..1_000).fold(plan, |plan, child| plan.edge(99, child, Condition::Success));
    let steps = plan.submit(&harness).await;
    let done = harness.store.cancel(steps[0]).await.unwrap().unwrap();
    assert_eq!(done.followed.len(), 999);
    let counts = harness.store.workflow(steps[0]).await.unwrap().unwrap().counts();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(Canceled, 1_000)]);
}

/// A thousand joins, fifty at a time: all first parents end in one turn, all second ones in another, at the same time.
pub(crate) async fn two_parents_that_end_at_the_same_time_release_a_join_once(harness: Harness) {
    const ROUNDS: usize = 20;
    const TOGETHER: usize = 50;
    for _ in 0..ROUNDS {
        let plans: Vec<Plan> = (0..TOGETHER).map(|_| Plan::join(Join::All)).collect();
        let firsts: BTreeSet<JobId> = plans.iter().map(|plan| plan.jobs[0].id).collect();
        let joins: Vec<JobId> = plans.iter().map(|plan| plan.jobs[2].id).collect();
        let units: Vec<SubmitUnit> = plans.into_iter().map(Plan::unit).collect();
        for outcome in harness.store.submit(&units).await.unwrap() {
            outcome.expect("it is not refused");
        }
        let parents = harness.claim_all().await;
        assert_eq!(parents.len(), 2 * TOGETHER);
        let (first, second): (Vec<Claim>, Vec<Claim>) =
            parents.into_iter().partition(|claim| firsts.contains(&claim.job.id));
        let end = |claims: Vec<Claim>| {
            let store: Arc<dyn Store> = harness.store.clone();
            let settlements: Vec<_> = claims.iter().map(success).collect();
            tokio::spawn(async move { store.settle_and_claim(&settlements, None).await })
        };
        let (first, second) = (end(first), end(second));
        let mut released = Vec::new();
        for turn in [first, second] {
            let turn = turn.await.unwrap().unwrap();
            assert_eq!(turn.settled, vec![Settled::Applied; TOGETHER]);
            released.extend(turn.followed.iter().map(|followed| followed.id));
        }
        released.sort_unstable();
        assert_eq!(released, joins, "each is released by one of its parents, and by one alone");
        let found = harness.store.find(&joins).await.unwrap();
        let stands: BTreeSet<_> = found.iter().map(|job| (job.state, job.version, job.waits_for)).collect();
        assert_eq!(stands, BTreeSet::from([(Pending, 1, 0)]));
        for claim in claims(&harness, &joins).await {
            harness.succeed(&claim).await;
        }
    }
}

pub(crate) async fn workflows_are_listed_newest_first_page_by_page(harness: Harness) {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(Plan::chain(3).submit(&harness).await[0]);
    }
    harness.submit(work()).await;
    all.reverse();
    let first = harness.store.workflows(None, 2).await.unwrap();
    let second = harness.store.workflows(first.next, 3).await.unwrap();
    assert_eq!((first.items.as_slice(), second.items.as_slice()), (&all[..2], &all[2..]));
    assert_eq!(second.next, None);
    assert_refused(harness.store.workflows(None, 0).await, &ErrorKind::Invalid);
}

pub(crate) async fn children_are_listed_by_their_parent(harness: Harness) {
    let parent = new_id();
    let children: Vec<JobId> =
        harness.submit_each((0..5).map(|_| NewJob { parent: Some(parent), ..work() }).collect()).await;
    harness.submit(work()).await;
    let filter = ratchet_core::page::JobFilter { parent: Some(parent), ..Default::default() };
    let first = harness.store.list(&filter, None, 3).await.unwrap();
    let second = harness.store.list(&filter, first.next, 3).await.unwrap();
    let listed: Vec<JobId> = first.items.iter().chain(&second.items).map(|job| job.id).collect();
    assert_eq!(listed, children.iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(second.next, None);
    assert_eq!(first.items[0].parent, Some(parent));
    let running = ratchet_core::page::JobFilter { states: vec![Running], ..filter };
    harness.claim_one().await;
    assert_eq!(harness.store.list(&running, None, 10).await.unwrap().items.len(), 1);
}
