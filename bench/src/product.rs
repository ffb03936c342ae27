//! Ratchet itself, at its default settings.

use std::time::{Duration, Instant};

use anyhow::Result;
use ratchet::{Client, Failure, Job, JobContext, Ratchet, Requirement};
use ratchet_bench::metrics::{micros, per_job, rate};
use ratchet_bench::noop::{Noop, fill, settled};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::ceiling::FILLED;
use crate::site::{Counts, Opened, Site};

/// Says when it starts.
#[derive(Serialize, Deserialize)]
struct Stamp;

impl Job for Stamp {
    const KIND: &'static str = "bench.stamp";
    type Output = ();

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<mpsc::UnboundedSender<Instant>>()]
    }

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        let now = Instant::now();
        ctx.state::<mpsc::UnboundedSender<Instant>>().send(now).map_err(|_| Failure::new("nobody measures"))
    }
}

/// So many callers, each submitting one job after the other.
pub(crate) struct Callers {
    client: Client,
    callers: usize,
}

impl Callers {
    pub(crate) async fn open(site: &dyn Site, callers: usize) -> Result<Self> {
        let client = client_of(&fresh(site).await?);
        fill(&client, FILLED, FILLED / 10).await?;
        client.enqueue(Noop { n: 0 }).submit().await?;
        Ok(Self { client, callers })
    }

    /// How long so many jobs take.
    pub(crate) async fn submit(&self, jobs: usize) -> Result<Duration> {
        let begun = Instant::now();
        let tasks: Vec<_> = (0..self.callers)
            .map(|caller| {
                let (client, callers) = (self.client.clone(), self.callers);
                tokio::spawn(async move {
                    for n in (caller..jobs).step_by(callers) {
                        client.enqueue(Noop { n: n as u64 }).submit().await?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        for task in tasks {
            task.await??;
        }
        Ok(begun.elapsed())
    }
}

pub(crate) async fn submit_bulk(site: &dyn Site, jobs: usize, together: usize) -> Result<f64> {
    let client = client_of(&fresh(site).await?);
    fill(&client, together, together).await?;
    let begun = Instant::now();
    fill(&client, jobs, together).await?;
    Ok(rate(jobs, begun.elapsed()))
}

/// What a drain came to.
pub(crate) struct Drained {
    pub(crate) rate: f64,
    pub(crate) statements_per_job: f64,
    pub(crate) commits_per_job: f64,
    pub(crate) retries_per_job: f64,
    pub(crate) jobs_per_turn: f64,
    pub(crate) log_bytes_per_job: Option<f64>,
    /// Processor time a job in microseconds: of this process, and of the server.
    pub(crate) cpu_us_per_job: [f64; 2],
    pub(crate) dead_rows: Option<u64>,
}

/// The slots and the claims of a node that was tuned for many small jobs.
#[derive(Clone, Copy)]
pub(crate) struct Tuned {
    pub(crate) slots: usize,
    pub(crate) claim_max: usize,
}

/// The processor time that this process has used, in microseconds.
fn own_cpu() -> Result<u64> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike as _;
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(u64::try_from((usage.user_time() + usage.system_time()).num_microseconds())?)
}

pub(crate) async fn drain(site: &dyn Site, jobs: usize, bulk: usize, tuned: Option<Tuned>) -> Result<Drained> {
    let address = site.fresh("product").await?;
    let opened = site.open(&address).await?;
    fill(&client_of(&opened), jobs, bulk).await?;
    let mut looks = site.raw(&address).await?;
    let (log, before) = (looks.log_bytes().await?, (opened.counts)());
    let cpu = [own_cpu()?, site.server_cpu()?];
    let begun = Instant::now();
    let mut builder = Ratchet::builder().store(opened.store.clone()).job::<Noop>();
    if let Some(Tuned { slots, claim_max }) = tuned {
        builder = builder.queue("default", slots).claim_max(claim_max);
    }
    let ratchet = builder.start().await?;
    settled(&ratchet, jobs).await?;
    let rate = rate(jobs, begun.elapsed());
    // Before any connection is closed: the time of one that has ended is counted less exactly.
    let used = [own_cpu()? - cpu[0], site.server_cpu()? - cpu[1]];
    let (after, turns) = ((opened.counts)(), ratchet.stats().turns);
    let log_bytes_per_job = looks.log_bytes().await?.zip(log).map(|(after, before)| per_job(after - before, jobs));
    ratchet.shutdown().await;
    // What a connection has counted is known when it is closed.
    drop(opened);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let each = |count: fn(&Counts) -> u64| per_job(count(&after) - count(&before), jobs);
    Ok(Drained {
        rate,
        statements_per_job: each(|counts| counts.statements),
        commits_per_job: each(|counts| counts.commits),
        retries_per_job: each(|counts| counts.retries),
        jobs_per_turn: 1.0 / per_job(turns, jobs),
        log_bytes_per_job,
        cpu_us_per_job: used.map(|micros| per_job(micros, jobs)),
        dead_rows: looks.dead_rows().await?,
    })
}

/// Submits in bulk while the same node drains.
pub(crate) async fn end_to_end(site: &dyn Site, jobs: usize, together: usize) -> Result<f64> {
    let opened = fresh(site).await?;
    let ratchet = Ratchet::builder().store(opened.store.clone()).job::<Noop>().start().await?;
    let begun = Instant::now();
    fill(&ratchet, jobs, together).await?;
    settled(&ratchet, jobs).await?;
    let rate = rate(jobs, begun.elapsed());
    ratchet.shutdown().await;
    Ok(rate)
}

/// Where a job is submitted that an idle node runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// On the node itself.
    Here,
    /// By a client with a store of its own.
    Elsewhere,
}

/// A latency that is bound by polling takes long to measure; so much time is enough.
const LATENCY_LIMIT: Duration = Duration::from_secs(15);

/// Microseconds from the call of submit until the handler starts, on an idle node.
pub(crate) async fn idle_latency(site: &dyn Site, times: usize, pause: Duration, from: From) -> Result<Vec<f64>> {
    let address = site.fresh("product").await?;
    let (sender, mut started) = mpsc::unbounded_channel();
    let opened = site.open(&address).await?;
    let ratchet = Ratchet::builder().store(opened.store.clone()).job::<Stamp>().state(sender).start().await?;
    let elsewhere = client_of(&site.open(&address).await?);
    let client: &Client = if from == From::Here { &ratchet } else { &elsewhere };
    let (mut latencies, measuring) = (Vec::with_capacity(times), Instant::now());
    // The first one opens connections.
    for n in 0..=times {
        tokio::time::sleep(pause).await;
        let begun = Instant::now();
        client.enqueue(Stamp).submit().await?;
        let at: Instant = started.recv().await.ok_or_else(|| anyhow::anyhow!("the node ended"))?;
        if n > 0 {
            latencies.push(micros(at.duration_since(begun)));
        }
        if measuring.elapsed() > LATENCY_LIMIT {
            break;
        }
    }
    ratchet.shutdown().await;
    Ok(latencies)
}

async fn fresh(site: &dyn Site) -> Result<Opened> {
    site.open(&site.fresh("product").await?).await
}

fn client_of(opened: &Opened) -> Client {
    Client::new(opened.store.clone())
}
