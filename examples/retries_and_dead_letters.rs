//! Failed attempts are repeated after a backoff; what cannot succeed goes to the dead letter queue and waits for a person.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratchet::prelude::*;

#[derive(Debug, thiserror::Error, JobError)]
enum SendError {
    #[error("the mail server is busy")]
    Busy,
    #[error("no such address")]
    #[do_not_retry("an address does not appear by itself")]
    NoSuchAddress,
}

#[job(max_retries = 3, backoff = "exponential 50ms")]
async fn send(ctx: &JobContext, bob_exists: State<Arc<AtomicBool>>, to: String) -> Result<(), SendError> {
    println!("  attempt {} to write to {to}", ctx.attempt());
    match (to.as_str(), ctx.attempt()) {
        ("ada", 1 | 2) => Err(SendError::Busy),
        ("bob", _) if !bob_exists.load(Ordering::Relaxed) => Err(SendError::NoSuchAddress),
        _ => Ok(()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let bob_exists = Arc::new(AtomicBool::new(false));
    let ratchet = Ratchet::builder().store(store).jobs(jobs![send]).state(bob_exists.clone()).start().await?;

    println!("a busy server is tried again:");
    let job = ratchet.enqueue(send("ada".into())).submit().await?.wait().await?;
    println!("  {} after {} attempts", job.state, job.attempts);

    println!("a missing address is not:");
    let handle = ratchet.enqueue(send("bob".into())).submit().await?;
    let job = handle.wait().await?;
    println!("  {} after {} attempt: {}", job.state, job.attempts, job.last_error.unwrap_or_default());

    println!("somebody removes the cause and retries it:");
    bob_exists.store(true, Ordering::Relaxed);
    ratchet.retry(handle.id()).await?;
    println!("  {}", handle.wait().await?.state);

    ratchet.shutdown().await;
    Ok(())
}
