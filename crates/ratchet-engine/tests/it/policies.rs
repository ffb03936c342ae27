//! What a job policy refuses, however it is submitted.

use std::time::Duration;

use futures_util::{FutureExt as _, future::BoxFuture, stream};
use ratchet_core::batch::ProgressEvery;
use ratchet_core::prepare::PrepareSubmit as _;
use ratchet_core::schedule::ScheduleFilter;
use ratchet_core::{ErrorKind, JobSpec, JobState, MemoryStore};
use ratchet_engine::{
    AllowList, AllowRule, Client, Failure, FeedCause, FeedError, IntoStep, Job, JobContext, JobExt as _, JobPolicy,
    PolicyRefusal, Scheduled, StartError, Step, SubmitError, result,
};
use serde::{Deserialize, Serialize};

use crate::support::{Play, Stage, memory, quick};

fn plays_only() -> AllowList {
    AllowList::new([AllowRule::new("plays").kinds(["play"]).queues(["default"])]).unwrap()
}

fn good() -> Play {
    Play::Return("x".into())
}

/// Refused by its queue.
fn bad() -> Step {
    good().with(|step| step.queue("elsewhere"))
}

fn later() -> Duration {
    Duration::from_mins(1)
}

fn of_feed(error: FeedError) -> SubmitError {
    match error.cause {
        FeedCause::Submit(error) => error,
        other => panic!("{other}"),
    }
}

/// Every way to submit something that the policy refuses, with the field that it should name.
fn ways(
    client: &Client,
    live: ratchet_core::JobId,
) -> Vec<(&'static str, BoxFuture<'static, Result<(), SubmitError>>)> {
    let c = || client.clone();
    let first = || client.enqueue(good()).delay(later());
    let many = client.clone();
    let feed = client.clone();
    let stream_of = || stream::iter([good().into_step(), bad()]);
    vec![
        ("queue", first().queue("elsewhere").submit().map(|r| r.map(drop)).boxed()),
        (
            "job[1].queue",
            async move {
                let jobs = [many.enqueue(good()), many.enqueue(good()).queue("elsewhere")];
                many.submit_all(jobs).await.map(drop)
            }
            .boxed(),
        ),
        ("job[1].queue", first().then(bad()).submit().map(|r| r.map(drop)).boxed()),
        ("job[1].queue", first().then_on_failure(bad()).submit().map(|r| r.map(drop)).boxed()),
        ("job[1].queue", first().when(result("").is("x"), bad()).submit().map(|r| r.map(drop)).boxed()),
        ("on_success.queue", first().on_success(bad()).submit().map(|r| r.map(drop)).boxed()),
        ("on_failure.queue", first().on_failure(bad()).submit().map(|r| r.map(drop)).boxed()),
        ("queue", first().queue("elsewhere").replace(live).map(|r| r.map(drop)).boxed()),
        (
            "step \"b\".queue",
            c().workflow().step("a", good()).step("b", bad()).edge("a", "b").submit().map(|r| r.map(drop)).boxed(),
        ),
        ("child[1].queue", c().batch().child(good()).child(bad()).submit().map(|r| r.map(drop)).boxed()),
        ("job[1].queue", c().batch().child(good()).then_on_batch_success(bad()).submit().map(|r| r.map(drop)).boxed()),
        (
            "on_progress.queue",
            c().batch().child(good()).on_progress(bad(), ProgressEvery::Items(1)).submit().map(|r| r.map(drop)).boxed(),
        ),
        ("queue", c().schedule(bad()).every(later()).create().map(|r| r.map(drop)).boxed()),
        (
            "on_success.queue",
            c().schedule(good()).every(later()).on_success(bad()).create().map(|r| r.map(drop)).boxed(),
        ),
        ("queue", std::future::ready(first().queue("elsewhere").prepare().map(drop)).boxed()),
        ("step \"a\".queue", std::future::ready(c().workflow().step("a", bad()).prepare().map(drop)).boxed()),
        ("child[0].queue", std::future::ready(c().batch().child(bad()).prepare().map(drop)).boxed()),
        (
            "child[1].queue",
            async move { feed.batch().chunk(1).stream(stream_of()).await.map(drop).map_err(of_feed) }.boxed(),
        ),
    ]
}

#[tokio::test]
async fn what_a_policy_refuses_is_refused_however_it_is_submitted_and_nothing_is_written() {
    let client = Client::new(memory()).with_job_policy(plays_only());
    let live = client.enqueue(good()).delay(later()).submit().await.unwrap();
    let (mut before, ways) = (client.count_by_state().await.unwrap(), ways(&client, live.id()));
    let last = ways.len() - 1;
    for (at, (field, way)) in ways.into_iter().enumerate() {
        let refused = way.await.expect_err(field);
        let SubmitError::Refused(refusal) = &refused else { panic!("{at}: {refused:?}") };
        assert_eq!((refusal.rule(), refusal.field()), ("\"plays\"", field), "{at}");
        let text = refused.to_string();
        assert!(text.contains("\"elsewhere\"") && text.contains("use \"default\""), "{text}");
        if at == last {
            // A stream has stored the batch, and the children before the one that was refused.
            *before.entry(JobState::Waiting).or_default() += 1;
            *before.entry(JobState::Pending).or_default() += 1;
        }
        assert_eq!(client.count_by_state().await.unwrap(), before, "{at}: {field}");
        assert_eq!(client.schedules(&ScheduleFilter::default(), None, 10).await.unwrap().items.len(), 0);
    }
    assert_eq!(live.status().await.unwrap(), JobState::Pending, "and what it was to replace is there");
}

#[tokio::test]
async fn what_a_policy_allows_goes_through_with_the_steps_that_ratchet_adds() {
    let stage = Stage::default();
    let ratchet = quick(&stage).store(memory()).job_policy(plays_only()).start().await.unwrap();
    let batch = ratchet.batch().child(good()).child(good()).then_on_batch_success(good()).submit().await.unwrap();
    assert_eq!(batch.summary().await.unwrap().succeeded, 2);
    let graph = ratchet.workflow_graph(batch.id()).await.unwrap().unwrap();
    ratchet.handle::<String>(graph.steps[1].id).result().await.unwrap();
}

#[tokio::test]
async fn a_node_does_not_run_what_its_policy_refuses_whoever_submitted_it() {
    let (store, stage) = (memory(), Stage::default());
    let elsewhere = Client::new(store.clone());
    let job = elsewhere.enqueue(good()).principal("mallory").submit().await.unwrap();
    let policy = AllowList::new([AllowRule::new("known").principals(["alice"])]).unwrap();
    let ratchet = quick(&stage).store(store).job_policy(policy).start().await.unwrap();
    let failed = job.wait().await.unwrap();
    assert_eq!((failed.state, failed.attempts, stage.runs(job.id())), (JobState::Failed, 1, 0), "without another try");
    let error = failed.last_error.unwrap();
    assert!(error.contains("`principal` is \"mallory\"") && error.contains("rule \"known\""), "{error}");
    ratchet.shutdown().await;
}

#[derive(Serialize, Deserialize)]
struct Nightly;

impl Job for Nightly {
    const KIND: &'static str = "nightly";
    type Output = ();

    fn schedule() -> Option<Scheduled> {
        Some(Scheduled::cron(&Nightly, "0 0 2 * * ?"))
    }

    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

#[tokio::test]
async fn a_node_whose_code_declares_a_schedule_that_its_policy_refuses_does_not_start() {
    let store = memory();
    let node = quick(&Stage::default()).store(store.clone()).job::<Nightly>().job_policy(plays_only());
    let refused = node.start().await.unwrap_err();
    let StartError::Refused(refusal) = &refused else { panic!("{refused:?}") };
    assert_eq!(refusal.field(), "schedule of nightly: kind");
    let client = Client::new(store);
    assert_eq!(client.schedules(&ScheduleFilter::default(), None, 10).await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn a_schedule_is_not_fired_by_hand_against_the_policy() {
    let store = memory();
    let schedule = Client::new(store.clone()).schedule(bad()).every(later()).create().await.unwrap();
    let narrow = Client::new(store).with_job_policy(plays_only());
    let refused = narrow.run_schedule_now(schedule.id()).await.unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("`queue` is \"elsewhere\""), "{refused}");
    assert_eq!(narrow.count_by_state().await.unwrap().len(), 0);
}

struct Panics;

impl JobPolicy for Panics {
    fn check(&self, _job: &JobSpec) -> Result<(), PolicyRefusal> {
        panic!("a policy gone wrong")
    }
}

#[tokio::test]
async fn a_policy_that_panics_has_allowed_nothing() {
    let client =
        Client::new(MemoryStore::new(std::sync::Arc::new(ratchet_engine::SystemClock))).with_job_policy(Panics);
    let refused = client.enqueue(good()).submit().await.unwrap_err().to_string();
    assert!(refused.contains("the job policy panicked"), "{refused}");
    assert_eq!(client.count_by_state().await.unwrap().len(), 0);
}

#[test]
fn a_rule_with_an_empty_list_is_refused() {
    let none: [&str; 0] = [];
    for (field, rule) in [
        ("kinds", AllowRule::new("x").kinds(none)),
        ("queues", AllowRule::new("x").queues(none)),
        ("principals", AllowRule::new("x").principals(none)),
    ] {
        let refused = AllowList::new([rule]).unwrap_err().to_string();
        assert!(refused.contains(field) && refused.contains("is empty"), "{refused}");
        let read = serde_json::from_str::<AllowList>(&format!(r#"[{{"name": "x", "{field}": []}}]"#));
        assert!(read.unwrap_err().to_string().contains("is empty"));
    }
    let all = AllowList::new([AllowRule::new("all")]).unwrap();
    let again: AllowList = serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
    assert_eq!(all, again, "what is left out allows all");
}
