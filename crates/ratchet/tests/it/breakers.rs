//! A service that is down, with very many jobs that call it waiting on a real database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ratchet::prelude::*;
use ratchet::sqlite::SqliteStore;
use ratchet::{BoxError, BreakerConfig, BreakerState, CircuitBreakers, CountBy, JobFilter};
use tokio::sync::{Semaphore, watch};

const WAITING: usize = 100_000;
const SLOTS: usize = 20;
const BREAKER: BreakerConfig = BreakerConfig::FAST;

/// A service that fails, and when it is back answers those that have a leave to go.
#[derive(Clone)]
struct Payments(Arc<Inner>);

struct Inner {
    is_up: AtomicBool,
    calls: AtomicUsize,
    under_way: watch::Sender<usize>,
    leave: Semaphore,
}

#[job(kind = "test.charge", service = "payments", max_retries = 50, backoff = "none")]
async fn charge(payments: State<Payments>) -> Result<(), BoxError> {
    let Inner { is_up, calls, under_way, leave } = &*payments.0;
    calls.fetch_add(1, Ordering::SeqCst);
    if !is_up.load(Ordering::SeqCst) {
        return Err("no answer".into());
    }
    under_way.send_modify(|count| *count += 1);
    leave.acquire().await?.forget();
    Ok(())
}

#[job(kind = "test.other")]
async fn other(number: u32) -> u32 {
    number
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_jobs_of_a_failing_service_cost_nothing_and_lose_no_attempts() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("jobs.db")).await.unwrap();
    let (under_way, mut trying) = watch::channel(0);
    let payments = Payments(Arc::new(Inner {
        is_up: AtomicBool::new(false),
        calls: AtomicUsize::new(0),
        under_way,
        leave: Semaphore::new(0),
    }));
    let client = Ratchet::client(store.clone());
    for _ in 0..WAITING / 10_000 {
        client.submit_all((0..10_000).map(|_| client.enqueue(charge()))).await.unwrap();
    }
    let ratchet = Ratchet::builder()
        .store(store.clone())
        .jobs(jobs![charge, other])
        .state(payments.clone())
        .queue("default", SLOTS)
        .resilience_strategy(CircuitBreakers::default().with("payments", BREAKER.open_for(Duration::from_secs(3))))
        .start()
        .await
        .unwrap();
    let state = || ratchet.services().into_iter().find(|one| one.service == "payments").map(|one| one.state);
    until("it opens", async || state() == Some(BreakerState::Open)).await;
    let running = JobFilter { states: vec![JobState::Running], ..JobFilter::default() };
    until("what had begun has ended", async || client.count(&running, &CountBy::State).await.unwrap().jobs == 0).await;

    // While it is open others run as if nobody else waited: none of the many is read, claimed or put off.
    let (calls, claimed) = (payments.0.calls.load(Ordering::SeqCst), ratchet.stats().claimed);
    assert!(calls <= SLOTS + 3, "{calls} calls by {SLOTS} slots");
    let steps = store.backend().count_vm_steps().await.unwrap();
    let handle = ratchet.enqueue(other(7)).submit().await.unwrap();
    assert_eq!(handle.result().await.unwrap(), 7);
    let taken = steps.load(Ordering::Relaxed);
    assert!(state() == Some(BreakerState::Open), "it is open all that time");
    assert!(taken < WAITING as u64 / 4, "{taken} steps of the database for one job beside {WAITING}");
    assert_eq!(ratchet.stats().claimed, claimed + 1, "none but the other one");
    assert_eq!(payments.0.calls.load(Ordering::SeqCst), calls);

    // It is back: no more than the trials call it before the breaker closes.
    payments.0.is_up.store(true, Ordering::SeqCst);
    trying.wait_for(|count| *count == BREAKER.trials).await.unwrap();
    for number in 0..3 {
        // Turns in which more could be claimed.
        ratchet.enqueue(other(number)).submit().await.unwrap().result().await.unwrap();
    }
    assert_eq!((*trying.borrow(), state()), (BREAKER.trials, Some(BreakerState::HalfOpen)));
    payments.0.leave.add_permits(WAITING);
    until("it closes", async || state() == Some(BreakerState::Closed)).await;
    trying.wait_for(|count| *count >= 200).await.unwrap();
    ratchet.shutdown().await;

    let mut after = None;
    let mut attempts = 0;
    loop {
        let page = client.list(&JobFilter::default(), after, 1_000).await.unwrap();
        let charges = page.items.iter().filter(|job| job.spec.kind.as_str() == "test.charge");
        attempts += charges.map(|job| job.attempts as usize).sum::<usize>();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(attempts, payments.0.calls.load(Ordering::SeqCst), "an attempt is a call: none was burned by waiting");
}
