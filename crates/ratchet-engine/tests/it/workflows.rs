//! Chains, branches and workflows, from the builder to the end.

use std::time::Duration;

use ratchet_core::flow::{Join, WorkflowState};
use ratchet_core::{JobState, JobType};
use ratchet_engine::{
    Failure, IntoBranch as _, Job, JobContext, JobEventKind, JobExt, Prev, Ratchet, ResultCondition, SubmitError,
    conditions, result,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{IsEven, Play, Stage, event, memory, quick};

/// Returns what it is given, and what came of the steps before.
#[derive(Serialize, Deserialize)]
struct Tell(Value);

impl Job for Tell {
    const KIND: &'static str = "tell";
    type Output = Value;

    async fn run(self, ctx: JobContext) -> Result<Value, Failure> {
        let before: Vec<Value> = ctx
            .inputs()
            .iter()
            .map(|input| input.result.as_ref().map_or(json!(null), |result| result.decode().unwrap()))
            .collect();
        Ok(if before.is_empty() { self.0 } else { json!({ "own": self.0, "before": before }) })
    }
}

/// Adds one to the number before.
#[derive(Serialize, Deserialize)]
struct AddOne;

impl Job for AddOne {
    const KIND: &'static str = "add-one";
    type Output = u64;

    async fn run(self, ctx: JobContext) -> Result<u64, Failure> {
        let Prev(number): Prev<u64> = ratchet_engine::FromPrev::from_prev(&ctx)?;
        Ok(number + 1)
    }
}

#[derive(Serialize, Deserialize)]
struct Give(u64);

impl Job for Give {
    const KIND: &'static str = "give";
    type Output = u64;

    async fn run(self, _ctx: JobContext) -> Result<u64, Failure> {
        Ok(self.0)
    }
}

struct Breaks;

impl ResultCondition for Breaks {
    const KIND: &'static str = "ratchet.when.breaks";
    type Input = u64;

    fn holds(_number: &u64) -> Result<bool, Failure> {
        Err(Failure::do_not_retry("no idea", "a bug"))
    }
}

async fn engine() -> Ratchet {
    let node = quick(&Stage::default()).job::<Tell>().job::<AddOne>().job::<Give>().job::<Sum>();
    node.jobs(conditions![IsEven, Breaks]).store(memory()).start().await.unwrap()
}

fn kinds_and_states(graph: &ratchet_core::flow::Workflow) -> Vec<(&str, JobState)> {
    graph.steps.iter().map(|step| (step.kind.as_str(), step.state)).collect()
}

#[tokio::test]
async fn a_chain_hands_each_result_to_the_next_step() {
    let ratchet = engine().await;
    let first = ratchet.enqueue(Give(1)).then(AddOne).then(AddOne).submit().await.unwrap();
    assert_eq!(first.result().await.unwrap(), 1, "the handle is that of the first job, typed");
    let graph = ratchet.workflow_graph(first.id()).await.unwrap().unwrap();
    let last = ratchet.handle::<u64>(graph.steps[2].id);
    assert_eq!(last.result().await.unwrap(), 3);
    assert_eq!(graph.steps[2].job_type, JobType::ChainStep);
    assert_eq!(ratchet.dependants(first.id()).await.unwrap()[0].child, graph.steps[1].id);
}

#[tokio::test]
async fn a_result_of_another_type_fails_the_step_that_asks_for_it_and_says_so() {
    let ratchet = engine().await;
    let first = ratchet.enqueue(Tell(json!("text"))).then(AddOne).submit().await.unwrap();
    let graph = ratchet.workflow_graph(first.id()).await.unwrap().unwrap();
    let failed = ratchet.handle::<u64>(graph.steps[1].id).wait().await.unwrap();
    assert_eq!((failed.state, failed.attempts), (JobState::Failed, 1));
    let error = failed.last_error.unwrap();
    assert!(error.contains("cannot be read as the type that is asked for"), "{error}");
    let alone = ratchet.enqueue(AddOne).submit().await.unwrap().wait().await.unwrap();
    assert!(alone.last_error.unwrap().contains("but there is none"));
}

#[tokio::test]
async fn a_failed_step_cancels_the_rest_and_its_retry_goes_on_from_there() {
    let ratchet = engine().await;
    let mut events = ratchet.events();
    let first = ratchet
        .enqueue(Play::Return("one".into()))
        .then(Play::FailTimes(1).with(|step| step.max_retries(0)))
        .then(Play::Return("three".into()))
        .submit()
        .await
        .unwrap();
    let handle = ratchet.workflow_graph(first.id()).await.unwrap().unwrap();
    let [_, second, third] = handle.steps.iter().map(|step| step.id).collect::<Vec<_>>()[..] else { panic!() };
    let told = event(&mut events, |e| matches!(e.what, JobEventKind::CanceledBy { .. })).await;
    assert_eq!((told.job_id, &told.what), (third, &JobEventKind::CanceledBy { because: second }));
    // Its only attempt broke; the next life has none left either, but is not the first attempt any more.
    assert!(ratchet.retry(second).await.unwrap());
    event(&mut events, |e| e.job_id == third && e.what == JobEventKind::Revived).await;
    let again = ratchet.handle::<String>(second).wait().await.unwrap();
    assert_eq!(again.state, JobState::Failed, "attempts begin at one again");
    assert_eq!(ratchet.handle::<String>(third).wait().await.unwrap().state, JobState::Canceled);
}

#[tokio::test]
async fn branches_follow_results_and_functions_with_the_type_that_the_job_returns() {
    let ratchet = engine().await;
    let check = async |number: u64, even: JobState, large: JobState, failure: JobState| {
        let first = ratchet
            .enqueue(Give(number))
            .when(IsEven.describe("even numbers"), Tell(json!("even")))
            .when(result("").at_least(10), Tell(json!("large")))
            .then_on_failure(Tell(json!("failed")))
            .then_on_success(Tell(json!("always")))
            .submit()
            .await
            .unwrap();
        let handle = ratchet.workflow_handle(first.id()).await.unwrap().unwrap();
        let graph = handle.wait().await.unwrap();
        assert_eq!(graph.state(), WorkflowState::Succeeded);
        let states: Vec<JobState> =
            graph.steps.iter().filter(|step| step.kind.as_str() == "tell").map(|step| step.state).collect();
        assert_eq!(states, [even, large, failure, JobState::Succeeded], "{number}");
        let branch = graph.steps.iter().find(|step| step.kind.as_str() == "tell").unwrap();
        if even == JobState::Succeeded {
            let told: Value = ratchet.handle(branch.id).result().await.unwrap();
            assert_eq!(told["before"][0], json!(number), "the branch has the result that it hangs on");
        }
    };
    check(12, JobState::Succeeded, JobState::Succeeded, JobState::Canceled).await;
    check(3, JobState::Canceled, JobState::Canceled, JobState::Canceled).await;
}

#[tokio::test]
async fn of_exclusive_branches_the_first_that_holds_is_taken_functions_and_data_alike() {
    let ratchet = engine().await;
    let check = async |number: u64, expected: [JobState; 4]| {
        let first = ratchet
            .enqueue(Give(number))
            .when(result("").more_than(100).priority(5), Tell(json!("huge")))
            .when(IsEven.priority(1), Tell(json!("even")))
            .when(result("").more_than(1).priority(9), Tell(json!("more")))
            .then_on_failure(Tell(json!("failed")))
            .exclusive()
            .submit()
            .await
            .unwrap();
        let graph = ratchet.workflow_handle(first.id()).await.unwrap().unwrap().wait().await.unwrap();
        let states: Vec<JobState> =
            graph.steps.iter().filter(|step| step.kind.as_str() == "tell").map(|step| step.state).collect();
        assert_eq!(states, expected, "{number}: {:?}", kinds_and_states(&graph));
    };
    check(4, [JobState::Canceled, JobState::Succeeded, JobState::Canceled, JobState::Canceled]).await;
    check(3, [JobState::Canceled, JobState::Canceled, JobState::Succeeded, JobState::Canceled]).await;
    check(201, [JobState::Succeeded, JobState::Canceled, JobState::Canceled, JobState::Canceled]).await;
    check(1, [JobState::Canceled, JobState::Canceled, JobState::Canceled, JobState::Canceled]).await;
}

#[tokio::test]
async fn a_condition_that_breaks_is_in_the_dead_letter_queue_and_its_branch_is_canceled() {
    let ratchet = engine().await;
    let first = ratchet.enqueue(Give(1)).when(Breaks, Tell(json!("never"))).submit().await.unwrap();
    let graph = ratchet.workflow_handle(first.id()).await.unwrap().unwrap().wait().await.unwrap();
    assert_eq!(graph.state(), WorkflowState::Failed);
    let condition = graph.steps.iter().find(|step| step.job_type == JobType::Condition).unwrap();
    assert_eq!((condition.state, condition.error.as_deref()), (JobState::Failed, Some("Error: no idea")));
}

#[tokio::test]
async fn a_workflow_fans_out_and_in() {
    let ratchet = engine().await;
    let handle = ratchet
        .workflow()
        .step("start", Give(1))
        .step("left", Tell(json!("l")))
        .step("right", Tell(json!("r")).with(|step| step.delay(Duration::from_millis(20))))
        .step("end", Tell(json!("end")))
        .edge("start", "left")
        .edge("start", "right")
        .edge("left", "end")
        .edge("right", "end")
        .idempotency_key("flow-1")
        .submit()
        .await
        .unwrap();
    let end: Value = handle.step("end").unwrap().result().await.unwrap();
    let before = |own: &str| json!({ "own": own, "before": [1] });
    assert_eq!(end, json!({ "own": "end", "before": [before("l"), before("r")] }));
    assert_eq!(handle.wait().await.unwrap().state(), WorkflowState::Succeeded);
    let again = ratchet.workflow().step("start", Give(1)).step("x", Give(1)).edge("start", "x");
    let again = again.idempotency_key("flow-1").submit().await.unwrap();
    assert_eq!((again.id(), again.is_duplicate()), (handle.id(), true));
    assert_eq!(again.step::<Value>("end").unwrap().id(), handle.step::<Value>("end").unwrap().id());
}

#[tokio::test]
async fn a_join_of_any_runs_after_the_branch_that_was_taken() {
    let ratchet = engine().await;
    let handle = ratchet
        .workflow()
        .step("start", Give(7))
        .step("small", Tell(json!("small")))
        .step("large", Tell(json!("large")))
        .step("end", Tell(json!("end")))
        .edge_when::<u64>("start", "small", result("").less_than(5))
        .edge_when::<u64>("start", "large", result("").at_least(5))
        .edge("small", "end")
        .edge("large", "end")
        .join("end", Join::Any)
        .submit()
        .await
        .unwrap();
    let end: Value = handle.step("end").unwrap().result().await.unwrap();
    assert_eq!(end["before"].as_array().unwrap().len(), 1);
    assert_eq!(handle.status().await.unwrap(), WorkflowState::Succeeded);
}

/// Adds up what came before, however many there are.
#[derive(Serialize, Deserialize)]
struct Sum;

impl Job for Sum {
    const KIND: &'static str = "sum";
    type Output = u64;

    async fn run(self, ctx: JobContext) -> Result<u64, Failure> {
        Ok(ctx.prev::<Vec<u64>>()?.iter().sum())
    }
}

#[tokio::test]
async fn a_join_of_any_has_the_results_of_one_and_of_several_as_a_list() {
    let ratchet = engine().await;
    let check = async |number: u64, expected: u64| {
        let handle = ratchet
            .workflow()
            .step("start", Give(number))
            .step("always", Give(10))
            .step("large", Give(100))
            .step("end", Sum)
            .edge("start", "always")
            .edge_when::<u64>("start", "large", result("").at_least(5))
            .edge("always", "end")
            .edge("large", "end")
            .join("end", Join::Any)
            .submit()
            .await
            .unwrap();
        assert_eq!(handle.step::<u64>("end").unwrap().result().await.unwrap(), expected);
    };
    check(7, 110).await;
    check(1, 10).await;
}

#[tokio::test]
async fn a_join_of_any_has_the_result_that_a_function_has_judged() {
    let ratchet = engine().await;
    let check = async |exclusive: bool, number: u64, expected: u64| {
        let mut flow = ratchet
            .workflow()
            .step("start", Give(number))
            .step("other", Give(100))
            .step("end", Sum)
            .edge_when::<u64>("start", "end", IsEven)
            .edge_when::<u64>("start", "other", result("").at_least(5))
            .edge("other", "end")
            .join("end", Join::Any);
        if exclusive {
            flow = flow.exclusive("start");
        }
        let handle = flow.submit().await.unwrap();
        let sum = handle.step::<u64>("end").unwrap().result().await;
        assert_eq!(sum.unwrap(), expected, "{number}, exclusive: {exclusive}");
    };
    check(false, 4, 4).await;
    check(false, 6, 106).await;
    check(false, 7, 100).await;
    check(true, 6, 6).await;
    check(true, 7, 100).await;
}

#[tokio::test]
async fn a_condition_is_asked_where_every_node_that_has_it_looks() {
    let ratchet = engine().await;
    let mut events = ratchet.events();
    let elsewhere = Give(5).with(|step| step.queue("elsewhere"));
    let first = ratchet.enqueue(Give(2)).when(IsEven, elsewhere).submit().await.unwrap();
    let graph = ratchet.workflow_graph(first.id()).await.unwrap().unwrap();
    let condition = graph.steps.iter().find(|step| step.job_type == JobType::Condition).unwrap();
    // Nobody here serves the branch's own queue.
    assert_eq!(ratchet.handle::<bool>(condition.id).wait().await.unwrap().spec.queue.as_str(), "default");
    let branch = graph.steps.iter().find(|step| step.job_type == JobType::WorkflowBranch).unwrap();
    event(&mut events, |e| e.job_id == branch.id && e.what == JobEventKind::BranchTaken).await;
    assert_eq!(ratchet.handle::<u64>(branch.id).status().await.unwrap(), JobState::Pending);
}

#[tokio::test]
async fn a_workflow_of_one_step_is_one() {
    let ratchet = engine().await;
    let one = || ratchet.workflow().step("only", Give(3)).idempotency_key("one").submit();
    let handle = one().await.unwrap();
    let graph = handle.wait().await.unwrap();
    assert_eq!((graph.state(), graph.steps.len()), (WorkflowState::Succeeded, 1));
    assert_eq!(handle.step::<u64>("only").unwrap().result().await.unwrap(), 3);
    let again = one().await.unwrap();
    assert_eq!((again.id(), again.is_duplicate()), (handle.id(), true));
    assert!(again.step::<u64>("only").is_some());
    let waits = ratchet.workflow().step("only", Play::Hang.with(|step| step.delay(Duration::from_mins(1))));
    let waits = waits.submit().await.unwrap();
    assert_eq!(waits.status().await.unwrap(), WorkflowState::Running);
    assert_eq!(waits.cancel().await.unwrap(), 1);
    assert_eq!(waits.status().await.unwrap(), WorkflowState::Canceled);
    let job = ratchet.enqueue(Give(1)).submit().await.unwrap();
    assert!(ratchet.workflow_graph(job.id()).await.unwrap().is_none(), "a job by itself is no workflow");
}

#[tokio::test]
async fn a_canceled_workflow_runs_nothing_more() {
    let ratchet = engine().await;
    let handle = ratchet
        .workflow()
        .step("a", Play::Hang)
        .step("b", Play::Hang)
        .step("c", Give(1))
        .edge("a", "c")
        .edge("b", "c")
        .submit()
        .await
        .unwrap();
    assert_eq!(handle.cancel().await.unwrap(), 3);
    assert_eq!(handle.wait().await.unwrap().state(), WorkflowState::Canceled);
    assert_eq!(handle.cancel().await.unwrap(), 0);
}

#[tokio::test]
async fn what_is_wrong_with_a_workflow_is_named() {
    let ratchet = engine().await;
    let check = async |builder: ratchet_engine::WorkflowBuilder, expected: &str| {
        let Err(SubmitError::Invalid(refused)) = builder.submit().await else { panic!("{expected}") };
        assert_eq!(refused.to_string(), expected);
    };
    let two = || ratchet.workflow().step("a", Give(1)).step("b", Give(2));
    check(ratchet.workflow(), "`workflow` has no steps; add one with .step(name, job)").await;
    check(two().edge("a", "c"), "`edge \"a\" -> \"c\"` names step \"c\", which this workflow does not have").await;
    let alone = "`step \"c\"` has no edge from it or to it; what does not hang together is no workflow: submit_all takes \
                 many jobs";
    check(two().edge("a", "b").step("c", Give(3)), alone).await;
    check(two().edge("a", "b").edge("b", "a"), "`step \"a\"` waits for itself: the edges run in a circle").await;
    check(two().step("a", Give(1)).edge("a", "b"), "`step \"a\"` is there twice; every step needs its own name").await;
    check(two().edge("a", "b").join("z", Join::Any), "`join` names step \"z\", which this workflow does not have")
        .await;
    check(
        two().edge_when::<u64>("a", "b", result("total").is(1)),
        "`edge \"a\" -> \"b\"` has a bad condition: `pointer` is \"total\"; a JSON pointer is empty or begins with a \
         slash, like /total",
    )
    .await;
    let bad = Give(2).with(|step| step.queue("No Such"));
    check(
        ratchet.workflow().step("a", Give(1)).step("b", bad).edge("a", "b"),
        "`step \"b\".queue` holds 'N' at position 1; only a-z, 0-9, '.', '_' and '-' are allowed",
    )
    .await;
    let chain = ratchet.enqueue(Give(1)).then(Give(2).with(|step| step.timeout(Duration::ZERO))).submit().await;
    let Err(SubmitError::Invalid(refused)) = chain else { panic!() };
    assert_eq!(refused.field(), "then[0].timeout");
    assert_eq!(ratchet.count_by_state().await.unwrap().len(), 0, "nothing was written");
}

#[tokio::test]
async fn a_thousand_steps_run() {
    let ratchet = engine().await;
    let mut flow = ratchet.workflow().step("root", Give(0)).step("end", Tell(json!("end")));
    for number in 0..998 {
        let name = format!("step-{number}");
        flow = flow.step(&name, AddOne).edge("root", &name).edge(&name, "end");
    }
    let handle = flow.submit().await.unwrap();
    let graph = tokio::time::timeout(Duration::from_mins(1), handle.wait()).await.unwrap().unwrap();
    assert_eq!(graph.counts().into_iter().collect::<Vec<_>>(), [(JobState::Succeeded, 1_000)]);
    let end: Value = handle.step("end").unwrap().result().await.unwrap();
    assert_eq!(end["before"].as_array().unwrap().len(), 998);
}
