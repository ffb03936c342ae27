//! What a node tells of its queues and of jobs that do not run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratchet_core::explain::Reason;
use ratchet_engine::metrics::{Labels, names};
use ratchet_engine::{MetricsCollector, Timing};

use crate::support::{Blocking, Play, Stage, eventually, memory, quick, quick_timing, started};

/// Keeps the last value of every gauge.
#[derive(Clone, Default)]
struct Last(Arc<Mutex<BTreeMap<String, f64>>>);

impl Last {
    fn get(&self, name: &str, queue: &str) -> Option<f64> {
        self.0.lock().unwrap().get(&format!("{name}{queue}")).copied()
    }
}

impl MetricsCollector for Last {
    fn count(&self, _: &'static str, _: Labels<'_>, _: u64) {}

    fn time(&self, _: &'static str, _: Labels<'_>, _: f64) {}

    fn gauge(&self, name: &'static str, labels: Labels<'_>, value: f64) {
        let queue = labels.iter().find(|(name, _)| *name == "queue").map_or("", |(_, queue)| queue);
        self.0.lock().unwrap().insert(format!("{name}{queue}"), value);
    }
}

#[tokio::test]
async fn depths_and_ages_are_told_until_the_queue_is_empty() {
    let (stage, last) = (Stage::default(), Last::default());
    let node = quick(&stage).store(memory()).queue("default", 1).metrics_collector(last.clone());
    let timing = Timing { gauges: Duration::from_millis(20), ..quick_timing() };
    let ratchet = node.timing(timing).start().await.unwrap();
    let mut events = ratchet.events();
    let gate = ratchet.enqueue(Play::Gate).submit().await.unwrap();
    started(&mut events, gate.id()).await;
    let waiting = ratchet.enqueue(Play::FailForGood).submit().await.unwrap();
    eventually("the depth", async || last.get(names::QUEUE_DEPTH, "default") == Some(1.0)).await;
    eventually("the age", async || last.get(names::QUEUE_OLDEST, "default").is_some_and(|age| age > 0.05)).await;
    assert_eq!(last.get(names::DEAD_LETTERS, ""), Some(0.0));
    stage.open_gate();
    waiting.wait().await.unwrap();
    eventually("the end", async || last.get(names::QUEUE_DEPTH, "default") == Some(0.0)).await;
    eventually("the dead letter", async || last.get(names::DEAD_LETTERS, "") == Some(1.0)).await;
    assert_eq!(last.get(names::QUEUE_OLDEST, "default"), Some(0.0));
}

#[tokio::test]
async fn a_node_knows_that_its_breaker_is_the_reason() {
    let stage = Stage::default();
    let ratchet = quick(&stage).store(memory()).start().await.unwrap();
    ratchet.open_breaker_here("play");
    let job = ratchet.enqueue(Play::Return("at last".into())).submit().await.unwrap();
    let reasons = ratchet.explain(job.id()).await.unwrap().unwrap().reasons;
    assert_eq!(reasons, [Reason::Breaker { service: "play".to_owned(), nodes: 1, until: None }]);
    ratchet.reset_breaker_here("play");
    job.result().await.unwrap();
    let reasons = ratchet.explain(job.id()).await.unwrap().unwrap().reasons;
    assert_eq!(reasons[0].to_string(), "it has ended: SUCCEEDED");
    let health = ratchet.queue_health().await.unwrap();
    assert_eq!((health[0].recent.succeeded, health[0].waiting.count), (1, 0));
}

#[tokio::test]
async fn a_queue_without_a_free_slot_is_the_reason_however_idle_the_others_are() {
    let stage = Stage::default();
    let node = quick(&stage).store(memory()).queue("reports", 1).queue("default", 10).start().await.unwrap();
    let mut events = node.events();
    let running = node.enqueue(Play::Gate).queue("reports").submit().await.unwrap();
    started(&mut events, running.id()).await;
    let next = node.enqueue(Play::Return("at last".into())).queue("reports").submit().await.unwrap();
    let no_slot = [Reason::NoSlot { nodes: 1, slots: 1 }];
    eventually("the node itself", async || node.explain(next.id()).await.unwrap().unwrap().reasons == no_slot).await;
    let client = ratchet_engine::Client::new(node.store().clone());
    eventually("its heartbeat", async || client.explain(next.id()).await.unwrap().unwrap().reasons == no_slot).await;
    assert_eq!(client.explain(next.id()).await.unwrap().unwrap().expected, None);
    let beside = node.enqueue(Blocking(Play::Return("on a thread".into()))).queue("reports").submit().await.unwrap();
    assert_eq!(beside.result().await.unwrap(), "on a thread", "its slots are others");
    stage.open_gate();
    next.result().await.unwrap();
}
