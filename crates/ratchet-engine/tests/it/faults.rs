//! What happens when the store, or the node, fails.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ratchet_core::node::{NodeInfo, NodeRegistration};
use ratchet_core::store::*;
use ratchet_core::*;
use ratchet_engine::{JobEventKind, Timing, new_node_id};

use crate::faulty::{Fault, Faulty, holds};
use crate::support::{Play, Stage, event, eventually, memory, quick, quick_timing, started};

fn faulty() -> (Faulty, Stage) {
    (Faulty::new(memory()), Stage::default())
}

#[tokio::test]
async fn a_claim_whose_reply_is_lost_is_handed_back_and_run() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    store.lose_a_claim();
    let begun = Instant::now();
    let handle = ratchet.enqueue(Play::Return("found".into())).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "found");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let record = handle.record().await.unwrap();
    assert_eq!((stage.runs(handle.id()), record.attempts, record.crash_count), (1, 1, 0));
    assert_eq!(ratchet.stats().lost_claims, 1);
}

#[tokio::test]
async fn outcomes_outlive_an_outage_and_keep_their_slots() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store.clone()).queue("default", 2).start().await.unwrap();
    let mut events = ratchet.events();
    let a = ratchet.enqueue(Play::Gate).submit().await.unwrap();
    let b = ratchet.enqueue(Play::Gate).submit().await.unwrap();
    started(&mut events, a.id()).await;
    started(&mut events, b.id()).await;
    let outage = Instant::now() + Duration::from_millis(300);
    store.plan(move |_, _| (Instant::now() < outage).then_some(Fault::Down));
    let waiting = ratchet.enqueue(Play::Return("after".into())).submit().await.unwrap();
    stage.open_gate();
    stage.open_gate();
    for handle in [&a, &b] {
        assert_eq!(handle.result().await.unwrap(), "opened");
        assert_eq!(stage.runs(handle.id()), 1);
    }
    assert!(Instant::now() >= outage, "nothing can be settled while the database is down");
    waiting.result().await.unwrap();
    assert!(ratchet.stats().turn_errors > 0);
}

#[tokio::test]
async fn a_lost_commit_reply_is_recognized_as_our_own_write() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    let mut events = ratchet.events();
    let mut lose_one = true;
    store.plan(move |settlements, _| {
        (!settlements.is_empty() && std::mem::take(&mut lose_one)).then_some(Fault::LostReply)
    });
    let handle = ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap();
    event(&mut events, |e| matches!(e.what, JobEventKind::Completed { .. })).await;
    handle.result().await.unwrap();
    let stats = ratchet.stats();
    assert_eq!((stats.conflicts, stats.settled, stage.runs(handle.id())), (0, 1, 1));
    assert_eq!(ratchet.attempts(handle.id()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_settlement_that_the_database_refuses_does_not_harm_the_others() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    store.poison("unstorable");
    let jobs = (0..20).map(|n| {
        let text = if n == 7 { "unstorable".to_owned() } else { n.to_string() };
        ratchet.enqueue(Play::Return(text))
    });
    let handles = ratchet.submit_all(jobs.collect::<Vec<_>>()).await.unwrap();
    for (n, handle) in handles.iter().enumerate() {
        let record = handle.wait().await.unwrap();
        assert_eq!(record.state, JobState::Succeeded, "job {n}");
        assert_eq!(record.result.is_none(), n == 7, "only the bad one lost its result: {n}");
        assert_eq!(stage.runs(handle.id()), 1);
    }
    assert_eq!(ratchet.stats().minimal, 1);
}

#[tokio::test]
async fn results_outlive_a_database_that_refuses_everything_for_a_while() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    // As with a privilege that somebody took away: until the second time that even the smallest form is refused.
    let mut smallest = 0;
    store.plan(move |settlements, _| {
        if settlements.is_empty() || smallest == 2 {
            return None;
        }
        smallest += usize::from(!settlements.iter().any(|settlement| holds(settlement, "kept")));
        Some(Fault::Refused)
    });
    let handle = ratchet.enqueue(Play::Return("kept".into())).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "kept");
    assert_eq!((ratchet.stats().minimal, stage.runs(handle.id())), (0, 1));
}

#[tokio::test]
async fn a_reply_that_is_lost_while_settling_apart_is_recognized_as_our_own_write() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store.clone()).queue("default", 2).start().await.unwrap();
    store.poison("unstorable");
    let (mut together, mut lose_one) = (false, true);
    store.plan(move |settlements, _| {
        together |= settlements.len() == 2;
        match settlements {
            [_] if !together => Some(Fault::Down),
            [alone] if holds(alone, "fine") && std::mem::take(&mut lose_one) => Some(Fault::LostReply),
            _ => None,
        }
    });
    let jobs = ["fine", "unstorable"].map(|text| ratchet.enqueue(Play::Return(text.into())));
    let handles = ratchet.submit_all(jobs).await.unwrap();
    for handle in &handles {
        assert_eq!(handle.wait().await.unwrap().state, JobState::Succeeded);
    }
    eventually("both are settled", async || ratchet.stats().settled + ratchet.stats().conflicts == 2).await;
    assert_eq!(ratchet.stats().conflicts, 0);
}

#[tokio::test]
async fn a_node_that_cannot_beat_cancels_its_work_and_goes_on_when_it_can() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    let mut events = ratchet.events();
    let handle = ratchet.enqueue(Play::UntilCanceled).submit().await.unwrap();
    started(&mut events, handle.id()).await;
    store.break_heart(true);
    event(&mut events, |e| matches!(e.what, JobEventKind::Deferred { .. })).await;
    let record = handle.record().await.unwrap();
    assert_eq!((record.state, record.attempts, record.crash_count), (JobState::Pending, 0, 0));
    store.break_heart(false);
    started(&mut events, handle.id()).await;
    assert!(ratchet.cancel(handle.id()).await.unwrap());
}

#[tokio::test]
async fn a_node_that_was_declared_dead_finishes_nothing_and_goes_on_as_another() {
    let (store, stage) = faulty();
    let inner = store.inner.clone();
    // Not so often that it finds out by reconciling, before it has a result to be refused.
    let timing = Timing { reconcile: Duration::from_mins(1), ..quick_timing() };
    let ratchet = quick(&stage).store(store.clone()).timing(timing).start().await.unwrap();
    let mut events = ratchet.events();
    let before = ratchet.node_id();
    let handle = ratchet.enqueue(Play::Gate).max_retries(0).submit().await.unwrap();
    started(&mut events, handle.id()).await;
    // Another node declares it dead behind its back and takes the job.
    store.break_heart(true);
    let other =
        NodeRegistration { id: new_node_id(), name: NodeName::new("other").unwrap(), info: NodeInfo::default() };
    let orphans = loop {
        inner.register(&other).await.unwrap();
        let found = inner.orphans(other.id, Duration::from_millis(100), 10).await.unwrap();
        if !found.jobs.is_empty() {
            break found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let fence = orphans.jobs[0].fence;
    assert_eq!(fence.node, before);
    let rescue = Settlement::of(fence, Change::Rescue { crash_count: 1 });
    assert_eq!(inner.settle_and_claim(&[rescue], None).await.unwrap().settled, [Settled::Applied]);
    stage.open_gate();
    eventually("the conflict", async || ratchet.stats().conflicts == 1).await;
    store.break_heart(false);
    eventually("the new incarnation", async || ratchet.node_id() != before).await;
    assert_eq!(ratchet.stats().reincarnations, 1);
    stage.open_gate();
    assert_eq!(handle.result().await.unwrap(), "opened");
    assert_eq!(handle.record().await.unwrap().crash_count, 0, "an attempt that ended normally clears the count");
}

#[tokio::test]
async fn jobs_of_a_dead_node_are_rescued_and_run_one_at_a_time() {
    let (store, stage) = faulty();
    let inner = store.inner.clone();
    // A node that claims eight jobs and is never heard of again.
    let dead = NodeRegistration { id: new_node_id(), name: NodeName::new("dead").unwrap(), info: NodeInfo::default() };
    inner.register(&dead).await.unwrap();
    let client = ratchet_engine::Ratchet::client(inner.clone());
    let jobs: Vec<_> = (0..8).map(|n| client.enqueue(Play::Return(n.to_string()))).collect();
    let handles = client.submit_all(jobs).await.unwrap();
    let pool = Pool { queue: QueueName::default(), kinds: [Kind::new("play").unwrap()].into(), free: 8 };
    let request =
        ClaimRequest { node: dead.id, pools: vec![pool], limit: 8, probation: false, boost: claim::Boost::OFF };
    assert_eq!(inner.settle_and_claim(&[], Some(&request)).await.unwrap().claimed.len(), 8);
    let ratchet = quick(&stage).store(store).start().await.unwrap();
    for handle in &handles {
        ratchet.handle::<String>(handle.id()).result().await.unwrap();
        let attempts = ratchet.attempts(handle.id()).await.unwrap();
        assert_eq!(attempts[0].status, AttemptStatus::Crashed);
        assert_eq!(handle.record().await.unwrap().attempts, 1, "a crash is no attempt");
    }
    assert_eq!(stage.most_together(), 1, "jobs on probation run one at a time");
    assert_eq!(ratchet.stats().rescued, 8);
    eventually("the dead node's removal", async || ratchet.nodes().await.unwrap().len() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_every_worker_is_blocked_stays_alive() {
    let (store, stage) = faulty();
    let inner = store.inner.clone();
    let ratchet = quick(&stage).store(store).start().await.unwrap();
    let before = ratchet.node_id();
    let mut events = ratchet.events();
    // Async handlers that block: both workers of the runtime, for three times the grace.
    let blocked: Vec<_> = (0..2).map(|_| ratchet.enqueue(Play::BlockThread(1_800)).max_retries(0)).collect();
    let handles = ratchet.submit_all(blocked).await.unwrap();
    started(&mut events, handles[1].id()).await;
    for handle in &handles {
        handle.result().await.unwrap();
    }
    assert_eq!(ratchet.node_id(), before);
    assert_eq!(inner.nodes().await.unwrap()[0].dead_at, None);
    assert_eq!(ratchet.stats().reincarnations, 0);
}

#[tokio::test]
async fn a_submit_goes_on_when_the_runtime_of_the_one_who_wrote_it_ends() {
    let (store, _) = faulty();
    let client = ratchet_engine::Ratchet::client(store.clone());
    store.hold_submits.store(true, std::sync::atomic::Ordering::SeqCst);
    let first = client.clone();
    let (sender, ended) = tokio::sync::oneshot::channel();
    let held = store.submit_held.clone();
    // A runtime of its own, as a blocking handler may use, which writes for everybody and then ends.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::select! {
                _ = first.enqueue(Play::Gate).submit() => unreachable!("it is held"),
                () = held.notified() => {}
            }
        });
        let _ = sender.send(runtime);
    });
    let runtime = ended.await.unwrap();
    let mine = tokio::spawn(client.enqueue(Play::Gate).submit());
    tokio::task::yield_now().await;
    store.hold_submits.store(false, std::sync::atomic::Ordering::SeqCst);
    runtime.shutdown_background();
    let submitted = tokio::time::timeout(Duration::from_secs(5), mine).await.expect("it does not hang").unwrap();
    assert_eq!(client.find(submitted.unwrap().id()).await.unwrap().unwrap().state, JobState::Pending);
}

/// A runtime that runs only while somebody blocks on it, as a blocking client may keep one.
fn occasional_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[tokio::test]
async fn a_submit_does_not_depend_on_the_runtime_of_the_one_before_it() {
    let (mut store, _) = faulty();
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    store.submit_gate = Some(gate.clone());
    let client = ratchet_engine::Ratchet::client(store.clone());
    let first = client.clone();
    let (sender, returned) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = occasional_runtime();
        runtime.block_on(first.enqueue(Play::Gate).submit()).unwrap();
        // Still there, but nobody blocks on it any more.
        let _ = sender.send(runtime);
    });
    store.submit_held.notified().await;
    let mut mine = Box::pin(client.enqueue(Play::Gate).submit());
    assert!(futures_util::poll!(&mut mine).is_pending(), "it waits until the first is written");
    gate.add_permits(2);
    let runtime = returned.await.unwrap();
    let submitted = tokio::time::timeout(Duration::from_secs(5), mine).await.expect("it does not hang");
    assert_eq!(client.find(submitted.unwrap().id()).await.unwrap().unwrap().state, JobState::Pending);
    runtime.shutdown_background();
}

#[tokio::test]
async fn a_submit_goes_on_when_the_one_who_would_write_it_never_begins() {
    let (store, _) = faulty();
    let client = ratchet_engine::Ratchet::client(store);
    let first = client.clone();
    std::thread::spawn(move || {
        occasional_runtime().block_on(async move {
            let mut submit = Box::pin(first.enqueue(Play::Gate).submit());
            assert!(futures_util::poll!(&mut submit).is_pending());
        });
    })
    .join()
    .unwrap();
    let mine = tokio::time::timeout(Duration::from_secs(5), client.enqueue(Play::Gate).submit());
    mine.await.expect("it does not hang").unwrap();
}

#[derive(Debug)]
struct WildStrategy(u32);

impl ratchet_engine::PollingStrategy for WildStrategy {
    fn after_poll(&mut self, _poll: ratchet_engine::Poll) -> Duration {
        self.0 += 1;
        if self.0.is_multiple_of(2) { panic!("a strategy gone wrong") } else { Duration::MAX }
    }
    fn woken(&mut self) {
        panic!("a strategy gone wrong");
    }
}

#[tokio::test]
async fn a_wild_polling_strategy_cannot_stop_the_node() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store).polling_strategy(WildStrategy(0)).start().await.unwrap();
    for n in 0..5 {
        let handle = ratchet.enqueue(Play::Return(n.to_string())).submit().await.unwrap();
        assert_eq!(handle.result().await.unwrap(), n.to_string());
    }
}

#[tokio::test]
async fn a_handler_that_cancels_its_own_token_harms_nothing() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store).start().await.unwrap();
    let handle = ratchet.enqueue(Play::CancelsItsToken).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), "still here");
}

#[tokio::test]
async fn results_are_written_also_when_a_reconcile_takes_longer_than_the_time_between_two() {
    let (mut store, stage) = faulty();
    store.slow.reconcile = Duration::from_millis(100);
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    let mut events = ratchet.events();
    let [gate, other] = [Play::Gate, Play::UntilCanceled].map(|play| ratchet.enqueue(play));
    let (gate, other) = (gate.submit().await.unwrap(), other.submit().await.unwrap());
    started(&mut events, gate.id()).await;
    started(&mut events, other.id()).await;
    store.reconciles.subscribe().wait_for(|count| *count >= 2).await.unwrap();
    stage.open_gate();
    let opened = tokio::time::timeout(Duration::from_secs(5), gate.result()).await;
    assert_eq!(opened.expect("it is written").unwrap(), "opened");
    assert!(ratchet.cancel(other.id()).await.unwrap());
}

#[tokio::test]
async fn results_are_written_while_jobs_are_canceled_one_after_another() {
    const JOBS: usize = 50;
    let (mut store, stage) = faulty();
    store.slow.reconcile = Duration::from_millis(50);
    let ratchet = quick(&stage).store(store.clone()).queue("default", JOBS + 1).start().await.unwrap();
    let gate = ratchet.enqueue(Play::Gate).submit().await.unwrap();
    let jobs = (0..JOBS).map(|_| ratchet.enqueue(Play::Hang));
    let jobs = ratchet.submit_all(jobs.collect::<Vec<_>>()).await.unwrap();
    eventually("all run", async || stage.total_runs() == JOBS + 1).await;
    // A cancel during each reconcile: so the next one is wanted as soon as it ends.
    let (client, mut asked) = ((*ratchet).clone(), store.reconciles.subscribe());
    let canceling = tokio::spawn(async move {
        for job in jobs {
            asked.changed().await.unwrap();
            assert!(client.cancel(job.id()).await.unwrap());
        }
    });
    store.reconciles.subscribe().wait_for(|count| *count >= 3).await.unwrap();
    stage.open_gate();
    assert_eq!(gate.result().await.unwrap(), "opened");
    assert!(!canceling.is_finished(), "it is not written only when nobody cancels any more");
    canceling.abort();
}

#[tokio::test]
async fn a_reconcile_that_fails_is_tried_again_after_longer_and_longer_waits() {
    let (store, stage) = faulty();
    store.failures.of(&["reconcile"]);
    let timing = Timing { reconcile: Duration::from_millis(10), ..quick_timing() };
    let node = quick(&stage).store(store.clone()).timing(timing);
    let ratchet = node.start().await.unwrap();
    ratchet.enqueue(Play::UntilCanceled).submit().await.unwrap();
    let mut asked = store.reconciles.subscribe();
    asked.wait_for(|count| *count >= 1).await.unwrap();
    let begun = Instant::now();
    asked.wait_for(|count| *count >= 6).await.unwrap();
    // 20, 40, 80, 160 and 320 ms, each a quarter more or less.
    assert!(begun.elapsed() >= Duration::from_millis(450), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_database_that_is_down_is_asked_ever_less_often_whatever_wakes_the_node() {
    let (store, stage) = faulty();
    let ratchet = quick(&stage).store(store.clone()).start().await.unwrap();
    let mut events = ratchet.events();
    let job = ratchet.enqueue(Play::Gate).submit().await.unwrap();
    started(&mut events, job.id()).await;
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = calls.clone();
    store.plan(move |_, _| {
        seen.lock().unwrap().push(Instant::now());
        Some(Fault::Down)
    });
    stage.open_gate();
    // A result waits to be written, jobs wait to be claimed, and every submit wakes the pump.
    eventually("six calls", async || {
        ratchet.enqueue(Play::Return("more".into())).submit().await.unwrap();
        calls.lock().unwrap().len() >= 6
    })
    .await;
    let calls = calls.lock().unwrap().clone();
    let gaps: Vec<Duration> = calls.windows(2).take(5).map(|pair| pair[1] - pair[0]).collect();
    for (failures, gap) in (0..).zip(&gaps) {
        // Twenty milliseconds, spread by a quarter, and twice as long after each failure.
        assert!(*gap >= Duration::from_millis(15) * 2_u32.pow(failures), "after {failures} more: {gaps:?}");
    }
    store.plan(|_, _| None);
    assert_eq!(job.result().await.unwrap(), "opened", "and it goes on when the database is back");
}
