//! Schedules, from the builder to the jobs that they fire.

use std::time::Duration;

use ratchet_core::id::declared_id;
use ratchet_core::node::{NodeInfo, NodeRegistration};
use ratchet_core::page::JobFilter;
use ratchet_core::schedule::OverlapPolicy;
use ratchet_core::schedule::{ArchiveReason, ScheduleFilter};
use ratchet_core::store::{ClusterStore as _, ScheduleStore as _};
use ratchet_core::{ErrorKind, JobId, JobState, JobType, MemoryStore, NodeName, Tag};
use ratchet_engine::{
    Client, Failure, Job, JobContext, JobEventKind, JobExt, Ratchet, Scheduled, StartError, SubmitError, new_node_id,
};
use serde::{Deserialize, Serialize};

use crate::faulty::Faulty;
use crate::support::{Play, Stage, event, eventually, memory, quick};

/// Fired by itself, every second.
#[derive(Serialize, Deserialize)]
struct Tick;

impl Job for Tick {
    const KIND: &'static str = "tick";
    type Output = ();

    fn schedule() -> Option<Scheduled> {
        Some(Scheduled::every(&Tick, Duration::from_secs(1)).overlap("skip"))
    }

    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Wrong;

impl Job for Wrong {
    const KIND: &'static str = "wrong";
    type Output = ();

    fn schedule() -> Option<Scheduled> {
        Some(Scheduled::cron(&Wrong, "0 0 25 * * ?"))
    }

    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

async fn children(client: &Client, id: JobId) -> Vec<ratchet_core::JobRecord> {
    let filter = JobFilter { parent: Some(id), ..JobFilter::default() };
    client.list(&filter, None, 100).await.unwrap().items
}

fn node(store: MemoryStore) -> ratchet_engine::RatchetBuilder {
    quick(&Stage::default()).job::<Tick>().store(store)
}

#[tokio::test]
async fn a_schedule_fires_jobs_until_it_is_paused_or_canceled() {
    let ratchet = quick(&Stage::default()).store(memory()).start().await.unwrap();
    let tagged = Play::Return("tock".into()).with(|step| step.tags(["clock"]));
    let clock = ratchet.schedule(tagged).every(Duration::from_secs(1)).create().await.unwrap();
    assert_eq!(clock.next_fires(3).await.unwrap().len(), 3);
    eventually("two fires", async || children(&ratchet, clock.id()).await.len() >= 2).await;
    let jobs = children(&ratchet, clock.id()).await;
    assert!(jobs.iter().all(|job| job.job_type == JobType::Recurring && job.spec.tags.len() == 1));
    let first = ratchet.handle::<String>(jobs.last().unwrap().id);
    assert_eq!(first.result().await.unwrap(), "tock");
    assert!(clock.pause().await.unwrap() && !clock.pause().await.unwrap());
    let fired = clock.record().await.unwrap().fired;
    assert_eq!(clock.next_fires(3).await.unwrap(), []);
    let now = clock.run_now::<String>().await.unwrap();
    assert_eq!(now.result().await.unwrap(), "tock", "a paused one can be fired by hand");
    assert_eq!(clock.record().await.unwrap().fired, fired);
    assert!(clock.resume().await.unwrap());
    eventually("a further fire", async || clock.record().await.unwrap().fired > fired).await;
    let by_tag = ScheduleFilter { tag: Some(Tag::new("clock").unwrap()), ..ScheduleFilter::default() };
    assert_eq!(ratchet.cancel_schedules(&by_tag).await.unwrap(), 1);
    assert!(!clock.cancel().await.unwrap());
    assert!(clock.record().await.is_err() && clock.run_now::<String>().await.is_err());
}

#[tokio::test]
async fn what_is_wrong_with_a_schedule_is_named() {
    let client = Client::new(memory());
    let check = async |builder: ratchet_engine::ScheduleBuilder, field: &str| {
        let Err(SubmitError::Invalid(refused)) = builder.create().await else { panic!("{field}") };
        assert_eq!(refused.field(), field, "{refused}");
        refused.to_string()
    };
    let play = || client.schedule(Play::Hang);
    check(play(), "schedule").await;
    check(play().cron("0 0 2 * *"), "cron").await;
    let over = check(play().cron("0 0 0 1 1 ? 2020"), "cron").await;
    assert!(over.ends_with("the last is over"), "{over}");
    check(play().cron("0 0 2 * * ?").zone("Europe/Berlim"), "zone").await;
    check(play().every(Duration::from_millis(1)), "interval").await;
    check(play().every(Duration::from_secs(5)).zone("UTC"), "zone").await;
    check(client.schedule(Play::Hang.with(|step| step.queue("No"))).every(Duration::from_secs(5)), "queue").await;
    let delayed = Play::Hang.with(|step| step.delay(Duration::from_secs(1)));
    let text = check(client.schedule(delayed).every(Duration::from_secs(5)), "delay").await;
    assert!(text.ends_with("a schedule says itself when its jobs begin"), "{text}");
    let keyed = Play::Hang.with(|step| step.business_key("mine"));
    let text = check(client.schedule(keyed).every(Duration::from_secs(5)), "business_key").await;
    assert!(text.ends_with("a schedule has one of its own, .business_key(…)"), "{text}");
}

#[tokio::test]
async fn a_declared_schedule_is_one_for_all_nodes_and_fires_once_an_instant() {
    let store = memory();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node(store.clone()).start().await.unwrap());
    }
    let all = nodes[0].schedules(&ScheduleFilter::default(), None, 10).await.unwrap().items;
    assert_eq!(all.len(), 1, "three nodes declare one schedule");
    let id = all[0].id;
    eventually("three fires", async || children(&nodes[0], id).await.len() >= 3).await;
    let jobs = children(&nodes[0], id).await;
    let mut instants: Vec<_> = jobs.iter().map(|job| job.scheduled_time.as_second()).collect();
    instants.sort_unstable();
    instants.dedup();
    assert_eq!(instants.len(), jobs.len(), "no instant has two jobs");
    eventually("their success", async || {
        children(&nodes[0], id).await.iter().filter(|job| job.state == JobState::Succeeded).count() >= 3
    })
    .await;
    for node in nodes {
        node.shutdown().await;
    }
}

#[tokio::test]
async fn a_node_that_goes_on_as_another_declares_its_schedules_again() {
    let store = Faulty::new(memory());
    let inner = store.inner.clone();
    let ratchet = quick(&Stage::default()).job::<Tick>().store(store.clone()).start().await.unwrap();
    let (before, id) = (ratchet.node_id(), declared_id("tick"));
    // While nobody hears of it, others declare it dead and retire what it alone has declared.
    store.break_heart(true);
    let other =
        NodeRegistration { id: new_node_id(), name: NodeName::new("other").unwrap(), info: NodeInfo::default() };
    eventually("its death", async || {
        inner.register(&other).await.unwrap();
        inner.orphans(other.id, Duration::from_millis(100), 10).await.unwrap();
        inner.nodes().await.unwrap().iter().all(|node| node.id != before || node.dead_at.is_some())
    })
    .await;
    assert!(inner.cancel_schedule(id, ArchiveReason::Retired, None).await.unwrap());
    store.break_heart(false);
    eventually("the new incarnation", async || ratchet.node_id() != before).await;
    eventually("the schedule", async || ratchet.find_schedule(id).await.unwrap().is_some()).await;
    ratchet.shutdown().await;
}

#[tokio::test]
async fn what_happens_to_a_schedule_is_told() {
    let ratchet = quick(&Stage::default()).store(memory()).start().await.unwrap();
    let mut events = ratchet.events();
    let clock = ratchet.schedule(Play::Hang).every(Duration::from_secs(1)).overlap(OverlapPolicy::Skip);
    let clock = clock.create().await.unwrap();
    let mut told = async |what: JobEventKind| {
        let event = event(&mut events, |event| event.job_id == clock.id() && event.what == what).await;
        assert_eq!((event.kind.as_str(), event.job_type), ("play", JobType::Recurring));
    };
    told(JobEventKind::ScheduleFired { jobs: 1 }).await;
    told(JobEventKind::ScheduleSkipped { fires: 1 }).await;
    assert!(clock.pause().await.unwrap() && clock.resume().await.unwrap() && clock.cancel().await.unwrap());
    told(JobEventKind::SchedulePaused).await;
    told(JobEventKind::ScheduleResumed).await;
    told(JobEventKind::ScheduleCanceled).await;
}

#[tokio::test]
async fn every_schedule_is_not_canceled_by_a_filter_that_says_nothing() {
    let client = Client::new(memory());
    client.schedule(Play::Hang).every(Duration::from_secs(5)).create().await.unwrap();
    let refused = client.cancel_schedules(&ScheduleFilter::default()).await.unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("cancel every schedule"), "{refused}");
    let created = ScheduleFilter { declared: Some(false), ..ScheduleFilter::default() };
    assert_eq!(client.cancel_schedules(&created).await.unwrap(), 1);
}

#[tokio::test]
async fn a_bad_declared_schedule_is_an_error_at_start() {
    let Err(StartError::Invalid(refused)) = Ratchet::builder().job::<Wrong>().store(memory()).start().await else {
        panic!("it starts");
    };
    assert!(refused.to_string().starts_with("`schedule of wrong: cron"), "{refused}");
}
