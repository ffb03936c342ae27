//! Jobs that do nothing, so that what is measured is Ratchet and its database.

use std::time::{Duration, Instant};

use anyhow::Result;
use ratchet::{Client, Failure, Job, JobContext, JobHandle, Ratchet, RatchetBuilder, Stats};
use serde::{Deserialize, Serialize};

use crate::metrics::rate;

/// A job that does nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Noop {
    /// Tells it from others.
    pub n: u64,
}

impl Job for Noop {
    const KIND: &'static str = "bench.noop";
    type Output = ();

    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

/// Jobs of one submit, where their number is not what is measured.
pub const TOGETHER: usize = 1_000;

/// Submits this number of them, `together` at a time.
pub async fn fill(client: &Client, jobs: usize, together: usize) -> Result<()> {
    fill_with(client, jobs, together, |n| Noop { n }).await.map(drop)
}

/// Submits this number of jobs of any kind, `together` at a time. Returns the last one.
pub async fn fill_with<J: Job>(
    client: &Client,
    jobs: usize,
    together: usize,
    job: impl Fn(u64) -> J,
) -> Result<Option<JobHandle<J::Output>>> {
    let mut last = None;
    for first in (0..jobs).step_by(together) {
        let portion = first..jobs.min(first + together);
        last = client.submit_all(portion.map(|n| client.enqueue(job(n as u64)))).await?.pop();
    }
    Ok(last)
}

/// How many of the jobs that wait a node runs a second, from its start until so many have ended; and what it had counted then.
pub async fn drain(node: RatchetBuilder, jobs: usize) -> Result<(f64, Stats)> {
    let begun = Instant::now();
    let ratchet = node.start().await?;
    settled(&ratchet, jobs).await?;
    let (rate, stats) = (rate(jobs, begun.elapsed()), ratchet.stats());
    ratchet.shutdown().await;
    Ok((rate, stats))
}

/// A node that has not done its work by then will not.
const LONGEST: Duration = Duration::from_mins(30);

/// Waits until a node has settled so many jobs.
pub async fn settled(ratchet: &Ratchet, jobs: usize) -> Result<()> {
    let begun = Instant::now();
    while ratchet.stats().settled < jobs as u64 {
        anyhow::ensure!(begun.elapsed() < LONGEST, "{} of {jobs} settled in {LONGEST:?}", ratchet.stats().settled);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
