//! Resources: handlers run with permits, and keep them for as long as they run.

use std::time::{Duration, Instant};

use ratchet_core::claim::{Boost, ClaimRequest, Pool};
use ratchet_core::store::{ClusterStore as _, ControlStore as _, ResourceStore as _, TurnStore as _};
use ratchet_core::{JobState, Kind, MemoryStore, QueueName, ResourceLimit, ResourceName};
use ratchet_engine::{
    Client, Failure, Job, JobContext, JobDefaults, Ratchet, RatchetBuilder, Slots, StartError, Timing,
};
use serde::{Deserialize, Serialize};

use crate::support::{Blocking, Play, Stage, eventually, memory, quick, quick_timing, started};

/// A node that finds out by itself that a permit is free, and not because time has passed.
pub(crate) fn node(stage: &Stage, store: MemoryStore) -> RatchetBuilder {
    let limit = ResourceLimit::new("printer", 1).unwrap().retry_delay(Duration::from_mins(10));
    quick(stage).store(store).queue("default", Slots { tasks: 10, threads: 10 }).resource_limit(limit)
}

pub(crate) async fn in_use(client: &Client) -> u32 {
    client.resources().await.unwrap()[0].in_use
}

#[tokio::test]
async fn jobs_with_a_resource_wait_for_each_other_and_no_others_do() {
    let stage = Stage::default();
    let ratchet = node(&stage, memory()).start().await.unwrap();
    let mut events = ratchet.events();
    let gate = ratchet.enqueue(Play::Gate).resource("printer").submit().await.unwrap();
    started(&mut events, gate.id()).await;
    let waiting = ratchet.enqueue(Play::Return("printed".into())).resource("printer").submit().await.unwrap();
    let free = ratchet.enqueue(Play::Return("free".into())).submit().await.unwrap();
    assert_eq!(free.result().await.unwrap(), "free");
    assert_eq!((stage.runs(waiting.id()), in_use(&ratchet).await), (0, 1));
    stage.open_gate();
    // At once, not after the delay of ten minutes.
    assert_eq!(waiting.result().await.unwrap(), "printed");
    assert_eq!(waiting.record().await.unwrap().attempts, 1, "waiting is no attempt");
    eventually("the last permit's end", async || in_use(&ratchet).await == 0).await;
}

#[tokio::test]
async fn a_canceled_handler_keeps_its_permit_until_it_has_ended() {
    let stage = Stage::default();
    // Long enough to be seen.
    let timing = Timing { cancel_grace: Duration::from_millis(400), ..quick_timing() };
    let ratchet = node(&stage, memory()).timing(timing).start().await.unwrap();
    let mut events = ratchet.events();
    let deaf = ratchet.enqueue(Play::Hang).resource("printer").submit().await.unwrap();
    started(&mut events, deaf.id()).await;
    let next = ratchet.enqueue(Play::Return("next".into())).resource("printer").submit().await.unwrap();
    let canceled = Instant::now();
    assert!(ratchet.cancel(deaf.id()).await.unwrap());
    next.result().await.unwrap();
    assert!(canceled.elapsed() >= Duration::from_millis(390), "{:?}", canceled.elapsed());
    assert_eq!((stage.most_together(), stage.dropped()), (1, 1));
}

#[tokio::test]
async fn the_permit_of_a_claim_whose_reply_was_lost_ends_though_its_job_was_canceled() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = node(&stage, store.clone()).start().await.unwrap();
    let job = ratchet.enqueue(Play::Return("x".into())).queue("lost").resource("printer").submit().await.unwrap();
    // In its name, but it does not know of it.
    let node = store.nodes().await.unwrap()[0].id;
    let pool = Pool { queue: QueueName::new("lost").unwrap(), kinds: [Kind::new(Play::KIND).unwrap()].into(), free: 1 };
    let request = ClaimRequest { node, pools: vec![pool], limit: 1, probation: false, boost: Boost::default() };
    assert_eq!(store.settle_and_claim(&[], Some(&request)).await.unwrap().claimed.len(), 1);
    assert!(store.cancel(job.id()).await.unwrap().is_some());
    eventually("the permit's end", async || in_use(&ratchet).await == 0).await;
}

#[tokio::test]
async fn a_node_that_stops_leaves_no_permit() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = node(&stage, store.clone()).drain_timeout(Duration::from_millis(10)).start().await.unwrap();
    let mut events = ratchet.events();
    let job = ratchet.enqueue(Play::Gate).resource("printer").submit().await.unwrap();
    started(&mut events, job.id()).await;
    ratchet.shutdown().await;
    assert_eq!(store.resources().await.unwrap()[0].in_use, 0);
    let successor = node(&stage, store).start().await.unwrap();
    let mut events = successor.events();
    started(&mut events, job.id()).await;
    stage.open_gate();
    assert_eq!(successor.handle::<String>(job.id()).result().await.unwrap(), "opened");
}

#[tokio::test]
async fn a_thread_that_outlives_the_drain_keeps_its_permit() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = node(&stage, store.clone()).drain_timeout(Duration::from_millis(10)).start().await.unwrap();
    let mut events = ratchet.events();
    let slow = ratchet.enqueue(Blocking(Play::BlockThread(600))).resource("printer").submit().await.unwrap();
    started(&mut events, slow.id()).await;
    let successor = node(&stage, store).start().await.unwrap();
    let next = successor.enqueue(Play::Return("next".into())).resource("printer").submit().await.unwrap();
    ratchet.shutdown().await;
    next.result().await.unwrap();
    assert_eq!(stage.most_together(), 1);
}

/// A job whose kind names its resource.
#[derive(Debug, Serialize, Deserialize)]
struct Print;

impl Job for Print {
    const KIND: &'static str = "print";
    type Output = ();

    fn defaults() -> JobDefaults {
        JobDefaults::default().resource("printer")
    }

    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

#[tokio::test]
async fn limits_are_declared_and_set_by_hand() {
    let (stage, store) = (Stage::default(), memory());
    let ratchet = node(&stage, store.clone()).job::<Print>().start().await.unwrap();
    let printer = ResourceName::new("printer").unwrap();
    ratchet.set_resource_limit(&ResourceLimit::new("printer", 0).unwrap()).await.unwrap();
    let job = ratchet.enqueue(Print).submit().await.unwrap();
    assert_eq!(job.record().await.unwrap().spec.resource.as_ref(), Some(&printer));
    // Another node that declares a limit does not undo what was set by hand.
    let other = node(&stage, store).start().await.unwrap();
    let record = &other.resources().await.unwrap()[0];
    assert_eq!((record.limit.as_ref().unwrap().max_concurrent, record.by_hand), (0, true));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(job.record().await.unwrap().state, JobState::Pending);
    assert!(ratchet.remove_resource_limit(&printer).await.unwrap());
    job.result().await.unwrap();
}

#[tokio::test]
async fn two_limits_of_one_resource_are_refused_unless_they_are_the_same() {
    let limit = |name: &str, max| ResourceLimit::new(name, max).unwrap();
    let builder = || Ratchet::builder().store(memory()).job::<Print>().resource_limit(limit("printer", 2));
    let error = builder().resource_limit(limit("printer", 5)).start().await.unwrap_err().to_string();
    assert!(error.contains("`resource_limit` of \"printer\" is given twice, as "), "{error}");
    assert!(error.contains("max_concurrent: 2") && error.contains("max_concurrent: 5"), "{error}");
    let same_and_other = builder().resource_limit(limit("printer", 2)).resource_limit(limit("plotter", 5));
    same_and_other.start().await.unwrap().shutdown().await;
}

/// A job whose kind names what cannot be a resource.
#[derive(Debug, Serialize, Deserialize)]
struct Smudge;

impl Job for Smudge {
    const KIND: &'static str = "smudge";
    type Output = ();

    fn defaults() -> JobDefaults {
        JobDefaults::default().resource("printer ")
    }

    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

#[tokio::test]
async fn a_kind_with_a_resource_that_cannot_be_is_refused_at_the_start() {
    let error = Ratchet::builder().store(memory()).job::<Smudge>().start().await.unwrap_err();
    assert!(error.to_string().contains("`resource` is \"printer \"; it must not begin or end with"), "{error}");
}

#[tokio::test]
async fn a_limit_out_of_bounds_is_refused() {
    let refused = |builder: RatchetBuilder| async { builder.start().await.unwrap_err() };
    let builder = || Ratchet::builder().store(memory()).job::<Print>();
    let good = ResourceLimit::new("printer", 1).unwrap();
    for error in [
        refused(builder().resource_limit(ResourceLimit { max_concurrent: 1_000_000, ..good.clone() })).await,
        refused(builder().resource_limit(good.clone().retry_delay(Duration::ZERO))).await,
    ] {
        assert!(matches!(&error, StartError::Invalid(_)), "{error}");
        assert!(error.to_string().contains("of resource \"printer\""), "{error}");
    }
    let (ratchet, _) = crate::support::engine().await;
    let limit = ResourceLimit { max_concurrent: 1_000_000, ..good };
    let error = ratchet.set_resource_limit(&limit).await.unwrap_err();
    assert!(error.to_string().contains("the limit is 10000"), "{error}");
}
