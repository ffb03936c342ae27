//! What a job returns comes back with its type, also to a process that only submits.

use ratchet::ResultError;
use ratchet::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Statistics {
    words: usize,
    longest: String,
}

#[job(max_retries = 0)]
async fn analyse(text: String) -> Result<Statistics, &'static str> {
    let longest = text.split_whitespace().max_by_key(|word| word.len()).ok_or("there are no words")?;
    Ok(Statistics { words: text.split_whitespace().count(), longest: longest.to_owned() })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("jobs.db");
    let worker = Ratchet::builder().store(SqliteStore::open(&path).await?).jobs(jobs![analyse]).start().await?;

    // As in another process: no handlers, no poller.
    let client = Ratchet::client(SqliteStore::open(&path).await?);
    let handle = client.enqueue(analyse("durable jobs survive restarts".into())).submit().await?;
    let statistics = handle.result().await?;
    println!("{} words, the longest is {:?}", statistics.words, statistics.longest);

    let handle = client.enqueue(analyse(String::new())).submit().await?;
    match handle.result().await {
        Err(ResultError::Failed { error, .. }) => println!("no result: {error}"),
        other => println!("unexpected: {other:?}"),
    }

    worker.shutdown().await;
    Ok(())
}
