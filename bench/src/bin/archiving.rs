//! What archiving costs those who work meanwhile: jobs flow through a node at a steady rate, with and without a great
//! many ended jobs going to the archive beside them.
//!
//! `cargo run --release -p ratchet-bench --bin archiving -- --database postgres://…` on a database that may be filled.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use ratchet::prelude::*;
use ratchet::{ArchiveScope, JobFilter, JobId, Retention, Store, Timing};
use ratchet_bench::bare::Bare;
use ratchet_bench::compare::order;
use ratchet_bench::metrics::{Sample, median, micros, percentile};
use ratchet_bench::noop;

#[derive(Parser)]
struct Args {
    /// Where: an empty database, which is filled
    #[arg(long)]
    database: String,
    /// Ended jobs that go to the archive in each round
    #[arg(long, default_value_t = 100_000)]
    jobs: usize,
    /// Jobs that flow, a second
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// How long they flow without an archiving, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// What flowed in one round goes to the archive in the next, which makes that longer
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Begins with the archiving; else with what flows alone. Further rounds begin with one and the other in turn
    #[arg(long)]
    archiving_first: bool,
}

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
/// When each job was submitted, in microseconds, and how long it waited.
static WAITS: Mutex<Vec<(u64, Duration)>> = Mutex::new(Vec::new());

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
    WAITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((submitted, waited));
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let store = ratchet::open_store(&args.database, true).await?;
    let mut bare = Bare::open(&args.database).await?;
    let (mut submitted, mut p99s) = (0, Vec::new());
    println!(
        "p99 of the middle second, and seconds whose p99 is over twice that, tell stalls from what is always there"
    );
    println!("round   without: p50 p99 max      with: p50 p99 max      archived in");
    for round in 0..args.rounds {
        let last = fill(&store, args.jobs).await?;
        submitted += args.jobs as u64;
        bare.tidy().await?;
        let mut waits = [Waits::default(), Waits::default()];
        let mut took = Duration::ZERO;
        for side in order(round + usize::from(args.archiving_first), 2) {
            let archives = side == 1;
            let began = Instant::now();
            submitted += if archives { beside(&store, &args, last).await? } else { alone(&store, &args).await? };
            waits[side] = Waits::taken();
            if archives {
                took = began.elapsed();
            }
        }
        let [without, with] = &waits;
        println!("{:>5}   {without}      {with}      {:.1} s", round + 1, took.as_secs_f64());
        p99s.push(Sample::new("p99", with.p99_ms(), without.p99_ms()));
    }
    let median = Sample::median(&p99s);
    let Sample { value: with, raw: without, ratio, .. } = &median;
    println!("p99, medians: {without:.1} ms without, {with:.1} ms with, {:.2}×; of pairs {ratio:.2}×", with / without);
    let found = count_all(&store).await?;
    println!("{submitted} submitted, {found} found by the list that spans both");
    anyhow::ensure!(found == submitted, "every job is found once");
    Ok(())
}

/// Jobs flow, and nothing is archived.
async fn alone(store: &Arc<dyn Store>, args: &Args) -> Result<u64> {
    let node = builder(store, Retention::keep_everything()).start().await?;
    let submitted = flow(&node, args.rate, Duration::from_secs(args.seconds), || false).await?;
    node.shutdown().await;
    Ok(submitted)
}

/// Jobs flow until those that were there before have been archived, which go in the order of their ids.
async fn beside(store: &Arc<dyn Store>, args: &Args, last: JobId) -> Result<u64> {
    // Not zero: that would delete them.
    let at_once = Retention { succeeded: Some(Duration::from_micros(1)), ..Retention::keep_everything() };
    let timing = Timing { retention_interval: Duration::from_secs(1), ..Timing::default() };
    let node = builder(store, at_once).timing(timing).start().await?;
    let gone = Arc::new(AtomicBool::new(false));
    let (client, is_gone) = ((*node).clone(), gone.clone());
    let watch = tokio::spawn(async move {
        while client.find(last).await?.is_some_and(|job| job.archived_at.is_none()) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        is_gone.store(true, Ordering::SeqCst);
        anyhow::Ok(())
    });
    let submitted = flow(&node, args.rate, LONGEST, || gone.load(Ordering::SeqCst)).await?;
    anyhow::ensure!(watch.is_finished(), "after {LONGEST:?} there are still jobs to archive");
    watch.await??;
    node.shutdown().await;
    Ok(submitted)
}

/// No archiving takes longer.
const LONGEST: Duration = Duration::from_mins(20);

fn builder(store: &Arc<dyn Store>, retention: Retention) -> ratchet::RatchetBuilder {
    Ratchet::builder().store(store.clone()).jobs(jobs![ended, flows]).retention(retention)
}

/// Stores jobs and lets them end; says which is the last.
async fn fill(store: &Arc<dyn Store>, jobs: usize) -> Result<JobId> {
    let node = builder(store, Retention::keep_everything()).queue("default", 500).start().await?;
    let last =
        noop::fill_with(&Client::new(store.clone()), jobs, noop::TOGETHER, ended).await?.context("--jobs is 0")?;
    last.wait().await?;
    node.shutdown().await;
    Ok(last.id())
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

/// How long jobs waited, in milliseconds.
#[derive(Default)]
struct Waits {
    all: Vec<f64>,
    /// The p99 of the jobs that were submitted in each second.
    seconds: Vec<f64>,
}

impl Waits {
    fn taken() -> Self {
        let waits = std::mem::take(&mut *WAITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let mut seconds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let mut all = Vec::new();
        for (submitted, waited) in waits {
            let ms = micros(waited) / 1_000.0;
            seconds.entry(submitted / 1_000_000).or_default().push(ms);
            all.push(ms);
        }
        Self { all, seconds: seconds.values().map(|waits| percentile(waits, 99)).collect() }
    }

    fn p99_ms(&self) -> f64 {
        percentile(&self.all, 99)
    }
}

impl std::fmt::Display for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [half, most, all] = [50, 99, 100].map(|percent| percentile(&self.all, percent));
        let middle = median(&self.seconds);
        let slow = self.seconds.iter().filter(|second| **second > 2.0 * middle).count();
        write!(
            f,
            "{half:>6.1} ms {most:>6.1} ms {all:>6.1} ms (middle second {middle:.1} ms, {slow} of {} slow)",
            self.seconds.len()
        )
    }
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
