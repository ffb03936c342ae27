//! The smallest program: one job, one node, one SQLite file.

use ratchet::prelude::*;

#[job]
async fn hello(name: String) {
    println!("hello, {name}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let ratchet = Ratchet::builder().store(store).jobs(jobs![hello]).start().await?;

    let handle = ratchet.enqueue(hello("world".into())).submit().await?;
    let job = handle.wait().await?;
    println!("job {} {}", job.id, job.state);

    ratchet.shutdown().await;
    Ok(())
}
