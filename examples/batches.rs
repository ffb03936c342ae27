//! A batch: many jobs counted together, what follows from them, and children that come as a stream.

use std::error::Error;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ratchet::prelude::*;

#[derive(Debug, thiserror::Error, JobError)]
#[error("address {0} does not exist")]
#[do_not_retry("it will not begin to")]
struct NoSuchAddress(u64);

#[job(kind = "newsletter.send")]
async fn send(reader: u64) -> Result<(), NoSuchAddress> {
    if reader.is_multiple_of(20) { Err(NoSuchAddress(reader)) } else { Ok(()) }
}

/// It follows the batch and has its summary.
#[job(kind = "newsletter.report")]
async fn report(summary: Prev<BatchSummary>) {
    println!("{} of {} were sent, in {} ms", summary.succeeded, summary.total, summary.total_ms);
}

#[job(kind = "newsletter.clean-up")]
async fn clean_up(summary: Prev<BatchSummary>) {
    println!("{} addresses are to be removed", summary.failed);
}

/// Submitted with the child that passes a threshold, once for each, on however many nodes the children run.
#[job(kind = "newsletter.tell")]
async fn tell(ctx: &JobContext) -> Result<(), Failure> {
    let progress = ctx.origin().and_then(|batch| batch.result.as_ref()).map(ratchet::JsonText::decode::<BatchProgress>);
    if let Some(progress) = progress.transpose().map_err(Failure::new)? {
        println!("{:.0} % are through", progress.percent);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = SqliteStore::open("jobs.db").await?;
    let jobs = jobs![send, report, clean_up, tell];
    let ratchet = Ratchet::builder().store(store).jobs(jobs).start().await?;

    // All at once: up to ten thousand children, in one transaction.
    let batch = ratchet
        .batch()
        .children((1..=100).map(send))
        .when_success_rate(0.9, report())
        .then_on_batch_failure(clean_up())
        .on_progress(tell(), ProgressEvery::Percent(50))
        .submit()
        .await?;
    let summary = batch.summary().await?;
    println!("{} succeeded, {} failed", summary.succeeded, summary.failed);

    // As a stream: any number, a chunk in memory at a time. They run while the stream goes on.
    let readers = stream::iter(1..=2_000_u64).map(send);
    let batch = ratchet.batch().chunk(500).stream(readers).await?;
    let mut progress = batch.progress(Duration::from_millis(50));
    while let Some(progress) = progress.next().await {
        let progress = progress?;
        println!("{} of {}", progress.done, progress.total);
    }
    let first = batch.children(None, 3).await?;
    println!("the last of its children: {:?}", first.items.iter().map(|job| job.state).collect::<Vec<_>>());
    ratchet.shutdown().await;
    Ok(())
}
