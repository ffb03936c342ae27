use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::store::ClusterStore as _;
use ratchet_core::{Kind, QueueName, ResourceLimit};
use ratchet_engine::{BoxError, LifecycleHook, Ratchet, StartError, Timing};

use crate::faulty::Faulty;
use crate::support::{Play, Stage, memory, quick, quick_timing};

async fn refused(builder: ratchet_engine::RatchetBuilder, part: &str) -> StartError {
    let error = builder.start().await.expect_err(part);
    assert!(error.to_string().contains(part), "{error} lacks {part:?}");
    error
}

#[tokio::test]
async fn a_node_that_could_not_work_does_not_start() {
    let stage = Stage::default();
    refused(Ratchet::builder().job::<Play>().state(stage.clone()), "no store").await;
    refused(Ratchet::builder().store(memory()), "no job is registered").await;
    refused(Ratchet::builder().store(memory()).job::<Play>(), "play needs a State<it::support::Stage>").await;
    refused(quick(&stage).store(memory()).job::<Play>(), "play is registered twice").await;
    refused(quick(&stage).store(memory()).queue("Bad", 1), "`queue`").await;
    refused(
        quick(&stage).store(memory()).node_name("n".repeat(65)),
        "`node name` is 65 characters long; the limit is 64",
    )
    .await;
    refused(quick(&stage).store(memory()).claim_max(0), "`claim_max`").await;
    refused(quick(&stage).store(memory()).drain_timeout(Duration::MAX), "`drain_timeout` is").await;
    let timing = Timing { grace: Duration::from_millis(149), ..quick_timing() };
    let problem = "`timing.grace` is 149ms; use 150ms to 86400s (at least three heartbeats)";
    refused(quick(&stage).store(memory()).timing(timing), problem).await;
}

#[tokio::test]
async fn a_database_that_does_not_answer_cannot_keep_a_node_from_saying_so() {
    let mut store = Faulty::new(memory());
    store.slow.register = Duration::MAX;
    let timing = Timing { store_deadline: Duration::from_millis(100), ..quick_timing() };
    let started = quick(&Stage::default()).store(store).timing(timing).start();
    let refused = tokio::time::timeout(Duration::from_secs(5), started).await.expect("it does not hang");
    let error = refused.unwrap_err();
    assert!(format!("{error:?}").contains("did not answer within 100ms"), "{error:?}");
}

#[tokio::test]
async fn a_node_that_could_not_declare_its_resources_is_not_left_behind() {
    let store = Faulty::new(memory());
    store.failures.of(&["declare_resource"]);
    let limit = ResourceLimit::new("printer", 1).unwrap();
    refused(quick(&Stage::default()).store(store.clone()).resource_limit(limit), "took the database away").await;
    assert_eq!(store.inner.nodes().await.unwrap(), []);
}

#[derive(Clone)]
struct Recorder {
    calls: Arc<Mutex<Vec<String>>>,
    name: &'static str,
    ends: HookEnd,
}

#[derive(Clone, Copy)]
enum HookEnd {
    Good,
    Fails,
    Panics,
}

impl Recorder {
    fn note(&self, call: &str) {
        self.calls.lock().unwrap().push(format!("{} {call}", self.name));
    }
}

#[async_trait]
impl LifecycleHook for Recorder {
    async fn before_start(&self) -> Result<(), BoxError> {
        self.note("before_start");
        match self.ends {
            HookEnd::Good => Ok(()),
            HookEnd::Fails => Err("no".into()),
            HookEnd::Panics => panic!("a hook gone wrong"),
        }
    }
    async fn after_start(&self) -> Result<(), BoxError> {
        self.note("after_start");
        Err("a late failure is logged".into())
    }
    async fn before_stop(&self) -> Result<(), BoxError> {
        self.note("before_stop");
        Ok(())
    }
    async fn after_stop(&self) -> Result<(), BoxError> {
        self.note("after_stop");
        Ok(())
    }
}

#[tokio::test]
async fn hooks_are_paired_also_when_the_start_fails() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let hook = |name, ends| Recorder { calls: calls.clone(), name, ends };
    let stage = Stage::default();
    let ratchet = quick(&stage)
        .store(memory())
        .lifecycle_hook(hook("a", HookEnd::Good))
        .lifecycle_hook(hook("b", HookEnd::Good))
        .start()
        .await
        .unwrap();
    ratchet.shutdown().await;
    let all = ["a before_start", "b before_start", "a after_start", "b after_start"];
    let end = ["b before_stop", "a before_stop", "b after_stop", "a after_stop"];
    assert_eq!(*calls.lock().unwrap(), [all, end].concat());
    for (ends, said) in [(HookEnd::Fails, "the start: no"), (HookEnd::Panics, "the hook panicked: a hook gone wrong")] {
        calls.lock().unwrap().clear();
        let builder = quick(&stage).store(memory()).lifecycle_hook(hook("a", HookEnd::Good));
        refused(builder.lifecycle_hook(hook("b", ends)).lifecycle_hook(hook("c", HookEnd::Good)), said).await;
        assert_eq!(*calls.lock().unwrap(), ["a before_start", "b before_start", "b after_stop", "a after_stop"]);
    }
}

#[tokio::test]
async fn a_node_shows_what_it_runs() {
    let stage = Stage::default();
    let ratchet = quick(&stage).store(memory()).node_name("left").queue("reports", 2).start().await.unwrap();
    let nodes = ratchet.nodes().await.unwrap();
    assert_eq!((nodes.len(), nodes[0].id, nodes[0].name.as_str()), (1, ratchet.node_id(), "left"));
    let info = &nodes[0].info;
    assert_eq!(info.queues.iter().map(QueueName::as_str).collect::<Vec<_>>(), ["default", "reports"]);
    assert_eq!(info.kinds.iter().map(Kind::as_str).collect::<Vec<_>>(), ["play", "play.blocking"]);
    assert_eq!(info.blocking, info.kinds[1..]);
    assert_eq!(info.slots, info.pools.iter().map(|pool| pool.slots).sum::<u64>());
    assert_eq!((info.services.len(), info.grace_ms), (0, Some(600)), "kinds that name no service are their own");
}
