//! Word of new work between nodes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_conformance::coordinator::Bus;
use ratchet_core::coordinator::{CoordinatorStats, ListenGuard, Listener};
use ratchet_core::prepare::PrepareSubmit;
use ratchet_core::schedule::OverlapPolicy;
use ratchet_core::store::ScheduleStore as _;
use ratchet_core::{
    Backoff, ClusterCoordinator, Hint, ManualClock, MemoryStore, NodeId, Priority, QueueName, Timestamp,
};
use ratchet_engine::{Client, Failure, Job, JobContext, Poll, PollingStrategy, Ratchet};
use serde::{Deserialize, Serialize};

use crate::faulty::Faulty;
use crate::support::{Play, Stage, eventually, memory, quick, started};

/// Polls once at the start and then never, so that only a hint explains that work is found.
#[derive(Debug)]
struct OnlyOnce;

impl PollingStrategy for OnlyOnce {
    fn after_poll(&mut self, _poll: Poll) -> Duration {
        Duration::from_hours(1)
    }
    fn woken(&mut self) {}
}

/// Carries nothing and remembers its hints. Panics at hints of the lowest priority, and in `flush` while it has one.
#[derive(Debug, Default)]
struct Recorder {
    hints: Mutex<Vec<Hint>>,
}

impl Recorder {
    fn take(&self) -> Vec<Priority> {
        std::mem::take(&mut *self.hints.lock().unwrap()).into_iter().map(|hint| hint.priority).collect()
    }
}

#[async_trait]
impl ClusterCoordinator for Recorder {
    fn notify(&self, hint: &Hint) {
        self.hints.lock().unwrap().push(hint.clone());
        assert_ne!(hint.priority, Priority::Lowest, "the test lets this one panic");
    }
    fn listen(&self, _own: NodeId, _listener: Listener) -> ListenGuard {
        ListenGuard::new(())
    }
    async fn flush(&self) {
        let lowest = self.hints.lock().unwrap().iter().any(|hint| hint.priority == Priority::Lowest);
        assert!(!lowest, "the test lets this flush panic");
    }
    async fn close(&self) {}
    fn stats(&self) -> CoordinatorStats {
        CoordinatorStats::default()
    }
}

/// A job that no node of these tests runs.
#[derive(Debug, Serialize, Deserialize)]
struct Elsewhere;

impl Job for Elsewhere {
    const KIND: &'static str = "elsewhere";
    type Output = ();
    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

fn play() -> Play {
    Play::Return("x".into())
}

/// Submits a job and waits for its end, which comes soon if anybody is woken for it.
async fn runs(client: &Client) {
    let handle = client.enqueue(play()).submit().await.unwrap();
    tokio::time::timeout(Duration::from_secs(3), handle.wait()).await.expect("a node is woken").unwrap();
}

/// Longer than a node looks for more after a start or an end: from then on only a hint can tell it.
async fn node_is_idle() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}

/// Longer than a hint waits for others to leave with.
async fn window_passes() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn a_submit_elsewhere_starts_at_once_and_nobody_is_woken_by_itself() {
    let (bus, store, stage) = (Bus::default(), memory(), Stage::default());
    let node = quick(&stage).store(store.clone()).coordinator(bus.coordinator()).polling_strategy(OnlyOnce);
    let node = node.start().await.unwrap();
    let client = Client::with_coordinator(store, bus.coordinator());
    for hints in 1..=3 {
        node_is_idle().await;
        runs(&client).await;
        assert_eq!(node.stats().hints, hints);
    }
    window_passes().await;
    runs(&node).await;
    window_passes().await;
    assert_eq!(node.stats().hints, 3);
    node.shutdown().await;
}

#[tokio::test]
async fn those_who_share_what_the_store_offers_hear_each_other() {
    let (bus, stage) = (Bus::default(), Stage::default());
    let shared: Arc<dyn ClusterCoordinator> = bus.coordinator();
    let mut store = Faulty::new(memory());
    store.coordinator = Some(shared.clone());
    let start = async || quick(&stage).store(store.clone()).polling_strategy(OnlyOnce).start().await.unwrap();
    let (first, second) = (start().await, start().await);
    let client = Ratchet::client(store.clone());
    node_is_idle().await;
    runs(&client).await;
    assert_eq!((first.stats().hints, second.stats().hints), (1, 1));
    window_passes().await;
    runs(&first).await;
    assert_eq!((first.stats().hints, second.stats().hints), (1, 2));
    // A node that stops takes its listener along and leaves the coordinator to others.
    first.shutdown().await;
    node_is_idle().await;
    runs(&client).await;
    assert_eq!(second.stats().hints, 3);
    assert_eq!(shared.stats().listener_failures, 0);
    second.shutdown().await;
}

#[tokio::test]
async fn what_can_start_now_is_announced_and_what_cannot_is_not() {
    let recorder = Arc::new(Recorder::default());
    let client = Client::with_coordinator(memory(), recorder.clone());
    let announces = |expected: &[Priority]| assert_eq!(recorder.take(), expected);
    let hour = Duration::from_hours(1);
    let first = client.enqueue(play()).priority(Priority::Low).submit().await.unwrap();
    announces(&[Priority::Low]);
    client.enqueue(play()).delay(hour).submit().await.unwrap();
    announces(&[]);
    client.enqueue(play()).delay(hour).immediate().submit().await.unwrap();
    announces(&[Priority::Normal]);
    client.enqueue(play()).delay(hour).priority(Priority::Critical).submit().await.unwrap();
    announces(&[Priority::Critical]);
    let of = |priority| client.enqueue(play()).priority(priority);
    let late = client.enqueue(play()).priority(Priority::Normal).delay(hour);
    client.submit_all([of(Priority::Low), of(Priority::High), late]).await.unwrap();
    announces(&[Priority::High]);
    client.submit_all([client.enqueue(play()).delay(hour)]).await.unwrap();
    announces(&[]);
    client.enqueue(play()).replace(first.id()).await.unwrap();
    announces(&[Priority::Normal]);
    client.enqueue(play()).business_key("k").submit().await.unwrap();
    announces(&[Priority::Normal]);
    client.enqueue(play()).business_key("k").submit().await.unwrap_err();
    announces(&[]);
    client.enqueue(play()).priority(Priority::Lowest).submit().await.expect("a panic of the coordinator is no failure");
    announces(&[Priority::Lowest]);
}

#[tokio::test]
async fn a_coordinator_that_panics_in_flush_does_not_keep_a_node_from_shutting_down() {
    let recorder = Arc::new(Recorder::default());
    let node = quick(&Stage::default()).store(memory()).coordinator(recorder.clone()).start().await.unwrap();
    node.enqueue(Elsewhere).priority(Priority::Lowest).submit().await.unwrap();
    node.flush().await;
    assert_eq!(node.stats().panics["coordinator"], 2, "one in notify, one in flush");
    node.shutdown().await;
}

#[tokio::test]
async fn what_a_person_lets_go_on_is_announced() {
    let recorder = Arc::new(Recorder::default());
    let client = Client::with_coordinator(memory(), recorder.clone());
    let job = client.enqueue(play()).priority(Priority::High).submit().await.unwrap();
    recorder.take();
    client.pause(job.id()).await.unwrap();
    assert_eq!(recorder.take(), []);
    client.resume(job.id()).await.unwrap();
    assert_eq!(recorder.take(), [Priority::High]);
    client.resume_queue(&QueueName::new("default").unwrap()).await.unwrap();
    assert_eq!(recorder.take(), [Priority::Normal]);
    client.cancel(job.id()).await.unwrap();
    assert_eq!(recorder.take(), []);
}

#[tokio::test]
async fn a_nodes_own_retries_and_follow_ups_are_announced_to_nobody_who_does_not_need_them() {
    let (recorder, stage) = (Arc::new(Recorder::default()), Stage::default());
    let node = quick(&stage).store(memory()).coordinator(recorder.clone()).start().await.unwrap();
    let backoff = Backoff::Fixed(Duration::from_millis(20));
    let retried = node.enqueue(Play::FailTimes(2)).backoff(backoff).on_success(play()).submit().await.unwrap();
    retried.wait().await.unwrap();
    eventually("the callback", async || stage.total_runs() == 4).await;
    window_passes().await;
    assert_eq!(recorder.take(), [Priority::Normal], "the submit alone");
    // Nobody here runs this kind, so that others must hear of it.
    node.enqueue(play()).on_success(Elsewhere).submit().await.unwrap().wait().await.unwrap();
    window_passes().await;
    assert_eq!(recorder.take(), [Priority::Normal, Priority::Normal]);
    node.shutdown().await;
}

#[tokio::test]
async fn a_submit_in_a_transaction_of_the_caller_is_announced_by_the_store_or_not_at_all() {
    let recorder = Arc::new(Recorder::default());
    let client = Client::with_coordinator(memory(), recorder.clone());
    let prepared = client.enqueue(play()).priority(Priority::High).prepare().unwrap();
    let hint = prepared.hint.expect("the store may tell it with the commit");
    assert_eq!(hint.priority, Priority::High);
    let late = client.enqueue(play()).delay(Duration::from_secs(9)).prepare().unwrap();
    assert_eq!(late.hint, None);
    assert_eq!(recorder.take(), []);
    // It speaks as this client does otherwise.
    client.enqueue(play()).submit().await.unwrap();
    assert_eq!(recorder.hints.lock().unwrap()[0].origin, hint.origin);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_a_free_slot_does_not_poll_for_a_hint() {
    let (bus, store, stage) = (Bus::default(), memory(), Stage::default());
    let node = quick(&stage).store(store.clone()).coordinator(bus.coordinator()).queue("default", 1);
    let node = node.polling_strategy(OnlyOnce).start().await.unwrap();
    let other = bus.coordinator();
    let mut events = node.events();
    // Both sorts of slots: for tasks and for threads.
    let gate = node.enqueue(Play::Gate).submit().await.unwrap();
    let blocking = node.enqueue(crate::support::Blocking(Play::Gate)).submit().await.unwrap();
    let mut ids = [gate.id(), blocking.id()];
    ids.sort();
    started(&mut events, ids[0]).await;
    eventually("both run", async || node.stats().vitals.running == 2).await;
    let turns = node.stats().turns;
    for _ in 0..20 {
        other.notify(&Hint { origin: ratchet_engine::new_node_id(), priority: Priority::Critical });
    }
    eventually("the hints", async || node.stats().hints == 20).await;
    window_passes().await;
    assert_eq!(node.stats().turns, turns);
    // What the hint spoke of is found as soon as there is room.
    let client = Client::with_coordinator(store, bus.coordinator());
    let waiting = client.enqueue(play()).submit().await.unwrap();
    stage.open_gate();
    stage.open_gate();
    tokio::time::timeout(Duration::from_secs(5), waiting.wait()).await.expect("it is found").unwrap();
    stage.open_gate();
    node.shutdown().await;
}

#[tokio::test]
async fn jobs_that_a_client_releases_are_told_to_other_nodes() {
    let clock = Arc::new(ManualClock::at(Timestamp::UNIX_EPOCH));
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let recorder = Arc::new(Recorder::default());
    let client = Client::with_coordinator(store.clone(), recorder.clone());
    let told = async |what: &str| eventually(what, async || !recorder.take().is_empty()).await;
    let open = client.batch().open().await.unwrap();
    open.seal().await.unwrap();
    told("the end of a batch that is sealed").await;
    let queued = client.schedule(play()).every(Duration::from_secs(1)).overlap(OverlapPolicy::Queue);
    queued.create().await.unwrap();
    clock.advance(Duration::from_secs(2));
    let (now, due) = store.due_schedules(1).await.unwrap();
    let firing = due[0].firing(now).unwrap();
    store.fire_schedules(std::slice::from_ref(&firing)).await.unwrap();
    recorder.take();
    assert!(client.cancel(firing.jobs[0].id).await.unwrap());
    told("the job that waited for the one that was canceled").await;
}
