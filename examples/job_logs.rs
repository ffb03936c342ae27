//! What a job writes down is kept with it: its own lines, and what code below it gives to `tracing`. A sink of one's own
//! can take the lines instead of the database.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet::prelude::*;
use ratchet::{JobLogLayer, JobLogSink, JobLogs, LogFilter, LogLevel, LogLine, LogSinkError};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

#[job(max_retries = 1, backoff = "none")]
async fn import(ctx: &JobContext, file: String) -> Result<u32, String> {
    ctx.log().field("file", &file).info("importing");
    ctx.log().debug("this is below what is kept");
    let rows = parse(&file);
    if ctx.attempt() == 1 {
        ctx.log().field("row", 3).error("row 3 has no date");
        return Err("bad data".to_owned());
    }
    ctx.log().info(format_args!("{rows} rows"));
    Ok(rows)
}

/// Knows nothing of jobs, and still its words are in the job's log.
fn parse(file: &str) -> u32 {
    tracing::warn!(file, separator = ";", "guessed the separator");
    7
}

/// Takes the lines instead of the database.
struct Stdout;

#[async_trait]
impl JobLogSink for Stdout {
    async fn write(&self, lines: Arc<[LogLine]>) -> Result<(), LogSinkError> {
        for line in lines.iter() {
            println!("  stdout: {} {}", line.level, line.message);
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::registry().with(JobLogLayer::new().with_filter(LevelFilter::INFO)).init();
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;

    println!("in the database:");
    let ratchet = Ratchet::builder().store(store.clone()).jobs(jobs![import]).start().await?;
    let handle = ratchet.enqueue(import("march.csv".into())).submit().await?;
    handle.result().await?;
    // Lines are written in the background; a node that stops writes what is left.
    ratchet.shutdown().await;
    let client = Ratchet::client(store.clone());
    for line in client.job_log(handle.id(), &LogFilter::default(), None, 100).await?.lines {
        let fields = line.fields.map(|fields| format!(" {fields:?}")).unwrap_or_default();
        println!("  try {} {:<5} {}{fields}", line.attempt, line.level, line.message);
    }
    let errors = LogFilter { level_min: LogLevel::Error, ..LogFilter::default() };
    println!("{} of them is an error", client.job_log(handle.id(), &errors, None, 100).await?.lines.len());

    println!("elsewhere:");
    let logs = JobLogs { level_min: Some(LogLevel::Debug), ..JobLogs::to(Stdout) };
    let builder = Ratchet::builder().store(store).jobs(jobs![import]).job_logs(logs);
    let ratchet = builder.start().await?;
    ratchet.enqueue(import("april.csv".into())).submit().await?.result().await?;
    ratchet.shutdown().await;
    Ok(())
}
