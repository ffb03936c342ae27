//! Ratchet itself, at its default settings.

use std::path::Path;
use std::time::{Duration, Instant};

use ratchet::sqlite::SqliteStore;
use ratchet::{Client, Failure, Job, JobContext, Ratchet, Requirement};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::measure::rate;

#[derive(Serialize, Deserialize)]
struct Noop {
    n: u64,
}

impl Job for Noop {
    const KIND: &'static str = "bench.noop";
    type Output = ();

    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

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

pub(crate) struct Product {
    store: SqliteStore,
    client: Client,
}

impl Product {
    pub(crate) async fn at(path: &Path) -> anyhow::Result<Self> {
        let store = SqliteStore::open(path).await?;
        let client = Ratchet::client(store.clone());
        Ok(Self { store, client })
    }

    /// So many callers, each submitting one job after the other.
    pub(crate) async fn submit(&self, jobs: usize, callers: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|caller| {
                let client = self.client.clone();
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
        Ok(rate(jobs, begun.elapsed()))
    }

    pub(crate) async fn submit_bulk(&self, jobs: usize, together: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        for _ in 0..jobs.div_ceil(together) {
            self.client.submit_all((0..together).map(|n| self.client.enqueue(Noop { n: n as u64 }))).await?;
        }
        Ok(rate(jobs, begun.elapsed()))
    }

    pub(crate) async fn drain(&self, jobs: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let ratchet = Ratchet::builder().store(self.store.clone()).job::<Noop>().start().await?;
        settled(&ratchet, jobs).await;
        let figure = rate(jobs, begun.elapsed());
        ratchet.shutdown().await;
        Ok(figure)
    }

    pub(crate) async fn end_to_end(&self, jobs: usize, together: usize) -> anyhow::Result<f64> {
        let ratchet = Ratchet::builder().store(self.store.clone()).job::<Noop>().start().await?;
        let begun = Instant::now();
        for _ in 0..jobs.div_ceil(together) {
            ratchet.submit_all((0..together).map(|n| ratchet.enqueue(Noop { n: n as u64 }))).await?;
        }
        settled(&ratchet, jobs).await;
        let figure = rate(jobs, begun.elapsed());
        ratchet.shutdown().await;
        Ok(figure)
    }

    /// Microseconds from the call of submit until the handler starts, on an idle node.
    pub(crate) async fn idle_latency(&self, times: usize) -> anyhow::Result<Vec<f64>> {
        let (sender, mut started) = mpsc::unbounded_channel();
        let ratchet = Ratchet::builder().store(self.store.clone()).job::<Stamp>().state(sender).start().await?;
        let mut latencies = Vec::with_capacity(times);
        for _ in 0..times {
            tokio::time::sleep(Duration::from_millis(15)).await;
            let begun = Instant::now();
            ratchet.enqueue(Stamp).submit().await?;
            let at: Instant = started.recv().await.ok_or_else(|| anyhow::anyhow!("the node ended"))?;
            latencies.push(at.duration_since(begun).as_secs_f64() * 1e6);
        }
        ratchet.shutdown().await;
        Ok(latencies)
    }
}

async fn settled(ratchet: &Ratchet, jobs: usize) {
    while ratchet.stats().settled < jobs as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
