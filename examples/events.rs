//! What happens to jobs, told after the commit: as a stream, and to a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ratchet::prelude::*;

#[job(max_retries = 1, backoff = "fixed 20ms")]
async fn work(fate: String) -> Result<(), String> {
    if fate == "good" { Ok(()) } else { Err(format!("a {fate} fate")) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    // A listener is called on a task of its own: it can neither slow nor break the engine.
    let failed_attempts = Arc::new(AtomicUsize::new(0));
    let counter = failed_attempts.clone();
    let builder = Ratchet::builder().store(store).jobs(jobs![work]).on_event(move |event| {
        if let JobEventKind::Failed { .. } = event.what {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let ratchet = builder.start().await?;

    let mut events = ratchet.events();
    for fate in ["good", "bad"] {
        println!("{fate}:");
        ratchet.enqueue(work(fate.into())).submit().await?;
        while let Some(event) = events.next().await {
            println!("  {:?}", event.what);
            if matches!(event.what, JobEventKind::Completed { .. } | JobEventKind::DeadLettered { .. }) {
                break;
            }
        }
    }

    ratchet.shutdown().await;
    println!("{} attempts failed", failed_attempts.load(Ordering::Relaxed));
    Ok(())
}
