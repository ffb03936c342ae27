//! Jobs that are due later: after a delay, or at a time. They start when due, not at the next poll.

use std::time::{Duration, Instant};

use ratchet::prelude::*;
use ratchet::{Clock, SystemClock};

#[job]
async fn remind(what: String) {
    println!("remember: {what}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let ratchet = Ratchet::builder().store(store).jobs(jobs![remind]).start().await?;

    let begun = Instant::now();
    let in_a_second = SystemClock.now() + Duration::from_secs(1);
    let second = ratchet.enqueue(remind("the dentist".into())).at(in_a_second).submit().await?;
    let first = ratchet.enqueue(remind("the milk".into())).delay(Duration::from_millis(400)).submit().await?;
    println!("both are {}", first.status().await?);

    first.wait().await?;
    println!("  after {} ms", begun.elapsed().as_millis());
    second.wait().await?;
    println!("  after {} ms", begun.elapsed().as_millis());

    ratchet.shutdown().await;
    Ok(())
}
