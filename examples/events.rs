//! A stream of what happens to jobs, told after the commit. (`RatchetBuilder::on_event` calls a function instead.)

use ratchet::prelude::*;

#[job(max_retries = 1, backoff = "fixed 20ms")]
async fn work(fate: String) -> Result<(), String> {
    if fate == "good" { Ok(()) } else { Err(format!("a {fate} fate")) }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let ratchet = Ratchet::builder().store(store).jobs(jobs![work]).start().await?;

    // From here on; what must not be missed after a crash belongs in a callback, which is a job.
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
    Ok(())
}
