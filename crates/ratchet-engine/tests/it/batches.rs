//! Batches, from the builder to the end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ratchet_core::batch::ProgressEvery;
use ratchet_core::page::JobFilter;
use ratchet_core::{BatchProgress, BatchSummary, ErrorKind, JobState, JobType, Kind};
use ratchet_engine::{
    Client, Failure, FeedCause, FromPrev as _, Job, JobContext, JobEventKind, JobExt as _, Prev, Ratchet, ResultError,
    SubmitError, result,
};
use serde::{Deserialize, Serialize};

use crate::faulty::Faulty;
use crate::support::{Play, Stage, engine, event, eventually, memory, quick};

fn good() -> Play {
    Play::Return("fine".to_owned())
}

/// Says what the batch before came to.
#[derive(Serialize, Deserialize)]
struct Report;

impl Job for Report {
    const KIND: &'static str = "report";
    type Output = BatchSummary;

    async fn run(self, ctx: JobContext) -> Result<BatchSummary, Failure> {
        let Prev(summary) = Prev::from_prev(&ctx)?;
        Ok(summary)
    }
}

/// Says how far the batch is that it tells of.
#[derive(Serialize, Deserialize)]
struct Tell;

impl Job for Tell {
    const KIND: &'static str = "tell";
    type Output = BatchProgress;

    async fn run(self, ctx: JobContext) -> Result<BatchProgress, Failure> {
        let origin = ctx.origin().and_then(|origin| origin.result.as_ref()).expect("it tells of a batch");
        origin.decode().map_err(Failure::new)
    }
}

async fn engine_with_reports() -> Ratchet {
    quick(&Stage::default()).job::<Report>().job::<Tell>().store(memory()).start().await.unwrap()
}

/// The jobs of a kind, the first first.
async fn of_kind(client: &Client, kind: &str) -> Vec<ratchet_core::JobRecord> {
    let filter = JobFilter { kind: Some(Kind::new(kind).unwrap()), ..JobFilter::default() };
    let mut items = client.list(&filter, None, 1_000).await.unwrap().items;
    items.reverse();
    items
}

#[tokio::test]
async fn a_batch_with_failures_succeeds_and_its_branches_tell() {
    let ratchet = engine_with_reports().await;
    let mut events = ratchet.events();
    let batch = ratchet
        .batch()
        .children((0..8).map(|_| good()))
        .child(Play::FailForGood)
        .child(Play::FailTimes(1).with(|step| step.max_retries(3).business_key("one").tags(["special"])))
        .then_on_batch_success(Report.with(|step| step.tags(["success"])))
        .then_on_batch_failure(Report.with(|step| step.tags(["failure"])))
        .when_success_rate(0.9, Report.with(|step| step.tags(["rate"])))
        .when_failure_count(2, Report.with(|step| step.tags(["count"])))
        .when(result("/canceled").is(0), Report.with(|step| step.tags(["condition"])))
        .submit()
        .await
        .unwrap();
    let summary = batch.summary().await.unwrap();
    assert_eq!((summary.total, summary.succeeded, summary.failed, summary.canceled), (10, 9, 1, 0));
    assert!(!summary.clean && (summary.success_rate - 0.9).abs() < 1e-9);
    let of_batch = |what: &JobEventKind| {
        let expected = JobEventKind::BatchCompleted { total: 10, succeeded: 9, failed: 1, canceled: 0 };
        *what == expected
    };
    event(&mut events, |event| event.job_id == batch.id() && event.what == JobEventKind::BatchCompleting).await;
    event(&mut events, |event| event.job_id == batch.id() && of_batch(&event.what)).await;
    let workflow = ratchet.workflow_handle(batch.id()).await.unwrap().unwrap().wait().await.unwrap();
    let reports = of_kind(&ratchet, "report").await;
    let state = |tag: &str| reports.iter().find(|job| job.spec.tags.iter().any(|t| t.as_str() == tag)).unwrap().state;
    assert_eq!(workflow.steps.len(), 6);
    assert_eq!(
        ["success", "failure", "rate", "count", "condition"].map(state),
        [JobState::Canceled, JobState::Succeeded, JobState::Succeeded, JobState::Canceled, JobState::Succeeded]
    );
    let told = reports.iter().find(|job| job.state == JobState::Succeeded).unwrap();
    assert_eq!(told.result.as_ref().unwrap().decode::<BatchSummary>().unwrap(), summary);
    let record = batch.record().await.unwrap();
    assert!(record.completed_at.is_some() && record.counts.child_execution > Duration::ZERO);
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_batch_without_children_succeeds() {
    let (ratchet, _) = engine().await;
    let summary = ratchet.batch().submit().await.unwrap().summary().await.unwrap();
    assert_eq!((summary.total, summary.clean), (0, true));
    let streamed = ratchet.batch().stream(stream::empty::<Play>()).await.unwrap();
    assert_eq!(streamed.summary().await.unwrap().total, 0);
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_stream_is_asked_for_more_only_when_what_it_gave_is_stored() {
    let store = memory();
    let ratchet = quick(&Stage::default()).store(store.clone()).start().await.unwrap();
    let given = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = given.clone();
    let children = stream::iter(0..95).map(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        good()
    });
    // Looks, whenever the stream gives one, how many are stored.
    let client = Client::new(store);
    let seen = given.clone();
    let children = children.then(move |child| {
        let (client, given) = (client.clone(), seen.load(Ordering::SeqCst));
        async move {
            let stored: u64 = client.batches(None, 1).await.unwrap().items.iter().map(|batch| batch.counts.total).sum();
            assert!(given as u64 <= stored + 10, "{given} were given and {stored} are stored");
            child
        }
    });
    let batch = ratchet.batch().chunk(10).stream(children).await.unwrap();
    assert_eq!(batch.summary().await.unwrap().succeeded, 95);
    let mut progress = batch.progress(Duration::from_millis(1));
    let last = progress.next().await.unwrap().unwrap();
    assert_eq!((last.done, last.ended), (95, true));
    assert!(progress.next().await.is_none(), "it ends with the batch");
    ratchet.shutdown().await;
}

#[tokio::test]
async fn children_run_while_the_stream_goes_on_and_end_nothing_before_the_seal() {
    let (ratchet, _) = engine().await;
    let open = ratchet.batch().chunk(5).open().await.unwrap();
    assert_eq!(open.extend(stream::iter(0..12).map(|_| good())).await.unwrap(), 12);
    let batch = open.handle();
    eventually("the end of the first twelve", async || batch.record().await.unwrap().counts.succeeded == 12).await;
    assert_eq!(batch.job().status().await.unwrap(), JobState::Waiting);
    open.extend(stream::iter([Play::FailForGood])).await.unwrap();
    open.seal().await.unwrap();
    let summary = batch.summary().await.unwrap();
    assert_eq!((summary.total, summary.failed), (13, 1));
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_stream_that_broke_off_can_be_resumed_by_another_process() {
    let store = memory();
    let ratchet = quick(&Stage::default()).store(store.clone()).start().await.unwrap();
    let client = Client::new(store.clone());
    // The process dies in the middle: its stream never ends.
    let feeding = tokio::spawn(async move {
        let endless = stream::iter(0..7).map(|_| good()).chain(stream::pending());
        client.batch().chunk(5).stream(endless).await
    });
    let other = Client::new(store);
    eventually("the first chunk", async || {
        other.batches(None, 1).await.unwrap().items.first().is_some_and(|batch| batch.counts.succeeded == 5)
    })
    .await;
    feeding.abort();
    let _ = feeding.await;
    let left = other.batches(None, 1).await.unwrap().items.remove(0);
    assert_eq!((left.counts.sealed, left.counts.total, left.refusal()), (false, 5, None));
    let open = other.open_batch(left.id).await.unwrap();
    open.extend(stream::iter(0..3).map(|_| good())).await.unwrap();
    open.seal().await.unwrap();
    let summary = ratchet.batch_handle(left.id).summary().await.unwrap();
    assert_eq!((summary.total, summary.succeeded), (8, 8));
    let refused = other.open_batch(left.id).await.unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("takes no further children"), "{refused}");
    let refused = open.extend(stream::iter([good()])).await.unwrap_err();
    assert_eq!((refused.batch, refused.added), (Some(left.id), 0));
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_source_that_fails_leaves_the_batch_open_and_says_what_it_said() {
    let (ratchet, _) = engine().await;
    let rows = stream::iter((0..12).map(|_| Ok(good()))).chain(stream::iter([Err(std::io::Error::other("disk gone"))]));
    let broken = ratchet.batch().chunk(5).try_stream(rows).await.unwrap_err();
    let FeedCause::Source(said) = &broken.cause else { panic!("{broken:?}") };
    assert_eq!((said.to_string().as_str(), broken.added), ("disk gone", 10));
    let text = broken.to_string();
    assert!(text.starts_with("10 more children were added to batch ") && text.contains("the source of the"), "{text}");
    let source = std::error::Error::source(&broken).unwrap();
    assert_eq!(source.to_string(), "disk gone", "the text tells what is between them");
    let batch = ratchet.batch_handle(broken.batch.unwrap());
    let counts = batch.record().await.unwrap().counts;
    assert_eq!((counts.sealed, counts.total), (false, 10), "no silent end");
    let open = ratchet.open_batch(batch.id()).await.unwrap();
    // Texts are errors too.
    let rest = stream::iter([Ok::<_, String>(good()), Ok(good()), Err("again".to_owned())]);
    assert_eq!(open.try_extend(rest).await.unwrap_err().added, 0, "a chunk is stored as a whole");
    open.try_extend(stream::iter([Ok::<_, String>(good()), Ok(good())])).await.unwrap();
    open.seal().await.unwrap();
    assert_eq!(batch.summary().await.unwrap().succeeded, 12);
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_stream_under_the_key_of_a_batch_that_is_open_does_not_pass_for_done() {
    let (ratchet, _) = engine().await;
    let open = ratchet.batch().idempotency_key("import:8").open().await.unwrap();
    let feed = async || ratchet.batch().idempotency_key("import:8").stream(stream::iter([good()])).await;
    let refused = feed().await.unwrap_err();
    assert_eq!((refused.batch, refused.added), (Some(open.handle().id()), 0));
    assert!(matches!(&refused.cause, FeedCause::Submit(_)), "{refused}");
    open.seal().await.unwrap();
    assert_eq!(feed().await.unwrap().id(), open.handle().id(), "one that was fed to its end stands for the second");
    ratchet.shutdown().await;
}

#[tokio::test]
async fn what_is_no_batch_is_not_canceled_as_one() {
    let (ratchet, _) = engine().await;
    let job = ratchet.enqueue(good()).delay(Duration::from_mins(1)).submit().await.unwrap();
    for id in [job.id(), ratchet_engine::new_job_id()] {
        let refused = ratchet.cancel_batch(id).await.unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::NotFound, "{refused}");
    }
    assert_eq!(job.status().await.unwrap(), JobState::Pending);
    ratchet.shutdown().await;
}

#[tokio::test]
async fn the_progress_of_a_batch_that_is_gone_ends() {
    let (ratchet, _) = engine().await;
    let batch = ratchet.batch().submit().await.unwrap();
    batch.summary().await.unwrap();
    assert!(ratchet.delete(batch.id()).await.unwrap());
    let mut progress = batch.progress(Duration::from_millis(1));
    assert_eq!(*progress.next().await.unwrap().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(progress.next().await.is_none());
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_chunk_whose_reply_is_lost_is_stored_and_counted_once() {
    let store = Faulty::new(memory());
    let ratchet = quick(&Stage::default()).store(store.clone()).start().await.unwrap();
    store.lost_chunks.store(3, Ordering::SeqCst);
    let batch = ratchet.batch().chunk(10).stream(stream::iter(0..25).map(|_| good())).await.unwrap();
    let summary = batch.summary().await.unwrap();
    assert_eq!((summary.total, summary.succeeded), (25, 25));
    assert_eq!(batch.children(None, 100).await.unwrap().items.len(), 25);
    ratchet.shutdown().await;
}

#[tokio::test]
async fn progress_is_told_by_jobs_once_for_each_threshold() {
    let ratchet = engine_with_reports().await;
    let children = (0..20).map(|_| good());
    let batch =
        ratchet.batch().children(children).on_progress(Tell, ProgressEvery::Percent(25)).submit().await.unwrap();
    batch.summary().await.unwrap();
    eventually("the last word", async || {
        let told = of_kind(&ratchet, "tell").await;
        told.iter().all(|job| job.state == JobState::Succeeded)
            && told.iter().any(|job| job.result.as_ref().unwrap().decode::<BatchProgress>().unwrap().done == 20)
    })
    .await;
    let told = of_kind(&ratchet, "tell").await;
    assert!((1..=4).contains(&told.len()), "at most one for each quarter: {}", told.len());
    assert!(told.iter().all(|job| job.job_type == JobType::Callback));
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_canceled_batch_takes_its_children_and_what_runs_along() {
    let stage = Stage::default();
    let ratchet = quick(&stage).job::<Report>().store(memory()).start().await.unwrap();
    let batch = ratchet
        .batch()
        .children((0..3).map(|_| Play::UntilCanceled))
        .child(good().with(|step| step.delay(Duration::from_mins(1))))
        .then_on_batch_success(Report)
        .submit()
        .await
        .unwrap();
    eventually("three that run", async || stage.most_together() == 3).await;
    assert_eq!(batch.cancel().await.unwrap(), 4);
    assert!(matches!(batch.summary().await, Err(ResultError::Canceled { .. })));
    assert_eq!(of_kind(&ratchet, "report").await[0].state, JobState::Canceled);
    let record = batch.record().await.unwrap();
    assert_eq!((record.counts.canceled, record.canceling), (4, false));
    assert_eq!(batch.cancel().await.unwrap(), 0, "there is nothing left");
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_node_goes_on_with_a_cancellation_whose_caller_is_gone() {
    let store = memory();
    let client = Client::new(store.clone());
    let far = Duration::from_hours(1);
    let children = (0..5).map(|_| good().with(|step| step.delay(far)));
    let batch = client.batch().children(children).submit().await.unwrap();
    // As if the caller had died after the first of its transactions.
    client.store().cancel(batch.id()).await.unwrap().unwrap();
    assert!(batch.record().await.unwrap().canceling);
    let ratchet = quick(&Stage::default()).store(store).start().await.unwrap();
    eventually("the children's end", async || batch.record().await.unwrap().counts.canceled == 5).await;
    assert!(!batch.record().await.unwrap().canceling);
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_batch_that_is_submitted_again_stands_for_the_first() {
    let (ratchet, _) = engine().await;
    let first = ratchet.batch().child(good()).idempotency_key("import:7").submit().await.unwrap();
    let again = ratchet.batch().child(good()).idempotency_key("import:7").submit().await.unwrap();
    assert_eq!((again.id(), again.is_duplicate()), (first.id(), true));
    let streamed = ratchet.batch().idempotency_key("import:7").stream(stream::iter([good()])).await.unwrap();
    assert_eq!(streamed.id(), first.id());
    assert_eq!(first.summary().await.unwrap().total, 1);
    ratchet.shutdown().await;
}

#[tokio::test]
async fn what_is_wrong_is_named_before_anything_is_written() {
    let (ratchet, _) = engine().await;
    let refused = |error: SubmitError| error.to_string();
    let long = "x".repeat(200 * 1_024);
    let error = ratchet.batch().child(good()).child(Play::Return(long.clone())).submit().await.unwrap_err();
    assert!(refused(error).contains("child[1].payload"));
    let error = ratchet.batch().children((0..).map(|_| good())).submit().await.unwrap_err();
    assert!(refused(error).contains("10001"));
    let error = ratchet.batch().on_progress(good(), ProgressEvery::Percent(0)).submit().await.unwrap_err();
    assert!(refused(error).contains("0 percent"));
    let wordy = Play::Hang.with(|step| step.timeout(Duration::ZERO));
    let error = ratchet.batch().on_progress(wordy, ProgressEvery::Items(1)).submit().await.unwrap_err();
    assert!(refused(error).contains("`on_progress.timeout`"));
    for rate in [90.0, -0.1, f64::NAN] {
        let error = refused(ratchet.batch().when_success_rate(rate, good()).submit().await.unwrap_err());
        let expected = format!("`when[0].success_rate` is {rate}; give a share from 0 to 1");
        assert!(error.ends_with(&expected), "{error}");
    }
    let error = ratchet.batch().chunk(0).open().await.unwrap_err();
    assert!(refused(error).contains("chunk"));
    assert_eq!(refused_count(&ratchet).await, 0, "nothing was written");
    let broken = ratchet.batch().chunk(2).stream(stream::iter([good(), good(), Play::Return(long)])).await.unwrap_err();
    assert_eq!((broken.batch.is_some(), broken.added), (true, 2));
    assert!(broken.to_string().contains("child[2].payload"), "{broken}");
    ratchet.shutdown().await;
}

async fn refused_count(client: &Client) -> usize {
    client.batches(None, 10).await.unwrap().items.len()
}
