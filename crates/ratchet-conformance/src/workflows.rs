//! Jobs that hang on each other: releases, cascades, joins, branches, revivals.

use std::sync::Arc;

use ratchet_core::error::ErrorKind;
use ratchet_core::flow::{Condition, Edge, EdgeState, Join, Operator, ResultTest, WorkflowState};
use ratchet_core::store::{SubmitUnit, Submitted};
use ratchet_core::{
    Claim, Due, Flow, FollowedBy, JobId, JobState, JobType, JsonText, NewJob, Settled, StepName, Store,
};
use serde_json::json as value;

use crate::bench::{
    Bench, KIND, assert_about, assert_refused, business_key, failure, ids, json, mins, new_id, spec, success,
    success_with, work, work_once, work_with_key,
};

/// A workflow to be.
struct Plan {
    jobs: Vec<NewJob>,
    edges: Vec<Edge>,
}

impl Plan {
    /// So many jobs without edges; the first is the workflow's id.
    fn of(count: usize) -> Self {
        Self::from((0..count).map(|_| work()).collect())
    }

    fn from(mut jobs: Vec<NewJob>) -> Self {
        let workflow = jobs[0].id;
        for job in &mut jobs {
            job.workflow = Some(workflow);
        }
        Self { jobs, edges: Vec::new() }
    }

    fn edge(mut self, parent: usize, child: usize, condition: Condition) -> Self {
        let order = u32::try_from(self.edges.len()).unwrap();
        let edge = Edge::new(self.jobs[0].id, self.jobs[parent].id, self.jobs[child].id, condition);
        self.edges.push(Edge { order, ..edge });
        self
    }

    /// A chain of so many steps.
    fn chain(count: usize) -> Self {
        (1..count).fold(Self::of(count), |plan, child| plan.edge(child - 1, child, Condition::Success))
    }

    /// Two parents and the job that waits for both.
    fn join(join: Join) -> Self {
        let mut plan = Self::of(3);
        if join == Join::Any {
            plan.jobs[2].flow = Flow::JOIN_ANY;
        }
        plan.edge(0, 2, Condition::Success).edge(1, 2, Condition::Success)
    }

    fn unit(self) -> SubmitUnit {
        SubmitUnit::workflow(self.jobs, self.edges).expect("the plan is sound")
    }

    async fn submit(self, bench: &Bench) -> Vec<JobId> {
        let ids: Vec<JobId> = self.jobs.iter().map(|job| job.id).collect();
        let outcome = bench.store.submit(&[self.unit()]).await.unwrap().remove(0).expect("it is not refused");
        assert_eq!(outcome, ids.iter().map(|id| Submitted::Created(*id)).collect::<Vec<_>>());
        ids
    }
}

async fn states(bench: &Bench, ids: &[JobId]) -> Vec<JobState> {
    bench.store.find(ids).await.unwrap().iter().map(|job| job.state).collect()
}

/// Claims what can be claimed, which must be these.
async fn claims(bench: &Bench, expected: &[JobId]) -> Vec<Claim> {
    let claimed = bench.claim_all().await;
    let mut found = ids(&claimed);
    found.sort_unstable();
    assert_eq!(found, expected, "these can be claimed");
    claimed
}

async fn succeed_with(bench: &Bench, claim: &Claim, result: &serde_json::Value) {
    assert_eq!(bench.settle(success_with(claim, Some(json(result)))).await, Settled::Applied);
}

fn test(pointer: &str, operator: Operator, value: impl Into<serde_json::Value>) -> Condition {
    Condition::Result(ResultTest::new(pointer, operator, value).unwrap())
}

use JobState::{Canceled, Failed, Pending, Running, Succeeded, Waiting};

pub(crate) async fn a_workflow_comes_back_as_it_was_given(bench: Bench) {
    let mut plan = Plan::of(3).edge(0, 1, test("/n", Operator::OneOf, value!([1, "ü"]))).edge(0, 2, Condition::Failure);
    plan.jobs[1].step = Some(StepName::new("größer").unwrap());
    plan.jobs[1].job_type = JobType::WorkflowBranch;
    plan.edges[0].description = Some("when it is large".to_owned());
    plan.edges[0].priority = -7;
    plan.edges[0].exclusive = true;
    let edges = plan.edges.clone();
    let given = plan.submit(&bench).await;
    let workflow = bench.store.workflow(given[0]).await.unwrap().expect("it is there");
    assert_eq!(workflow.edges, edges);
    let steps: Vec<_> = workflow.steps.iter().map(|step| step.id).collect();
    assert_eq!(steps, given);
    assert_eq!(workflow.steps[1].step.as_ref().map(StepName::as_str), Some("größer"));
    assert_eq!(workflow.steps[1].job_type, JobType::WorkflowBranch);
    assert_eq!(workflow.state(), WorkflowState::Running);
    let job = bench.job(given[1]).await;
    assert_eq!((job.workflow, job.waits_for, job.state), (Some(given[0]), 1, Waiting));
    assert!(job.flow.has(Flow::INPUTS) && !job.flow.has(Flow::DEPENDANTS));
    assert_eq!(bench.store.edges_from(&[given[0]]).await.unwrap(), edges);
    assert_eq!(bench.store.edges_from(&[given[1]]).await.unwrap(), []);
    assert_eq!(bench.store.workflow(new_id()).await.unwrap(), None);
}

pub(crate) async fn the_steps_of_a_chain_run_one_after_the_other(bench: Bench) {
    let steps = Plan::chain(3).submit(&bench).await;
    for (place, step) in steps.iter().enumerate() {
        let claimed = claims(&bench, &[*step]).await;
        let later = vec![Waiting; steps.len() - place - 1];
        assert_eq!(states(&bench, &steps[place + 1..]).await, later, "what comes later waits");
        let turn = bench.turn(&[success(&claimed[0])], None).await;
        let next: Vec<_> = turn.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
        let expected = steps.get(place + 1).map(|next| (*next, FollowedBy::Released));
        assert_eq!(next, expected.into_iter().collect::<Vec<_>>());
    }
    let workflow = bench.store.workflow(steps[0]).await.unwrap().unwrap();
    assert_eq!(workflow.state(), WorkflowState::Succeeded);
    assert!(workflow.edges.iter().all(|edge| edge.state == EdgeState::Held));
}

pub(crate) async fn a_settlement_and_the_claim_of_what_it_releases_are_one_turn(bench: Bench) {
    let steps = Plan::chain(2).submit(&bench).await;
    let claimed = claims(&bench, &steps[..1]).await;
    let turn = bench.turn(&[success(&claimed[0])], Some(&bench.request())).await;
    assert_eq!(ids(&turn.claimed), steps[1..], "what was released is claimed at once");
}

pub(crate) async fn a_step_that_goes_back_releases_nothing(bench: Bench) {
    let steps = Plan::chain(2).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.defer(&first, std::time::Duration::ZERO).await;
    let again = bench.claim_one().await;
    bench.reschedule(&again, std::time::Duration::ZERO).await;
    let third = bench.claim_one().await;
    bench.rescue(&third).await;
    assert_eq!(states(&bench, &steps).await, [Pending, Waiting]);
}

pub(crate) async fn the_failure_of_a_step_cancels_all_that_follow(bench: Bench) {
    let steps = Plan::chain(4).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    let second = bench.claim_one().await;
    let turn = bench.turn(&[failure(&second, "boom")], None).await;
    assert_eq!(states(&bench, &steps).await, [Succeeded, Failed, Canceled, Canceled]);
    for step in &steps[2..] {
        let job = bench.job(*step).await;
        assert_eq!(job.canceled_because, Some(steps[1]), "it knows why");
        assert_eq!(job.version, 1, "one transition");
        assert!(job.terminated_at.is_some() && bench.attempts(*step).await.is_empty());
    }
    let told: Vec<_> = turn.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
    let canceled = |id| (id, FollowedBy::Canceled { because: steps[1] });
    assert_eq!(told, [canceled(steps[2]), canceled(steps[3])]);
    assert_eq!(bench.store.workflow(steps[0]).await.unwrap().unwrap().state(), WorkflowState::Failed);
}

pub(crate) async fn the_cancellation_of_a_step_cancels_all_that_follow(bench: Bench) {
    let steps = Plan::chain(4).submit(&bench).await;
    let done = bench.store.cancel(steps[1]).await.unwrap().expect("a waiting job can be cancelled");
    assert_eq!(states(&bench, &steps).await, [Pending, Canceled, Canceled, Canceled]);
    assert_eq!(done.followed.iter().map(|followed| followed.id).collect::<Vec<_>>(), steps[2..]);
    assert_eq!(bench.job(steps[1]).await.canceled_because, None, "a person did");
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    assert_eq!(bench.claim_all().await, [], "nothing comes back by itself");
}

pub(crate) async fn a_running_step_that_is_cancelled_takes_its_followers_along(bench: Bench) {
    let steps = Plan::chain(2).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.store.cancel(steps[0]).await.unwrap().unwrap();
    assert_eq!(bench.settle(success(&first)).await, Settled::Conflict);
    assert_eq!(states(&bench, &steps).await, [Canceled, Canceled]);
}

pub(crate) async fn a_cancelled_step_frees_its_business_key(bench: Bench) {
    let plan = Plan::from(vec![work(), work_with_key("next")]).edge(0, 1, Condition::Success);
    let steps = plan.submit(&bench).await;
    assert_eq!(bench.holder("next").await, Some(steps[1]), "a waiting step holds its key");
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    assert_eq!(bench.holder("next").await, None);
}

pub(crate) async fn a_join_waits_for_all_its_parents(bench: Bench) {
    let steps = Plan::join(Join::All).submit(&bench).await;
    let parents = claims(&bench, &steps[..2]).await;
    bench.succeed(&parents[0]).await;
    assert_eq!(bench.job(steps[2]).await.waits_for, 1);
    assert_eq!(bench.claim_all().await, [], "one is not enough");
    bench.succeed(&parents[1]).await;
    claims(&bench, &steps[2..]).await;
}

pub(crate) async fn a_join_whose_parents_end_in_one_turn_is_released_once(bench: Bench) {
    let steps = Plan::join(Join::All).submit(&bench).await;
    let parents = claims(&bench, &steps[..2]).await;
    let turn = bench.turn(&[success(&parents[0]), success(&parents[1])], None).await;
    assert_eq!(turn.settled, [Settled::Applied, Settled::Applied]);
    let join = bench.job(steps[2]).await;
    assert_eq!((join.state, join.version, join.waits_for), (Pending, 1, 0));
}

pub(crate) async fn the_failure_of_one_parent_cancels_a_join(bench: Bench) {
    let steps = Plan::join(Join::All).submit(&bench).await;
    let parents = claims(&bench, &steps[..2]).await;
    bench.fail(&parents[0], "boom").await;
    assert_eq!(bench.state(steps[2]).await, Canceled, "it need not wait for the other");
    bench.succeed(&parents[1]).await;
    assert_eq!(states(&bench, &steps).await, [Failed, Succeeded, Canceled]);
}

pub(crate) async fn a_join_of_any_runs_after_all_have_ended_if_one_edge_held(bench: Bench) {
    for (first_fails, second_fails, expected) in
        [(true, false, Pending), (false, true, Pending), (true, true, Canceled)]
    {
        let steps = Plan::join(Join::Any).submit(&bench).await;
        let parents = claims(&bench, &steps[..2]).await;
        for (fails, claim) in [(first_fails, &parents[0]), (second_fails, &parents[1])] {
            assert_eq!(bench.state(steps[2]).await, Waiting, "it waits for all");
            if fails { bench.fail(claim, "boom").await } else { bench.succeed(claim).await }
        }
        assert_eq!(bench.state(steps[2]).await, expected, "after {first_fails} and {second_fails}");
        bench.store.cancel(steps[2]).await.unwrap();
    }
}

pub(crate) async fn branches_follow_success_failure_and_the_end(bench: Bench) {
    let plan = || {
        let plan = Plan::of(4).edge(0, 1, Condition::Success).edge(0, 2, Condition::Failure);
        plan.edge(0, 3, Condition::Finished)
    };
    let won = plan().submit(&bench).await;
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    assert_eq!(states(&bench, &won).await, [Succeeded, Pending, Canceled, Pending]);
    bench.claim_all().await;
    let lost = plan().submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    assert_eq!(states(&bench, &lost).await, [Failed, Canceled, Pending, Pending]);
    bench.claim_all().await;
    let canceled = plan().edge(0, 3, Condition::Finished);
    let canceled = Plan { edges: canceled.edges[..3].to_vec(), ..canceled }.submit(&bench).await;
    bench.store.cancel(canceled[0]).await.unwrap();
    assert_eq!(states(&bench, &canceled).await, [Canceled; 4]);
}

pub(crate) async fn branches_follow_the_value_of_a_result(bench: Bench) {
    let plan = Plan::of(4)
        .edge(0, 1, test("/total", Operator::AtLeast, 100))
        .edge(0, 2, test("/total", Operator::LessThan, 100))
        .edge(0, 3, test("/who", Operator::Is, "müller"));
    let steps = plan.submit(&bench).await;
    let first = bench.claim_one().await;
    succeed_with(&bench, &first, &value!({ "total": 250, "who": "müller" })).await;
    assert_eq!(states(&bench, &steps).await, [Succeeded, Pending, Canceled, Pending]);
}

pub(crate) async fn of_exclusive_branches_one_is_taken(bench: Bench) {
    let mut plan = Plan::of(5)
        .edge(0, 1, test("/n", Operator::MoreThan, 10))
        .edge(0, 2, test("/n", Operator::MoreThan, 1))
        .edge(0, 3, test("/n", Operator::MoreThan, 2))
        .edge(0, 4, Condition::Success);
    for (edge, priority) in plan.edges.iter_mut().zip([0, 5, 5, 9]) {
        edge.priority = priority;
        edge.exclusive = true;
    }
    let steps = plan.submit(&bench).await;
    let first = bench.claim_one().await;
    succeed_with(&bench, &first, &value!({ "n": 5 })).await;
    let expected = [Succeeded, Canceled, Pending, Canceled, Canceled];
    assert_eq!(states(&bench, &steps).await, expected, "the lowest priority that holds, then the first defined");
}

pub(crate) async fn a_condition_that_cannot_be_told_fails_its_step(bench: Bench) {
    let mut plan = Plan::of(4).edge(0, 1, test("/total", Operator::MoreThan, 1)).edge(1, 2, Condition::Success).edge(
        1,
        3,
        Condition::Failure,
    );
    plan.jobs[1].on_failure = Some(spec("mourn"));
    let steps = plan.submit(&bench).await;
    let first = bench.claim_one().await;
    succeed_with(&bench, &first, &value!({ "sum": 1 })).await;
    assert_eq!(states(&bench, &steps).await, [Succeeded, Failed, Canceled, Pending]);
    let error = bench.job(steps[1]).await.last_error.unwrap();
    assert!(error.contains("the result has nothing at \"/total\""), "{error}");
    assert_eq!(bench.alerts(steps[1]).await, 1, "a person should look");
    let request = crate::bench::request(bench.node, vec![crate::bench::pool("default", &["mourn"])]);
    let callback = bench.claim(&request).await;
    let origin = callback[0].job.origin.clone().expect("it knows what it is about");
    assert_eq!((origin.job_id, origin.error), (steps[1], Some(error)));
}

pub(crate) async fn a_claim_carries_what_came_of_the_jobs_before(bench: Bench) {
    let mut plan = Plan::join(Join::All);
    plan.jobs[0].step = Some(StepName::new("left").unwrap());
    let steps = plan.submit(&bench).await;
    let parents = claims(&bench, &steps[..2]).await;
    let of = |id| parents.iter().find(|claim| claim.job.id == id).unwrap();
    assert_eq!(of(steps[0]).inputs, []);
    succeed_with(&bench, of(steps[1]), &value!("right")).await;
    succeed_with(&bench, of(steps[0]), &value!({ "side": "left" })).await;
    let claimed = claims(&bench, &steps[2..]).await;
    let inputs: Vec<_> = claimed[0].inputs.iter().map(|input| (input.job_id, input.result.clone())).collect();
    let expected = [(steps[0], value!({ "side": "left" })), (steps[1], value!("right"))];
    let expected: Vec<_> = expected.into_iter().map(|(id, result)| (id, Some(json(&result)))).collect();
    assert!(inputs.iter().zip(&expected).all(|(a, b)| a.0 == b.0 && same(a.1.as_ref(), b.1.as_ref())), "{inputs:?}");
    assert_eq!(inputs.len(), 2);
    assert_eq!(claimed[0].inputs[0].step.as_ref().map(StepName::as_str), Some("left"));
    assert_eq!((claimed[0].inputs[0].kind.as_str(), claimed[0].inputs[0].state), (KIND, Succeeded));
}

/// JSON is kept by value.
fn same(a: Option<&JsonText>, b: Option<&JsonText>) -> bool {
    let parsed = |text: &JsonText| serde_json::from_str::<serde_json::Value>(text.as_str()).unwrap();
    a.map(parsed) == b.map(parsed)
}

pub(crate) async fn a_branch_for_a_failure_knows_the_error(bench: Bench) {
    let steps = Plan::of(2).edge(0, 1, Condition::Failure).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    let branch = claims(&bench, &steps[1..]).await;
    let input = &branch[0].inputs[0];
    assert_eq!((input.state, input.error.as_deref(), &input.result), (Failed, Some("boom"), &None));
}

pub(crate) async fn a_retry_revives_what_the_failure_had_cancelled(bench: Bench) {
    let plan = Plan::from(vec![work(), work_with_key("second"), work()]);
    let steps = plan.edge(0, 1, Condition::Success).edge(1, 2, Condition::Success).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    let retried = bench.store.retry(steps[0]).await.unwrap().expect("a failed step can be retried");
    let revived: Vec<_> = retried.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
    assert_eq!(revived, [(steps[1], FollowedBy::Revived), (steps[2], FollowedBy::Revived)]);
    let second = bench.job(steps[1]).await;
    assert_eq!((second.state, second.waits_for, second.version), (Waiting, 1, 2));
    assert_eq!((second.canceled_because, second.terminated_at), (None, None));
    assert_eq!(bench.holder("second").await, Some(steps[1]), "it has its key again");
    for step in &steps {
        let claimed = claims(&bench, &[*step]).await;
        bench.succeed(&claimed[0]).await;
    }
    assert_eq!(states(&bench, &steps).await, [Succeeded; 3]);
}

pub(crate) async fn a_retry_is_refused_while_another_job_holds_a_key_of_what_it_would_revive(bench: Bench) {
    let plan = Plan::from(vec![work_with_key("first"), work_with_key("second")]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    let holder = bench.submit(work_with_key("second")).await;
    let before = bench.store.find(&steps).await.unwrap();
    assert_refused(
        bench.store.retry(steps[0]).await,
        &ErrorKind::Duplicate { business_key: business_key("second"), holder },
    );
    assert_eq!(bench.store.find(&steps).await.unwrap(), before, "nothing has changed");
    assert_eq!(bench.holder("first").await, None);
}

pub(crate) async fn a_join_comes_back_when_the_last_of_its_failed_parents_is_retried(bench: Bench) {
    let steps = Plan::join(Join::All).submit(&bench).await;
    let parents = claims(&bench, &steps[..2]).await;
    for parent in &parents {
        bench.fail(parent, "boom").await;
    }
    bench.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(bench.state(steps[2]).await, Canceled, "the other parent still forbids it");
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    bench.store.retry(steps[1]).await.unwrap().unwrap();
    let join = bench.job(steps[2]).await;
    assert_eq!((join.state, join.waits_for), (Waiting, 1), "the first has already ended well");
    let second = bench.claim_one().await;
    bench.succeed(&second).await;
    claims(&bench, &steps[2..]).await;
}

pub(crate) async fn what_a_person_cancelled_is_not_revived(bench: Bench) {
    let steps = Plan::chain(3).submit(&bench).await;
    bench.store.cancel(steps[2]).await.unwrap().unwrap();
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    bench.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(states(&bench, &steps).await, [Pending, Waiting, Canceled]);
}

pub(crate) async fn a_branch_that_has_run_does_not_run_again(bench: Bench) {
    let plan = Plan::of(3).edge(0, 1, Condition::Failure).edge(0, 2, Condition::Success);
    let steps = plan.submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    let branch = claims(&bench, &steps[1..2]).await;
    bench.succeed(&branch[0]).await;
    bench.store.retry(steps[0]).await.unwrap().unwrap();
    let again = bench.claim_one().await;
    bench.fail(&again, "boom").await;
    assert_eq!(states(&bench, &steps).await, [Failed, Succeeded, Canceled]);
    assert_eq!(bench.claim_all().await, []);
}

pub(crate) async fn a_steps_delay_begins_with_its_release(bench: Bench) {
    let mut plan = Plan::chain(2);
    plan.jobs[1].due = Due::After(mins(10));
    let steps = plan.submit(&bench).await;
    bench.advance(mins(60));
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    let second = bench.job(steps[1]).await;
    assert_eq!(second.state, Pending);
    assert_about(second.scheduled_time, ratchet_core::clock::later(bench.now().await, mins(10)));
    assert_eq!(bench.claim_all().await, []);
    bench.advance(mins(11));
    claims(&bench, &steps[1..]).await;
}

pub(crate) async fn a_released_step_counts_as_waiting_since_its_release(bench: Bench) {
    let steps = Plan::chain(2).submit(&bench).await;
    bench.advance(mins(60));
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    assert_about(bench.job(steps[1]).await.scheduled_time, bench.now().await);
}

pub(crate) async fn a_workflow_is_stored_as_a_whole_or_not_at_all(bench: Bench) {
    let holder = bench.submit(work_with_key("taken")).await;
    let plan = Plan::from(vec![work(), work_with_key("taken")]).edge(0, 1, Condition::Success);
    let first = plan.jobs[0].id;
    let outcome = bench.store.submit(&[plan.unit()]).await.unwrap().remove(0);
    assert_refused(outcome, &ErrorKind::Duplicate { business_key: business_key("taken"), holder });
    assert!(!bench.exists(first).await);
    assert_eq!(bench.store.workflow(first).await.unwrap(), None, "no edge was left behind");
}

pub(crate) async fn a_workflow_submitted_again_stands_for_the_first(bench: Bench) {
    let plan = || Plan::from(vec![work_once("order-7"), work()]).edge(0, 1, Condition::Success);
    let first = plan().submit(&bench).await;
    let again = plan();
    let lost: Vec<JobId> = again.jobs.iter().map(|job| job.id).collect();
    let outcome = bench.store.submit(&[again.unit()]).await.unwrap().remove(0).unwrap();
    assert_eq!(outcome, [Submitted::Existing(first[0]); 2]);
    assert_eq!(bench.store.find(&lost).await.unwrap(), []);
    assert_eq!(bench.store.edges_from(&lost).await.unwrap(), []);
    // The very same unit once more, as after a lost reply.
    let unit = Plan::chain(2).unit();
    for _ in 0..2 {
        let outcome = bench.store.submit(std::slice::from_ref(&unit)).await.unwrap().remove(0).unwrap();
        assert_eq!(outcome, [Submitted::Created(unit.jobs[0].id), Submitted::Created(unit.jobs[1].id)]);
    }
}

pub(crate) async fn a_job_that_a_live_one_needs_is_not_deleted(bench: Bench) {
    let steps = Plan::chain(2).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    assert_refused(bench.store.delete(steps[0]).await, &ErrorKind::Conflict);
    let second = bench.claim_one().await;
    assert_eq!(second.inputs.len(), 1, "its input is still there");
    bench.succeed(&second).await;
    assert!(bench.store.delete(steps[0]).await.unwrap());
    assert_eq!(bench.store.edges_from(&steps).await.unwrap(), [], "its edges went with it");
    assert!(bench.store.delete(steps[1]).await.unwrap());
}

pub(crate) async fn a_stale_settlement_releases_nothing(bench: Bench) {
    let steps = Plan::chain(2).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.rescue(&first).await;
    let turn = bench.turn(&[success(&first)], None).await;
    assert_eq!(turn.settled, [Settled::Conflict]);
    assert_eq!(turn.followed, []);
    assert_eq!(states(&bench, &steps).await, [Pending, Waiting]);
}

pub(crate) async fn a_replaced_step_takes_its_followers_along(bench: Bench) {
    let steps = Plan::chain(2).submit(&bench).await;
    bench.store.replace(steps[0], &work()).await.unwrap();
    assert_eq!(states(&bench, &steps).await, [Canceled, Canceled]);
}

pub(crate) async fn a_thousand_steps_are_stored_at_once_and_cancelled_with_their_root(bench: Bench) {
    // A chain of a hundred, whose end fans out to nine hundred.
    let mut plan = Plan::chain(100);
    let workflow = plan.jobs[0].id;
    plan.jobs.extend((0..900).map(|_| NewJob { workflow: Some(workflow), ..work() }));
    let plan = (100..1_000).fold(plan, |plan, child| plan.edge(99, child, Condition::Success));
    let steps = plan.submit(&bench).await;
    let done = bench.store.cancel(steps[0]).await.unwrap().unwrap();
    assert_eq!(done.followed.len(), 999);
    let counts = bench.store.workflow(steps[0]).await.unwrap().unwrap().counts();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(Canceled, 1_000)]);
}

pub(crate) async fn two_parents_that_end_at_the_same_time_release_a_join_once(bench: Bench) {
    const ROUNDS: usize = 30;
    for _ in 0..ROUNDS {
        let steps = Plan::join(Join::All).submit(&bench).await;
        let parents = claims(&bench, &steps[..2]).await;
        let ends = parents.into_iter().map(|claim| {
            let store: Arc<dyn Store> = bench.store.clone();
            tokio::spawn(async move { store.turn(&[success(&claim)], None).await })
        });
        let ends: Vec<_> = ends.collect();
        for end in ends {
            assert_eq!(end.await.unwrap().unwrap().settled, [Settled::Applied]);
        }
        let join = bench.job(steps[2]).await;
        assert_eq!((join.state, join.version, join.waits_for), (Pending, 1, 0), "released once");
        let last = claims(&bench, &steps[2..]).await;
        bench.succeed(&last[0]).await;
    }
}

pub(crate) async fn an_end_and_a_retry_at_the_same_time_leave_no_join_stuck(bench: Bench) {
    const ROUNDS: usize = 30;
    for _ in 0..ROUNDS {
        let steps = Plan::join(Join::All).submit(&bench).await;
        let parents = claims(&bench, &steps[..2]).await;
        bench.fail(&parents[0], "boom").await;
        let (retrying, settling) = (bench.store.clone(), bench.store.clone());
        let (first, end) = (steps[0], success(&parents[1]));
        let retry = tokio::spawn(async move { retrying.retry(first).await });
        let settle = tokio::spawn(async move { settling.turn(&[end], None).await });
        retry.await.unwrap().unwrap().expect("it had failed");
        assert_eq!(settle.await.unwrap().unwrap().settled, [Settled::Applied]);
        let join = bench.job(steps[2]).await;
        assert_eq!((join.state, join.waits_for), (Waiting, 1), "it waits for what was retried, and for nothing else");
        let again = claims(&bench, &steps[..1]).await;
        bench.succeed(&again[0]).await;
        let last = claims(&bench, &steps[2..]).await;
        bench.succeed(&last[0]).await;
    }
}

pub(crate) async fn children_are_listed_by_their_parent(bench: Bench) {
    let parent = new_id();
    let children: Vec<JobId> =
        bench.submit_each((0..5).map(|_| NewJob { parent: Some(parent), ..work() }).collect()).await;
    bench.submit(work()).await;
    let filter = ratchet_core::page::JobFilter { parent: Some(parent), ..Default::default() };
    let first = bench.store.list(&filter, None, 3).await.unwrap();
    let second = bench.store.list(&filter, first.next, 3).await.unwrap();
    let listed: Vec<JobId> = first.items.iter().chain(&second.items).map(|job| job.id).collect();
    assert_eq!(listed, children.iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(second.next, None);
    assert_eq!(first.items[0].parent, Some(parent));
    let running = ratchet_core::page::JobFilter { states: vec![Running], ..filter };
    bench.claim_one().await;
    assert_eq!(bench.store.list(&running, None, 10).await.unwrap().items.len(), 1);
}
