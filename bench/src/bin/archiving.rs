//! What archiving costs those who work meanwhile: jobs flow through a node at a steady rate, with and without a great
//! many ended jobs going to the archive beside them.
//!
//! `cargo run --release -p ratchet-bench --bin archiving -- --database postgres://…` on a database that may be filled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use ratchet::prelude::*;
use ratchet::{ArchiveScope, BulkEventKind, JobFilter, Retention, Store};

#[derive(Parser)]
struct Args {
    /// Where: an empty database, which is filled
    #[arg(long)]
    database: String,
    /// Ended jobs that go to the archive in each round
    #[arg(long, default_value_t = 100_000)]
    jobs: u64,
    /// Jobs that flow, a second
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// How long they flow without an archiving, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
static WAITS: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

fn since_began() -> u64 {
    u64::try_from(BEGAN.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// What has ended and goes to the archive.
#[job(kind = "bench.ended")]
async fn ended(number: u64) -> u64 {
    number
}

/// What flows: knows when it was submitted, and notes how long it took to start.
#[job(kind = "bench.flows")]
async fn flows(submitted: u64) {
    let waited = Duration::from_micros(since_began().saturating_sub(submitted));
    WAITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(waited);
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let store = ratchet::open_store(&args.database, true).await?;
    let mut submitted = 0;
    println!("round   without: p50 p99 max      with: p50 p99 max      archived in");
    for round in 1..=args.rounds {
        fill(&store, args.jobs).await?;
        submitted += args.jobs;
        let node = builder(&store, Retention::keep_everything()).start().await?;
        submitted += flow(&node, args.rate, Duration::from_secs(args.seconds), || false).await?;
        node.shutdown().await;
        let without = figures();

        let archived = Arc::new(AtomicU64::new(0));
        let counted = archived.clone();
        // Not zero: that would delete them.
        let at_once = Retention { succeeded: Some(Duration::from_micros(1)), ..Retention::keep_everything() };
        let node = builder(&store, at_once)
            .care(Duration::from_millis(10))
            .on_bulk_event(move |event| {
                if let BulkEventKind::JobsArchived { count, .. } = event.what {
                    counted.fetch_add(count, Ordering::SeqCst);
                }
            })
            .start()
            .await?;
        let began = Instant::now();
        let enough = args.jobs;
        submitted +=
            flow(&node, args.rate, Duration::from_mins(10), || archived.load(Ordering::SeqCst) >= enough).await?;
        let took = began.elapsed();
        node.shutdown().await;
        let with = figures();
        println!("{round:>5}   {without}      {with}      {:.1} s", took.as_secs_f64());
    }
    let found = count_all(&store).await?;
    println!("{submitted} submitted, {found} found by the list that spans both");
    anyhow::ensure!(found == submitted, "every job is found once");
    Ok(())
}

fn builder(store: &Arc<dyn Store>, retention: Retention) -> ratchet::RatchetBuilder {
    Ratchet::builder().shared_store(store.clone()).jobs(jobs![ended, flows]).retention(retention)
}

/// Stores jobs and lets them end.
async fn fill(store: &Arc<dyn Store>, jobs: u64) -> Result<()> {
    let node = builder(store, Retention::keep_everything()).queue("default", 500).start().await?;
    let client = Client::shared(store.clone());
    let mut last = None;
    for first in (0..jobs).step_by(2_000) {
        let portion = (first..jobs.min(first + 2_000)).map(|number| client.enqueue(ended(number)));
        last = client.submit_all(portion).await?.pop();
    }
    if let Some(last) = last {
        last.wait().await?;
    }
    node.shutdown().await;
    Ok(())
}

/// Submits jobs at a steady rate for so long, or until it is over; says how many.
async fn flow(node: &Ratchet, rate: u32, longest: Duration, over: impl Fn() -> bool) -> Result<u64> {
    WAITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    let mut ticks = tokio::time::interval(Duration::from_secs(1).div_f64(f64::from(rate)));
    let began = Instant::now();
    let (mut submitted, mut submits) = (0, tokio::task::JoinSet::new());
    while began.elapsed() < longest && !over() {
        ticks.tick().await;
        submitted += 1;
        let client: Client = (**node).clone();
        submits.spawn(async move { client.enqueue(flows(since_began())).submit().await.map(|_| ()) });
        while let Some(done) = submits.try_join_next() {
            done??;
        }
    }
    while let Some(done) = submits.join_next().await {
        done??;
    }
    while (WAITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).len() as u64) < submitted {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(submitted)
}

fn figures() -> String {
    let mut waits = std::mem::take(&mut *WAITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    waits.sort_unstable();
    let at =
        |per_mille: usize| waits.get(waits.len().saturating_sub(1) * per_mille / 1_000).copied().unwrap_or_default();
    let ms = |wait: Duration| format!("{:>6.1} ms", wait.as_secs_f64() * 1_000.0);
    format!("{} {} {}", ms(at(500)), ms(at(990)), ms(at(1_000)))
}

async fn count_all(store: &Arc<dyn Store>) -> Result<u64> {
    let filter = JobFilter { archive: ArchiveScope::Both, ..JobFilter::default() };
    let (mut found, mut after) = (0, None);
    loop {
        let page = store.list(&filter, after, 1_000).await?;
        found += page.items.len() as u64;
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}
