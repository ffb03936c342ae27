//! How queues are, and why a job does not run.

use std::time::Duration;

use ratchet_core::claim::{Boost, ClaimRequest};
use ratchet_core::explain::{Explanation, LocalNode, Reason, explain};
use ratchet_core::flow::Join;
use ratchet_core::insight::{COUNTED_MAX, Depth, LaneRange, QueueHealth, queue_health};
use ratchet_core::node::{NodeInfo, NodeVitals, PoolInfo};
use ratchet_core::service::{NodeServices, ServiceStand, ServiceVitals};
use ratchet_core::store::{SubmitUnit, WaitingLane};
use ratchet_core::{
    JobId, JobState, Kind, NewJob, NodeId, Priority, ResourceLimit, ResourceName, ServiceName, SignalKey,
};

use crate::batches;
use crate::harness::{
    Harness, KIND, mins, new_job, pool, queue, registration, request, success, work, work_after, works,
};
use crate::signals::awaiting;
use crate::workflows::Plan;

fn in_queue(name: &str, mut job: NewJob) -> NewJob {
    job.spec.queue = queue(name);
    job
}

fn with_priority(priority: Priority, mut job: NewJob) -> NewJob {
    job.spec.priority = priority;
    job
}

fn with_resource(name: &str, mut job: NewJob) -> NewJob {
    job.spec.resource = Some(ResourceName::new(name).unwrap());
    job
}

fn depth(count: u64) -> Depth {
    Depth { count, or_more: false }
}

impl Harness {
    async fn health(&self, name: &str) -> QueueHealth {
        let all = queue_health(&*self.store).await.unwrap();
        all.into_iter().find(|health| health.queue.as_str() == name).expect("the queue is told of")
    }

    /// A node that says what it runs, and what that calls.
    async fn serving(&self, queues: &[&str], slots: u64) -> NodeId {
        let mut node = registration("serving");
        node.info.queues = queues.iter().map(|name| queue(name)).collect();
        node.info.slots = slots;
        node.info.services = [(Kind::new(KIND).unwrap(), ServiceName::new("payments").unwrap())].into();
        self.store.register(&node).await.unwrap();
        node.id
    }

    /// A node that may be silent for so long.
    async fn patient(&self, grace: Duration) -> NodeId {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap();
        let mut node = registration("patient");
        node.info = NodeInfo { queues: vec![queue("default")], slots: 10, grace_ms: Some(grace_ms), ..node.info };
        self.store.register(&node).await.unwrap();
        node.id
    }

    /// A node that says which slots it has.
    async fn pooled(&self, pools: &[(&str, u64)]) -> NodeId {
        let mut node = registration("pooled");
        node.info.queues = pools.iter().map(|(name, _)| queue(name)).collect();
        node.info.slots = pools.iter().map(|(_, slots)| slots).sum();
        let pool = |(name, slots): &(&str, u64)| PoolInfo { queue: queue(name), slots: *slots, ..PoolInfo::default() };
        node.info.pools = pools.iter().map(pool).collect();
        self.store.register(&node).await.unwrap();
        node.id
    }

    async fn explained(&self, id: JobId, here: &LocalNode) -> Explanation {
        explain(&*self.store, id, here).await.unwrap().expect("the job is there")
    }
}

pub(crate) async fn lanes_are_told_with_their_first_job(harness: Harness) {
    assert_eq!(harness.store.waiting_lanes().await.unwrap(), []);
    let first = harness.submit(work()).await;
    harness.advance(mins(1));
    harness.submit_each(works(3)).await;
    let later = harness.submit(with_priority(Priority::High, work_after(mins(60)))).await;
    let other = harness.submit(in_queue("other", with_resource("printer", new_job("another")))).await;
    let deferred = harness.running(with_priority(Priority::Critical, work())).await;
    harness.defer(&deferred, mins(60)).await;
    let crashed = harness.running(with_priority(Priority::Critical, work())).await;
    harness.rescue(&crashed).await;
    let head = async |id| harness.job(id).await.scheduled_time;
    let lane = |priority, head| WaitingLane {
        probation: false,
        resource: None,
        queue: queue("default"),
        kind: Kind::new(KIND).unwrap(),
        priority,
        head,
    };
    let expected = [
        lane(Priority::Normal, head(first).await),
        lane(Priority::High, head(later).await),
        WaitingLane {
            resource: Some(ResourceName::new("printer").unwrap()),
            queue: queue("other"),
            kind: Kind::new("another").unwrap(),
            ..lane(Priority::Normal, head(other).await)
        },
        WaitingLane { probation: true, ..lane(Priority::Critical, head(crashed.job.id).await) },
    ];
    assert_eq!(harness.store.waiting_lanes().await.unwrap(), expected);
    let now = harness.now().await;
    let ranges: Vec<LaneRange> = expected.iter().map(|lane| LaneRange::of(lane, None)).collect();
    assert_eq!(harness.store.count_waiting(&ranges, 100).await.unwrap(), [4, 1, 1, 1]);
    assert_eq!(harness.store.count_waiting(&ranges, 2).await.unwrap(), [2, 1, 1, 1], "no more are counted");
    let soon = ratchet_core::clock::later(now, mins(1));
    let due: Vec<LaneRange> = expected.iter().map(|lane| LaneRange::of(lane, Some(soon))).collect();
    assert_eq!(harness.store.count_waiting(&due, 100).await.unwrap(), [4, 0, 1, 1]);
    let before_all = LaneRange::of(&expected[0], Some(head(first).await));
    assert_eq!(harness.store.count_waiting(&[before_all], 100).await.unwrap(), [0]);
    assert!(harness.store.count_waiting(&[], 100).await.unwrap().is_empty());
}

pub(crate) async fn a_queues_health_says_what_waits_runs_and_ended(harness: Harness) {
    for (index, minutes) in [10, 5, 0].into_iter().enumerate() {
        harness.submit(in_queue("busy", work())).await;
        harness.submit(in_queue("busy", with_priority(Priority::High, work_after(mins(600))))).await;
        if index < 2 {
            harness.advance(mins(minutes));
        }
    }
    let busy = request(harness.node, vec![pool("busy", &[KIND])]);
    let running = harness.claim(&ClaimRequest { limit: 1, ..busy.clone() }).await;
    let health = harness.health("busy").await;
    assert_eq!((health.waiting, health.running, health.paused), (depth(5), 1, false));
    let oldest = health.oldest_wait.expect("one is due");
    assert!(oldest >= mins(5) && oldest < mins(6), "{oldest:?}");
    assert_eq!((health.recent.succeeded, health.recent.failed), (0, 0));

    harness.succeed(&running[0]).await;
    let failing = harness.claim(&ClaimRequest { limit: 1, ..busy }).await;
    harness.fail(&failing[0], "boom").await;
    harness.store.pause_queue(&queue("busy")).await.unwrap();
    harness.store.pause_queue(&queue("idle")).await.unwrap();
    let health = harness.health("busy").await;
    assert_eq!((health.waiting, health.running, health.paused), (depth(4), 0, true));
    assert_eq!((health.recent.succeeded, health.recent.failed), (1, 1));
    // As the settlements say.
    assert_eq!(health.recent.run.p50, Duration::from_millis(1_500));
    assert_eq!(health.recent.wait.p99, Duration::from_millis(250));
    assert!(health.recent.per_minute > 0.0);
    let idle = harness.health("idle").await;
    assert_eq!((idle.waiting, idle.oldest_wait, idle.paused), (depth(0), None, true));
}

pub(crate) async fn of_a_deep_lane_no_more_is_counted_than_matters(harness: Harness) {
    for _ in 0..11 {
        harness.submit_units(vec![works(1_000)]).await;
    }
    let health = harness.health("default").await;
    assert_eq!(health.waiting, Depth { count: COUNTED_MAX, or_more: true });
}

pub(crate) async fn ended_jobs_are_counted_as_far_as_matters(harness: Harness) {
    for _ in 0..3 {
        harness.failed(work(), "boom").await;
    }
    let done = harness.running(work()).await;
    harness.succeed(&done).await;
    let count = async |state, most| harness.store.count_ended(state, most).await.unwrap();
    assert_eq!(count(JobState::Failed, 100).await, 3);
    assert_eq!(count(JobState::Failed, 2).await, 2);
    assert_eq!((count(JobState::Succeeded, 100).await, count(JobState::Canceled, 100).await), (1, 0));
}

/// Every gate, in the order in which it is asked.
pub(crate) async fn every_situation_has_its_reason(harness: Harness) {
    let here = LocalNode { boost: Boost::every(mins(15)), ..LocalNode::default() };
    // Nobody runs anything yet.
    let nobody = harness.submit(work()).await;
    let no_node = |living| Reason::NoNode { kind: Kind::new(KIND).unwrap(), queue: queue("default"), living };
    assert_eq!(harness.explained(nobody, &here).await.reasons, [no_node(1)], "the harness's node serves no queue");
    let node = harness.serving(&["default", "paused"], 10).await;

    let check = async |name: &str, id: JobId, reasons: &[Reason], here: &LocalNode| {
        let explained = harness.explained(id, here).await;
        assert_eq!(explained.reasons, reasons, "{name}");
        assert_eq!(explained.state, harness.state(id).await);
        assert!(explained.reasons.iter().all(|reason| !reason.to_string().is_empty()));
    };
    check("nothing holds it up", nobody, &[], &here).await;
    let expected = harness.explained(nobody, &here).await.expected.expect("the next claim takes it");
    crate::harness::assert_about(expected, harness.now().await);

    let mut heartbeat = harness.store.open_heartbeat().await.unwrap();
    let until = ratchet_core::clock::later(harness.now().await, mins(1));
    let open = ServiceVitals { service: "payments".to_owned(), stand: ServiceStand::Open { until } };
    let open = NodeVitals { services: NodeServices::of([open]), ..NodeVitals::default() };
    let breaker = Reason::Breaker { service: "payments".to_owned(), nodes: 1, until: Some(until) };
    assert!(heartbeat.beat(node, open).await.unwrap());
    check("its breaker is open", nobody, &[breaker], &here).await;
    let closed = LocalNode { node: Some((node, NodeVitals::default())), ..here.clone() };
    check("its breaker was open, as the node that is asked knows", nobody, &[], &closed).await;
    let other = harness.serving(&["default"], 10).await;
    check("its breaker is open on one of two nodes", nobody, &[], &here).await;
    let service = ServiceName::new("payments").unwrap();
    harness.store.open_breaker(&service).await.unwrap();
    let held = Reason::Breaker { service: "payments".to_owned(), nodes: 2, until: None };
    check("somebody holds it open, whatever nodes have said", nobody, &[held], &here).await;
    harness.store.reset_breaker(&service).await.unwrap();
    check("nobody holds it open any more", nobody, &[], &here).await;
    harness.store.deregister(other).await.unwrap();
    check("it was reset after the node has told of it", nobody, &[], &here).await;

    let busy = |running| NodeVitals { running, ..NodeVitals::default() };
    assert!(heartbeat.beat(node, busy(10)).await.unwrap());
    check("no free slot", nobody, &[Reason::NoSlot { nodes: 1, slots: 10 }], &here).await;
    assert!(heartbeat.beat(node, busy(9)).await.unwrap());

    // Slots belong to queues: one may have none left while another is idle.
    let pooled = harness.pooled(&[("idle", 10), ("reports", 1)]).await;
    let report = harness.submit(in_queue("reports", work())).await;
    check("nobody has said which slots are taken", report, &[], &here).await;
    let taken =
        |taken: [u32; 2]| NodeVitals { running: taken.iter().sum(), taken: taken.into(), ..NodeVitals::default() };
    assert!(heartbeat.beat(pooled, taken([0, 1])).await.unwrap());
    check("no free slot in its queue", report, &[Reason::NoSlot { nodes: 1, slots: 1 }], &here).await;
    assert_eq!(harness.explained(report, &here).await.expected, None);
    assert!(heartbeat.beat(pooled, taken([10, 0])).await.unwrap());
    check("no free slot in another queue", report, &[], &here).await;
    let fresh = LocalNode { node: Some((pooled, taken([0, 1]))), ..here.clone() };
    check("as the node that is asked knows", report, &[Reason::NoSlot { nodes: 1, slots: 1 }], &fresh).await;
    harness.store.cancel(report).await.unwrap();
    harness.store.deregister(pooled).await.unwrap();

    let pass = async |by| {
        harness.advance(by);
        assert!(harness.beat(harness.node).await && harness.beat(node).await);
    };
    pass(mins(1)).await;
    let urgent = harness.submit(with_priority(Priority::High, work())).await;
    let young = harness.submit(work()).await;
    check("the most urgent", urgent, &[], &here).await;
    check("one is more urgent", nobody, &[Reason::Behind { jobs: depth(1) }], &here).await;
    check("one is more urgent, one is older", young, &[Reason::Behind { jobs: depth(2) }], &here).await;
    pass(mins(15)).await;
    check("all have aged alike", young, &[Reason::Behind { jobs: depth(2) }], &here).await;

    let later = harness.submit(work_after(mins(60))).await;
    let at = harness.job(later).await.scheduled_time;
    let behind = |jobs| Reason::Behind { jobs: depth(jobs) };
    check("its time has not come", later, &[Reason::NotDue { at }, behind(3)], &here).await;
    for id in [urgent, nobody, young] {
        harness.store.cancel(id).await.unwrap();
    }
    assert_eq!(harness.explained(later, &here).await.expected, Some(at));
    check("it has ended", urgent, &[Reason::Ended { state: JobState::Canceled, archived: false }], &here).await;

    let paused = harness.submit(work()).await;
    harness.store.pause(paused).await.unwrap();
    check("it is paused", paused, &[Reason::Paused], &here).await;
    assert_eq!(harness.explained(paused, &here).await.expected, None);
    let paused = harness.submit(work_after(mins(60))).await;
    let at = harness.job(paused).await.scheduled_time;
    harness.store.pause(paused).await.unwrap();
    check("it is paused, and its time has not come", paused, &[Reason::Paused, Reason::NotDue { at }], &here).await;
    let failed = harness.failed(work(), "boom").await;
    let ended = Reason::Ended { state: JobState::Failed, archived: false };
    check("it has failed", failed, std::slice::from_ref(&ended), &here).await;
    harness.store.pause(failed).await.unwrap();
    check("it is paused, and has failed", failed, &[Reason::Paused, ended], &here).await;

    harness.store.pause_queue(&queue("paused")).await.unwrap();
    let held = harness.submit(in_queue("paused", work())).await;
    check("its queue is paused", held, &[Reason::QueuePaused { queue: queue("paused") }], &here).await;

    let elsewhere = harness.submit(in_queue("elsewhere", new_job("unknown"))).await;
    let unknown = Reason::NoNode { kind: Kind::new("unknown").unwrap(), queue: queue("elsewhere"), living: 2 };
    check("nobody knows its kind", elsewhere, &[unknown], &here).await;

    let running = harness.running(work()).await;
    let runs = Reason::Running { node: Some(harness.node), since: running.job.picked_at };
    check("it runs", running.job.id, &[runs], &here).await;
    harness.defer(&running, mins(30)).await;
    let until = harness.job(running.job.id).await.deferred_until.expect("it was put off");
    check("it was put off", running.job.id, &[Reason::PutOff { until }], &here).await;
    assert_eq!(harness.explained(running.job.id, &here).await.expected, Some(until));

    let crashed = harness.running(work()).await;
    harness.rescue(&crashed).await;
    let probation = |running| Reason::Probation { crash_count: 1, ahead: depth(0), running };
    check("it is on probation", crashed.job.id, &[probation(vec![])], &here).await;
    assert_eq!(harness.claim_one().await.job.id, crashed.job.id);
    let second = harness.running(work()).await;
    harness.rescue(&second).await;
    let reasons = [probation(vec![crashed.job.id])];
    check("it is on probation, and another such job runs", second.job.id, &reasons, &here).await;
    harness.store.cancel(crashed.job.id).await.unwrap();
    harness.store.cancel(second.job.id).await.unwrap();

    harness.store.set_resource(&ResourceLimit::new("printer", 1).unwrap()).await.unwrap();
    let printing = harness.running(with_resource("printer", work())).await;
    let waiting = harness.submit(with_resource("printer", work())).await;
    let resource = ResourceName::new("printer").unwrap();
    let permit = Reason::Permit { resource, in_use: 1, max_concurrent: 1 };
    check("no permit is left", waiting, &[permit], &here).await;
    let free = harness.submit(work()).await;
    check("who waits for a permit is not in its way", free, &[], &here).await;
    harness.store.cancel(free).await.unwrap();
    harness.turn(&[success(&printing)], None).await;
    check("a permit is left", waiting, &[], &here).await;
    harness.store.cancel(waiting).await.unwrap();

    let plan = Plan::join(Join::All);
    let (parents, child) = (vec![plan.jobs[0].id, plan.jobs[1].id], plan.jobs[2].id);
    harness.store.submit(&[plan.unit()]).await.unwrap().remove(0).unwrap();
    check("two jobs have to end first", child, &[Reason::Dependency { jobs: parents.clone() }], &here).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    let left = parents.into_iter().filter(|id| *id != first.job.id).collect();
    check("one job has to end first", child, &[Reason::Dependency { jobs: left }], &here).await;

    let batch = batches::Plan::of(works(3));
    let id = batch.parent.id;
    let unit: SubmitUnit = batch.unit();
    harness.store.submit(&[unit]).await.unwrap().remove(0).unwrap();
    check("its children have to end first", id, &[Reason::Children { left: 3, open: false }], &here).await;

    let approval = harness.submit(awaiting("approval", None)).await;
    let signal = Reason::Signal { key: SignalKey::new("approval").unwrap(), expires_at: None };
    check("a signal has to come first", approval, &[signal], &here).await;

    let unknown = explain(&*harness.store, crate::harness::new_id(), &here).await.unwrap();
    assert_eq!(unknown, None);
}

/// The last node of a cluster that dies has nobody who could declare it dead.
pub(crate) async fn nodes_that_nobody_has_heard_of_do_not_count(harness: Harness) {
    let here = LocalNode::default();
    let no_node = |living| Reason::NoNode { kind: Kind::new(KIND).unwrap(), queue: queue("default"), living };
    let orphan = harness.running(work()).await.job;
    let waiting = harness.submit(work()).await;
    let node = harness.serving(&["default"], 10).await;
    let check = async |name: &str, id: JobId, reasons: &[Reason]| {
        assert_eq!(harness.explained(id, &here).await.reasons, reasons, "{name}");
    };
    check("all live", waiting, &[]).await;
    check("all live", orphan.id, &[Reason::Running { node: Some(harness.node), since: orphan.picked_at }]).await;
    let heard = harness.find_node(harness.node).await.expect("it is registered").last_heartbeat;
    let orphaned = |living| Reason::Orphaned { node: harness.node, heard: Some(heard), living };
    harness.advance(mins(1));
    check("nobody lives", waiting, &[no_node(0)]).await;
    check("nobody lives", orphan.id, &[orphaned(0), no_node(0)]).await;
    assert_eq!(harness.explained(waiting, &here).await.expected, None);

    assert!(harness.beat(node).await, "nobody has declared it dead");
    check("one lives", waiting, &[]).await;
    check("one lives, not that which runs it", orphan.id, &[orphaned(1)]).await;
    harness.store.deregister(node).await.unwrap();
    let other = harness.serving(&["other"], 10).await;
    check("one lives that does not run it", orphan.id, &[orphaned(1), no_node(1)]).await;
    harness.store.deregister(other).await.unwrap();

    let patient = harness.patient(mins(5)).await;
    harness.advance(mins(4));
    check("one lives that may be silent for long", waiting, &[]).await;
    harness.advance(mins(1));
    check("it was silent for longer", waiting, &[no_node(0)]).await;
    harness.store.deregister(patient).await.unwrap();
}
