//! Branches, their conditions, and what a step learns of the ones before.

use ratchet_core::JobState::{Canceled, Failed, Pending, Succeeded};
use ratchet_core::flow::{Condition, Join, Operator};
use ratchet_core::{JsonText, StepName};
use serde_json::json as value;

use crate::harness::{Harness, KIND, json, pool, request, spec};
use crate::workflows::{Plan, claims, states, succeed_with, test};

pub(crate) async fn branches_follow_success_failure_and_the_end(harness: Harness) {
    let plan = || {
        let plan = Plan::of(4).edge(0, 1, Condition::Success).edge(0, 2, Condition::Failure);
        plan.edge(0, 3, Condition::Finished)
    };
    let won = plan().submit(&harness).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    assert_eq!(states(&harness, &won).await, [Succeeded, Pending, Canceled, Pending]);
    harness.claim_all().await;
    let lost = plan().submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    assert_eq!(states(&harness, &lost).await, [Failed, Canceled, Pending, Pending]);
    harness.claim_all().await;
    let canceled = plan().edge(0, 3, Condition::Finished);
    let canceled = Plan { edges: canceled.edges[..3].to_vec(), ..canceled }.submit(&harness).await;
    harness.store.cancel(canceled[0]).await.unwrap();
    assert_eq!(states(&harness, &canceled).await, [Canceled; 4]);
}

pub(crate) async fn branches_follow_the_value_of_a_result(harness: Harness) {
    let plan = Plan::of(4)
        .edge(0, 1, test("/total", Operator::AtLeast, 100))
        .edge(0, 2, test("/total", Operator::LessThan, 100))
        .edge(0, 3, test("/who", Operator::Is, "müller"));
    let steps = plan.submit(&harness).await;
    let first = harness.claim_one().await;
    succeed_with(&harness, &first, &value!({ "total": 250, "who": "müller" })).await;
    assert_eq!(states(&harness, &steps).await, [Succeeded, Pending, Canceled, Pending]);
}

pub(crate) async fn of_exclusive_branches_one_is_taken(harness: Harness) {
    let mut plan = Plan::of(5)
        .edge(0, 1, test("/n", Operator::MoreThan, 10))
        .edge(0, 2, test("/n", Operator::MoreThan, 1))
        .edge(0, 3, test("/n", Operator::MoreThan, 2))
        .edge(0, 4, Condition::Success);
    for (edge, priority) in plan.edges.iter_mut().zip([0, 5, 5, 9]) {
        edge.priority = priority;
        edge.exclusive = true;
    }
    let steps = plan.submit(&harness).await;
    let first = harness.claim_one().await;
    succeed_with(&harness, &first, &value!({ "n": 5 })).await;
    let expected = [Succeeded, Canceled, Pending, Canceled, Canceled];
    assert_eq!(states(&harness, &steps).await, expected, "the lowest priority that holds, then the first defined");
}

pub(crate) async fn a_condition_that_cannot_be_told_fails_its_step(harness: Harness) {
    let mut plan = Plan::of(4).edge(0, 1, test("/total", Operator::MoreThan, 1)).edge(1, 2, Condition::Success).edge(
        1,
        3,
        Condition::Failure,
    );
    plan.jobs[1].on_failure = Some(spec("mourn"));
    let steps = plan.submit(&harness).await;
    let first = harness.claim_one().await;
    succeed_with(&harness, &first, &value!({ "sum": 1 })).await;
    assert_eq!(states(&harness, &steps).await, [Succeeded, Failed, Canceled, Pending]);
    let error = harness.job(steps[1]).await.last_error.unwrap();
    assert!(error.contains("the result has nothing at \"/total\""), "{error}");
    assert_eq!(harness.alerts(steps[1]).await, 1, "a person should look");
    let request = request(harness.node, vec![pool("default", &["mourn"])]);
    let callback = harness.claim(&request).await;
    let origin = callback[0].job.origin.clone().expect("it knows what it is about");
    assert_eq!((origin.job_id, origin.error), (steps[1], Some(error)));
}

pub(crate) async fn a_claim_carries_what_came_of_the_jobs_before(harness: Harness) {
    let mut plan = Plan::join(Join::All);
    plan.jobs[0].step = Some(StepName::new("left").unwrap());
    let steps = plan.submit(&harness).await;
    let parents = claims(&harness, &steps[..2]).await;
    let of = |id| parents.iter().find(|claim| claim.job.id == id).unwrap();
    assert_eq!(of(steps[0]).inputs, []);
    succeed_with(&harness, of(steps[1]), &value!("right")).await;
    succeed_with(&harness, of(steps[0]), &value!({ "side": "left" })).await;
    let claimed = claims(&harness, &steps[2..]).await;
    let inputs: Vec<_> = claimed[0].inputs.iter().map(|input| (input.job_id, input.result.clone())).collect();
    let expected = [(steps[0], value!({ "side": "left" })), (steps[1], value!("right"))];
    let expected: Vec<_> = expected.into_iter().map(|(id, result)| (id, Some(json(&result)))).collect();
    assert!(inputs.iter().zip(&expected).all(|(a, b)| a.0 == b.0 && same(a.1.as_ref(), b.1.as_ref())), "{inputs:?}");
    assert_eq!(inputs.len(), 2);
    assert_eq!(claimed[0].inputs[0].step.as_ref().map(StepName::as_str), Some("left"));
    assert_eq!((claimed[0].inputs[0].kind.as_str(), claimed[0].inputs[0].state), (KIND, Succeeded));
}

pub(crate) async fn a_parent_that_is_live_again_is_no_input(harness: Harness) {
    let plan = Plan::of(3).edge(0, 2, Condition::Finished).edge(1, 2, Condition::Finished);
    let steps = plan.submit(&harness).await;
    for parent in claims(&harness, &steps[..2]).await {
        harness.fail(&parent, "boom").await;
    }
    // It has begun, and so goes on.
    let begun = claims(&harness, &steps[2..]).await;
    harness.reschedule(&begun[0], std::time::Duration::ZERO).await;
    harness.store.retry(steps[0]).await.unwrap().unwrap();
    let claimed = claims(&harness, &[steps[0], steps[2]]).await;
    let last = claimed.iter().find(|claim| claim.job.id == steps[2]).unwrap();
    let inputs: Vec<_> = last.inputs.iter().map(|input| input.job_id).collect();
    assert_eq!(inputs, steps[1..2], "what the first comes to is open again");
}

/// JSON is kept by value.
fn same(a: Option<&JsonText>, b: Option<&JsonText>) -> bool {
    let parsed = |text: &JsonText| serde_json::from_str::<serde_json::Value>(text.as_str()).unwrap();
    a.map(parsed) == b.map(parsed)
}

pub(crate) async fn a_branch_for_a_failure_knows_the_error(harness: Harness) {
    let steps = Plan::of(2).edge(0, 1, Condition::Failure).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    let branch = claims(&harness, &steps[1..]).await;
    let input = &branch[0].inputs[0];
    assert_eq!((input.state, input.error.as_deref(), &input.result), (Failed, Some("boom"), &None));
}

pub(crate) async fn a_branch_that_has_run_does_not_run_again(harness: Harness) {
    let plan = Plan::of(3).edge(0, 1, Condition::Failure).edge(0, 2, Condition::Success);
    let steps = plan.submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    let branch = claims(&harness, &steps[1..2]).await;
    harness.succeed(&branch[0]).await;
    harness.store.retry(steps[0]).await.unwrap().unwrap();
    let again = harness.claim_one().await;
    harness.fail(&again, "boom").await;
    assert_eq!(states(&harness, &steps).await, [Failed, Succeeded, Canceled]);
    assert_eq!(harness.claim_all().await, []);
}
