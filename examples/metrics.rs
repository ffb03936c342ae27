//! What a node does, as figures: for Prometheus, or for a collector of one's own.

use ratchet::prelude::*;

#[job]
async fn greet(name: String) -> Result<usize, Failure> {
    if name.is_empty() {
        Err(Failure::do_not_retry("nobody to greet", "a name does not appear by itself"))
    } else {
        Ok(name.len())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let exporter = ratchet::prometheus::install()?;
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let ratchet = Ratchet::builder().store(store).jobs(jobs![greet]).start().await?;
    for name in ["Ada", "Grace", ""] {
        ratchet.enqueue(greet(name.into())).submit().await?.wait().await?;
    }
    ratchet.shutdown().await;
    // An application would answer GET /metrics with this.
    for line in exporter.render().lines().filter(|line| line.starts_with("ratchet_jobs")) {
        if !line.contains("_bucket") {
            println!("{line}");
        }
    }
    Ok(())
}
