//! The same work as the product's, done with the bare statements of [`Raw`].

use std::time::{Duration, Instant};

use anyhow::Result;
use ratchet_bench::metrics::{micros, per_job, rate};

use crate::raw::{Lane, Raw, RawJob, Take};
use crate::site::Site;

/// Jobs in the tables before single submits are timed: a small table grows by a page at a time, each with a sync of its own.
pub(crate) const FILLED: usize = 10_000;

/// One row in one table and a commit each, on so many connections at once.
pub(crate) struct Singles {
    connections: Vec<Box<dyn Raw>>,
}

impl Singles {
    pub(crate) async fn open(site: &dyn Site, connections: usize) -> Result<Self> {
        let address = site.fresh("raw").await?;
        let mut opened = Vec::new();
        for _ in 0..connections {
            let mut raw = site.raw(&address).await?;
            raw.insert_single(&RawJob::noops(1)[0]).await?;
            opened.push(raw);
        }
        fill(&mut *opened[0], FILLED, FILLED / 10).await?;
        Ok(Self { connections: opened })
    }

    /// How long so many jobs take.
    pub(crate) async fn submit(&mut self, jobs: usize) -> Result<Duration> {
        let each = jobs / self.connections.len();
        let work: Vec<_> = self.connections.drain(..).map(|raw| (raw, RawJob::noops(each))).collect();
        let begun = Instant::now();
        let tasks: Vec<_> = work
            .into_iter()
            .map(|(mut raw, jobs)| {
                tokio::spawn(async move {
                    for job in &jobs {
                        raw.insert_single(job).await?;
                    }
                    anyhow::Ok(raw)
                })
            })
            .collect();
        for task in tasks {
            self.connections.push(task.await??);
        }
        Ok(begun.elapsed())
    }
}

/// Hot and cold rows, so many jobs a commit, on one connection.
pub(crate) async fn submit(site: &dyn Site, jobs: usize, together: usize) -> Result<f64> {
    let mut raw = site.raw(&site.fresh("raw").await?).await?;
    raw.insert(&RawJob::noops(together)).await?;
    let begun = Instant::now();
    fill(&mut *raw, jobs, together).await?;
    Ok(rate(jobs, begun.elapsed()))
}

/// What a drain came to.
pub(crate) struct Drained {
    pub(crate) rate: f64,
    pub(crate) log_bytes_per_job: Option<f64>,
}

pub(crate) async fn drain(site: &dyn Site, jobs: usize, bulk: usize, batch: usize) -> Result<Drained> {
    let mut raw = site.raw(&site.fresh("raw").await?).await?;
    fill(&mut *raw, jobs, bulk).await?;
    let log = raw.log_bytes().await?;
    let begun = Instant::now();
    drain_until(&mut *raw, jobs, batch).await?;
    let rate = rate(jobs, begun.elapsed());
    let log_bytes_per_job = raw.log_bytes().await?.zip(log).map(|(after, before)| per_job(after - before, jobs));
    Ok(Drained { rate, log_bytes_per_job })
}

/// Submits in bulk while another connection drains; one after the other where only one can write.
pub(crate) async fn end_to_end(site: &dyn Site, jobs: usize, bulk: usize, batch: usize) -> Result<f64> {
    let address = site.fresh("raw").await?;
    let mut drains = site.raw(&address).await?;
    if site.writers() == 1 {
        let begun = Instant::now();
        for _ in 0..jobs.div_ceil(bulk) {
            drains.insert(&RawJob::noops(bulk)).await?;
            drain_until(&mut *drains, bulk, batch).await?;
        }
        return Ok(rate(jobs, begun.elapsed()));
    }
    let mut submits = site.raw(&address).await?;
    let begun = Instant::now();
    let submitting = tokio::spawn(async move { fill(&mut *submits, jobs, bulk).await });
    drain_until(&mut *drains, jobs, batch).await?;
    submitting.await??;
    Ok(rate(jobs, begun.elapsed()))
}

/// Microseconds of each submit of one, and of each claim of one after it.
pub(crate) async fn submit_and_claim_one(
    site: &dyn Site,
    times: usize,
    pause: Duration,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut raw = site.raw(&site.fresh("raw").await?).await?;
    let lanes = Lane::noop();
    let (mut submits, mut claims) = (Vec::new(), Vec::new());
    for _ in 0..times {
        tokio::time::sleep(pause).await;
        let jobs = RawJob::noops(1);
        let begun = Instant::now();
        raw.insert(&jobs).await?;
        submits.push(micros(begun.elapsed()));
        let begun = Instant::now();
        let taken = raw.turn(&[], &Take { lanes: &lanes, most: 1 }).await?;
        claims.push(micros(begun.elapsed()));
        raw.turn(&taken, &Take { lanes: &lanes, most: 1 }).await?;
    }
    Ok((submits, claims))
}

pub(crate) async fn fill(raw: &mut dyn Raw, jobs: usize, together: usize) -> Result<()> {
    for _ in 0..jobs.div_ceil(together) {
        raw.insert(&RawJob::noops(together)).await?;
    }
    Ok(())
}

/// Complete, then claim, in one transaction each time, until so many are done.
async fn drain_until(raw: &mut dyn Raw, jobs: usize, batch: usize) -> Result<()> {
    let lanes = Lane::noop();
    let (mut taken, mut done) = (Vec::new(), 0);
    while done < jobs {
        let next = raw.turn(&taken, &Take { lanes: &lanes, most: batch }).await?;
        done += taken.len();
        taken = next;
    }
    Ok(())
}
