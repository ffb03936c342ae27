//! A service that fails is left alone for a while: its jobs wait without using up their attempts, others run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratchet::prelude::*;
use ratchet::{BreakerConfig, BreakerState, CircuitBreakers};

#[job(service = "payments", breaker = "fast", max_retries = 10, backoff = "fixed 10ms")]
async fn charge(up: State<Arc<AtomicBool>>, invoice: u64) -> Result<u64, Failure> {
    if up.load(Ordering::Relaxed) { Ok(invoice) } else { Err(Failure::new("payments does not answer")) }
}

#[job]
async fn greet(name: String) {
    println!("  hello, {name}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let up = Arc::new(AtomicBool::new(false));
    // As its kind says, but tried again sooner.
    let soon = BreakerConfig::FAST.open_for(Duration::from_millis(500));
    let ratchet = Ratchet::builder()
        .store(store)
        .jobs(jobs![charge, greet])
        .state(up.clone())
        .resilience_strategy(CircuitBreakers::default().with("payments", soon))
        .start()
        .await?;

    println!("payments is down:");
    let charges = ratchet.submit_all((0..100).map(|invoice| ratchet.enqueue(charge(invoice)))).await?;
    while !ratchet.services().iter().any(|one| one.state == BreakerState::Open) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("  its breaker is open");
    ratchet.enqueue(greet("Ada".into())).submit().await?.result().await?;

    println!("payments is back:");
    up.store(true, Ordering::Relaxed);
    for charge in &charges {
        charge.result().await?;
    }
    println!("  {} charged", charges.len());

    ratchet.shutdown().await;
    Ok(())
}
