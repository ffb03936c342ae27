//! Workflows and batches of shapes that are easily confused, and what is said of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ratchet_core::flow::{Join, WorkflowState};
use ratchet_core::{JobState, JobType};
use ratchet_engine::{
    Client, Failure, IntoBranch as _, Job, JobContext, JobExt as _, Ratchet, SubmitError, SubmittedKind, conditions,
    result,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{IsEven, Play, Stage, memory, quick};

/// Fails until somebody has mended what it needs.
#[derive(Serialize, Deserialize)]
struct Mends(u64);

static MENDED: AtomicBool = AtomicBool::new(false);

impl Job for Mends {
    const KIND: &'static str = "mends";
    type Output = u64;

    async fn run(self, _ctx: JobContext) -> Result<u64, Failure> {
        if MENDED.load(Ordering::SeqCst) { Ok(self.0) } else { Err(Failure::do_not_retry("broken", "mend it")) }
    }
}

/// Returns what it is given.
#[derive(Serialize, Deserialize)]
struct Say(Value);

impl Job for Say {
    const KIND: &'static str = "say";
    type Output = Value;

    async fn run(self, _ctx: JobContext) -> Result<Value, Failure> {
        Ok(self.0)
    }
}

/// Returns what came before, as it came.
#[derive(Serialize, Deserialize)]
struct Echo;

impl Job for Echo {
    const KIND: &'static str = "echo";
    type Output = Value;

    async fn run(self, ctx: JobContext) -> Result<Value, Failure> {
        ctx.prev()
    }
}

async fn engine() -> Ratchet {
    let node = quick(&Stage::default()).job::<Mends>().job::<Say>().job::<Echo>();
    node.jobs(conditions![IsEven]).store(memory()).start().await.unwrap()
}

fn later() -> ratchet_engine::Step {
    Say(json!(1)).with(|step| step.delay(Duration::from_hours(1)))
}

/// How the steps of these kinds stand, in their order.
async fn stands(client: &Client, id: ratchet_core::JobId) -> (WorkflowState, Vec<JobState>, Vec<JobState>) {
    let graph = client.workflow_handle(id).await.unwrap().unwrap().wait().await.unwrap();
    let of = |condition: bool| {
        let chosen = graph.steps[1..].iter().filter(|step| (step.job_type == JobType::Condition) == condition);
        chosen.map(|step| step.state).collect::<Vec<_>>()
    };
    (graph.state(), of(false), of(true))
}

#[tokio::test]
async fn a_failure_cancels_exclusive_branches_and_a_retry_brings_them_back() {
    use JobState::{Canceled, Succeeded};
    let ratchet = engine().await;
    let branches = || {
        let first = ratchet.enqueue(Mends(4)).when(IsEven, Say(json!("even")));
        first.when(result("").is(4), Say(json!("four"))).exclusive()
    };
    let plain = branches().submit().await.unwrap().id();
    let cared_for = branches().then_on_failure(Say(json!("failed"))).submit().await.unwrap().id();
    let questions = vec![Canceled, Canceled];
    assert_eq!(stands(&ratchet, plain).await, (WorkflowState::Failed, vec![Canceled, Canceled], questions.clone()));
    let taken = vec![Canceled, Canceled, Succeeded];
    assert_eq!(stands(&ratchet, cared_for).await, (WorkflowState::Succeeded, taken, questions), "as if not exclusive");
    MENDED.store(true, Ordering::SeqCst);
    assert!(ratchet.retry(plain).await.unwrap() && ratchet.retry(cared_for).await.unwrap());
    let questions = vec![Succeeded, Canceled];
    assert_eq!(stands(&ratchet, plain).await, (WorkflowState::Succeeded, vec![Succeeded, Canceled], questions.clone()));
    let taken = vec![Succeeded, Canceled, Succeeded];
    assert_eq!(stands(&ratchet, cared_for).await, (WorkflowState::Succeeded, taken, questions));
}

#[tokio::test]
async fn an_exclusive_edge_is_not_lost_beside_a_question() {
    let ratchet = engine().await;
    let flow = ratchet.workflow().step("a", Mends(4)).step("b", Echo).exclusive("a");
    let twice = flow.edge_when::<u64>("a", "b", IsEven).edge_on_failure("a", "b").submit().await.unwrap_err();
    assert!(twice.to_string().contains("`edge \"a\" -> \"b\"` is there twice"), "{twice}");
}

#[tokio::test]
async fn one_result_that_is_a_list_is_not_taken_for_several() {
    let ratchet = engine().await;
    let joined = |other: Play, join: Join| {
        let flow = ratchet.workflow().step("a", Say(json!([1, 2]))).step("b", other).step("end", Echo);
        flow.edge("a", "end").edge("b", "end").join("end", join).submit()
    };
    let end =
        async |handle: ratchet_engine::WorkflowHandle| handle.step::<Value>("end").unwrap().result().await.unwrap();
    let said = || Play::Return("x".into());
    assert_eq!(end(joined(said(), Join::All).await.unwrap()).await, json!([[1, 2], "x"]));
    assert_eq!(end(joined(said(), Join::Any).await.unwrap()).await, json!([[1, 2], "x"]));
    assert_eq!(end(joined(Play::FailForGood, Join::Any).await.unwrap()).await, json!([[1, 2]]), "a list of one list");
    let chain = ratchet.workflow().step("a", Say(json!([1, 2]))).step("end", Echo).edge("a", "end");
    assert_eq!(end(chain.submit().await.unwrap()).await, json!([1, 2]), "what follows one step has its result");
}

#[tokio::test]
async fn a_step_may_be_called_as_the_question_before_another() {
    let ratchet = engine().await;
    let flow = ratchet.workflow().step("a", Mends(4)).step("b", Say(json!("b"))).step("b?", Say(json!("mine")));
    let flow = flow.edge_when::<u64>("a", "b", IsEven).edge("b", "b?").idempotency_key("names");
    let mine = flow.submit().await.unwrap().step::<Value>("b?").unwrap().id();
    let again = ratchet.workflow().step("a", Say(json!(1))).idempotency_key("names").submit().await.unwrap();
    assert_eq!(again.step::<Value>("b?").unwrap().id(), mine);
    assert_eq!(ratchet.find(mine).await.unwrap().unwrap().spec.kind.as_str(), "say");
}

#[tokio::test]
async fn a_canceled_workflow_takes_the_children_of_its_batch_along() {
    let ratchet = engine().await;
    let followed = ratchet.batch().child(later()).then_on_batch_success(Say(json!(1))).submit().await.unwrap();
    let alone = ratchet.batch().child(later()).submit().await.unwrap();
    for (batch, steps) in [(followed, 2), (alone, 1)] {
        assert_eq!(ratchet.cancel_workflow(batch.id()).await.unwrap(), steps);
        let children = batch.children(None, 10).await.unwrap().items;
        assert_eq!(children.iter().map(|child| child.state).collect::<Vec<_>>(), [JobState::Canceled]);
        let progress = ratchet.batch_progress(batch.id()).await.unwrap().unwrap();
        assert!(progress.ended && !progress.canceling);
        assert_eq!(ratchet.cancel_workflow(batch.id()).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_key_of_another_sort_of_thing_is_refused_as_such() {
    let ratchet = engine().await;
    let two = || ratchet.workflow().step("a", Say(json!(1))).step("b", Say(json!(2))).edge("a", "b");
    let job = ratchet.enqueue(Say(json!(1))).idempotency_key("job").submit().await.unwrap().id();
    let flow = two().idempotency_key("flow").submit().await.unwrap().id();
    let batch = ratchet.batch().child(later()).idempotency_key("batch").submit().await.unwrap().id();
    let check = |refused: SubmitError, made: ratchet_core::JobId, was: SubmittedKind, wanted: SubmittedKind| {
        let SubmitError::IdempotencyKeyReused { id, existing, expected, .. } = &refused else { panic!("{refused}") };
        assert_eq!((*id, *existing, *expected), (made, was, wanted), "{refused}");
    };
    for (key, made, was) in [
        ("job", job, SubmittedKind::Job),
        ("flow", flow, SubmittedKind::Workflow),
        ("batch", batch, SubmittedKind::Batch),
    ] {
        if was != SubmittedKind::Job {
            let refused = ratchet.enqueue(Say(json!(1))).idempotency_key(key).submit().await.unwrap_err();
            check(refused, made, was, SubmittedKind::Job);
        }
        if was != SubmittedKind::Workflow {
            check(two().idempotency_key(key).submit().await.unwrap_err(), made, was, SubmittedKind::Workflow);
        }
        if was != SubmittedKind::Batch {
            let refused = ratchet.batch().child(later()).idempotency_key(key).submit().await.unwrap_err();
            check(refused, made, was, SubmittedKind::Batch);
            check(ratchet.batch().idempotency_key(key).open().await.unwrap_err(), made, was, SubmittedKind::Batch);
        }
    }
}

#[tokio::test]
async fn what_is_in_the_way_of_several_jobs_is_named() {
    let ratchet = engine().await;
    let keyed = |key: &str| {
        let key = key.to_owned();
        Say(json!(1)).with(move |step| step.business_key(&key).delay(Duration::from_hours(1)))
    };
    let two = |first: &str, second: &str| {
        ratchet.workflow().step("a", keyed(first)).step("b", keyed(second)).edge("a", "b").submit()
    };
    let both = two("x", "x").await.unwrap_err().to_string();
    assert!(both.contains("`step \"b\".business_key` is \"x\", and so is that of step \"a\""), "{both}");
    let both = ratchet.batch().children([keyed("x"), keyed("y"), keyed("x")]).submit().await.unwrap_err().to_string();
    assert!(both.contains("`child[2].business_key` is \"x\", and so is that of child[0]"), "{both}");
    let held = ratchet.enqueue(Say(json!(1))).business_key("x").delay(Duration::from_hours(1)).submit().await.unwrap();
    let taken = two("w", "x").await.unwrap_err().to_string();
    assert!(taken.contains(&format!("\"x\" of step \"b\" is held by job {}", held.id())), "{taken}");
    let taken = ratchet.batch().children([keyed("w"), keyed("x")]).submit().await.unwrap_err().to_string();
    assert!(taken.contains(&format!("\"x\" of child[1] is held by job {}", held.id())), "{taken}");
    let schedule =
        ratchet.schedule(Say(json!(1))).every(Duration::from_hours(1)).business_key("z").create().await.unwrap();
    let taken = ratchet.enqueue(Say(json!(1))).business_key("z").submit().await.unwrap_err().to_string();
    assert!(taken.contains(&format!("is held by schedule {}; cancel that", schedule.id())), "{taken}");
    let long = ratchet.enqueue(Mends(1)).when(IsEven.describe("x".repeat(256)), later()).submit().await.unwrap_err();
    assert!(long.to_string().contains(".description`"), "{long}");
    for name in ["", &"x".repeat(65)] {
        let bad = ratchet.workflow().step(name, later()).submit().await.unwrap_err().to_string();
        assert!(bad.contains(&format!("`step` {name:?} has a bad name")), "{bad}");
    }
    let mut many = ratchet.workflow().step("root", Mends(1));
    for at in 0..5_001 {
        let name = format!("s{at}");
        many = many.step(&name, later()).edge_when::<u64>("root", &name, IsEven);
    }
    let many = many.submit().await.unwrap_err().to_string();
    assert!(many.contains("has 5002 steps, and 5001 more that ask its conditions"), "{many}");
}

#[tokio::test]
async fn a_feeder_of_a_closed_batch_is_not_sent_to_open_it_again() {
    let ratchet = engine().await;
    for cancel in [true, false] {
        let open = ratchet.batch().open().await.unwrap();
        if cancel {
            open.cancel().await.unwrap();
        } else {
            open.seal().await.unwrap();
        }
        let error = open.extend(stream::iter(0..3).map(|_| later())).await.unwrap_err();
        assert!(!error.open && error.to_string().contains("takes no further children"), "{error}");
    }
}
