//! A waiting job can be canceled, and a running one too: its handler is told, on whatever node it runs.

use std::time::Duration;

use ratchet::prelude::*;

#[job]
async fn transcode(ctx: &JobContext, film: String) {
    println!("transcoding {film}");
    for minute in 0..90 {
        tokio::select! {
            () = ctx.canceled() => {
                println!("told to stop at minute {minute}; cleaning up");
                return;
            }
            () = tokio::time::sleep(Duration::from_millis(100)) => ctx.progress(f64::from(minute + 1) / 90.0),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let ratchet = Ratchet::builder().store(store).jobs(jobs![transcode]).start().await?;

    let later = ratchet.enqueue(transcode("Solaris".into())).delay(Duration::from_hours(1)).submit().await?;
    println!("cancel a waiting job: {}", ratchet.cancel(later.id()).await?);

    let mut events = ratchet.events();
    let running = ratchet.enqueue(transcode("Stalker".into())).submit().await?;
    while !matches!(events.next().await.map(|event| event.what.clone()), Some(JobEventKind::Started { .. })) {}
    println!("cancel a running job: {}", ratchet.cancel(running.id()).await?);
    println!("it is {}", running.status().await?);
    println!("cancel it again: {}", ratchet.cancel(running.id()).await?);

    // Waits for the handler, which has been told.
    ratchet.shutdown().await;
    Ok(())
}
