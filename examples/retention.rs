//! What failed together is retried together; what ended long enough ago goes to the archive and is still found.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratchet::prelude::*;
use ratchet::{ArchiveScope, DeadLetterFilter, JobFilter, Retention};

#[job(max_retries = 0)]
async fn charge(gateway_up: State<Arc<AtomicBool>>, invoice: u32) -> Result<(), std::io::Error> {
    if gateway_up.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(std::io::Error::other(format!("no gateway for invoice {invoice}")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let gateway_up = Arc::new(AtomicBool::new(false));
    let retention = Retention { succeeded: Some(Duration::from_hours(7 * 24)), ..Retention::default() };
    let ratchet = Ratchet::builder()
        .store(store)
        .jobs(jobs![charge])
        .state(gateway_up.clone())
        .retention(retention)
        .start()
        .await?;

    let handles = ratchet.submit_all((1..=3).map(|invoice| ratchet.enqueue(charge(invoice)))).await?;
    for handle in &handles {
        handle.wait().await?;
    }
    let groups = ratchet.dead_letter_groups(&JobFilter::default()).await?.groups;
    for group in &groups {
        println!("{} × {}: {}", group.count, group.kind, group.error);
    }

    println!("the gateway is back:");
    gateway_up.store(true, Ordering::Relaxed);
    let filter = DeadLetterFilter { fingerprint: Some(groups[0].fingerprint.clone()), ..DeadLetterFilter::default() };
    println!("  {} retried", ratchet.retry_all(&filter, 100).await?.count);

    for handle in &handles {
        handle.result().await?;
    }

    // Nodes do this all the time, for what ended longer ago than their retention says; here nobody wants to wait.
    let archived = ratchet.archive(JobState::Succeeded, Duration::ZERO).await?;
    println!("  {archived} archived");
    let in_archive = JobFilter { archive: ArchiveScope::Archived, ..JobFilter::default() };
    for job in ratchet.list(&in_archive, None, 10).await?.items {
        println!("  {} is {} and archived", job.id, job.state);
    }
    ratchet.shutdown().await;
    Ok(())
}
