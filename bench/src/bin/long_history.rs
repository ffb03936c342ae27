//! What a long history costs: a database is filled with ended jobs, then lists and looks are timed, and drains are held
//! against those of an empty database; on PostgreSQL also drains beside a transaction that stays open.
//!
//! `cargo run --release -p ratchet-bench --bin long_history -- --database postgres://…/long --empty postgres://…/empty`, on
//! databases that may be filled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use ratchet::prelude::*;
use ratchet::{ArchiveScope, JobFilter, Store, StoreError};
use ratchet_bench::bare::Bare;
use ratchet_bench::compare::{Table, order};
use ratchet_bench::metrics::{Sample, median, micros, percentile};
use ratchet_bench::noop::{self, Noop};
use ratchet_testdb::history;

#[derive(Parser)]
struct Args {
    /// Where: an empty database, which is filled
    #[arg(long)]
    database: String,
    /// Another empty database on the same server, for drains without a history; without it, these are left out
    #[arg(long)]
    empty: Option<String>,
    /// Ended jobs that the database is filled with, and a tenth as many in its archive; 0 measures what is there
    #[arg(long, default_value_t = 1_000_000)]
    jobs: u64,
    /// Jobs that wait beside them, of kinds that no drain runs
    #[arg(long, default_value_t = 0)]
    waiting: u64,
    /// Jobs of one drain
    #[arg(long, default_value_t = 20_000)]
    drain: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Also drains while a transaction stays open that has read something; on PostgreSQL
    #[arg(long)]
    held_snapshot: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let mut long = Place::open(&args.database).await?;
    ensure!(!args.held_snapshot || matches!(long.bare, Bare::Postgres(_)), "--held-snapshot is about PostgreSQL");
    if args.jobs > 0 {
        ensure!(long.is_empty, "the database has jobs; --jobs 0 measures what is there");
        let begun = Instant::now();
        let now = long.store.database_time().await?.as_millisecond();
        let sql = long.bare.sql();
        for statement in sql.history(args.jobs, now).chain(sql.backlog(args.waiting, now)) {
            long.bare.run(&statement).await?;
        }
        println!("filled with {} ended jobs in {:.0} s", args.jobs, begun.elapsed().as_secs_f64());
    }
    let client = Client::new(long.store.clone());
    lists(&client).await;
    looks(&client).await;
    if let Some(empty) = &args.empty {
        let mut empty = Place::open(empty).await?;
        beside_empty(&mut long, &mut empty, &args).await?;
    }
    if args.held_snapshot {
        let mut holder = Bare::open(&args.database).await?;
        beside_held(&mut long, &mut holder, &args).await?;
    }
    Ok(())
}

/// A database, as the product and as a bare connection see it.
struct Place {
    store: Arc<dyn Store>,
    bare: Bare,
    is_empty: bool,
}

impl Place {
    async fn open(address: &str) -> Result<Self> {
        let store = ratchet::open_store(address, true).await?;
        let newest = store.list(&JobFilter::default(), None, PAGE).await?.items;
        // Tables will be emptied.
        let ours = newest.iter().all(|job| job.spec.kind.as_str().starts_with("bench."));
        ensure!(ours, "there are jobs that no benchmark made; name databases that may be filled");
        Ok(Self { store, bare: Bare::open(address).await?, is_empty: newest.is_empty() })
    }

    /// Jobs a second.
    async fn drain(&self, jobs: usize) -> Result<f64> {
        noop::fill(&Client::new(self.store.clone()), jobs, noop::TOGETHER).await?;
        let node = Ratchet::builder().store(self.store.clone()).job::<Noop>();
        Ok(noop::drain(node, jobs).await?.0)
    }
}

/// A page as people look at it, and how many of them are turned at most.
const PAGE: usize = 50;
const PAGES: usize = 1_000;
/// Times that a look is taken.
const LOOKS: usize = 20;
/// No list and no look is taken again after so long.
const LONGEST: Duration = Duration::from_mins(2);
/// Anything should be seen sooner, in milliseconds.
const SLOW_MS: f64 = 100.0;

async fn lists(client: &Client) {
    heading(&format!("lists, {PAGE} a page, up to {PAGES} pages"), "pages");
    for (scope, archive) in [("", ArchiveScope::Live), (", archive too", ArchiveScope::Both)] {
        for (name, filter) in history::lists() {
            row(&format!("{name}{scope}"), walk(client, &JobFilter { archive, ..filter }).await);
        }
    }
}

/// Milliseconds of each page, from the newest on.
async fn walk(client: &Client, filter: &JobFilter) -> Result<Vec<f64>, StoreError> {
    let (mut pages, mut after, walking) = (Vec::new(), None, Instant::now());
    while pages.len() < PAGES && walking.elapsed() < LONGEST {
        let begun = Instant::now();
        let page = client.list(filter, after, PAGE).await?;
        pages.push(micros(begun.elapsed()) / 1_000.0);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(pages)
}

async fn looks(client: &Client) {
    heading("looks", "times");
    let all = JobFilter::default();
    row("queue health", look(async || client.queue_health().await.map(drop)).await);
    row("dead letters, a page", look(async || client.dead_letters(&all, None, PAGE).await.map(drop)).await);
    row("dead letter groups", look(async || client.dead_letter_groups(&all).await.map(drop)).await);
    row("count by state", look(async || client.count_by_state().await.map(drop)).await);
}

/// Milliseconds of each look.
async fn look(take: impl AsyncFn() -> Result<(), StoreError>) -> Result<Vec<f64>, StoreError> {
    let (mut times, looking) = (Vec::new(), Instant::now());
    while times.len() < LOOKS && looking.elapsed() < LONGEST {
        let begun = Instant::now();
        take().await?;
        times.push(micros(begun.elapsed()) / 1_000.0);
    }
    Ok(times)
}

fn heading(what: &str, count: &str) {
    println!("\n{what}, in ms; ! is over {SLOW_MS}");
    println!("{:<28} {count:>6} {:>9}  {:>9}  {:>9}  {:>9}", "", "first", "last", "median", "max");
}

/// What failed is told, and the others are measured all the same: the slowest may take longer than the store allows.
fn row(name: &str, times: Result<Vec<f64>, StoreError>) {
    let times = match times {
        Ok(times) => times,
        Err(error) => return println!("{name:<28} failed: {:#}", anyhow::Error::from(error)),
    };
    let [first, last] = [times.first(), times.last()].map(|time| time.copied().unwrap_or(0.0));
    let times_ms = [first, last, median(&times), percentile(&times, 100)];
    let cells = times_ms.map(|ms| format!("{ms:>9.1}{}", if ms > SLOW_MS { '!' } else { ' ' }));
    println!("{name:<28} {:>6} {}", times.len(), cells.join(" "));
}

/// Drains of both in turn; the first round is not counted.
async fn beside_empty(long: &mut Place, empty: &mut Place, args: &Args) -> Result<()> {
    let mut rounds = Vec::new();
    for round in 0..=args.rounds {
        // Both queues are as new: what differs is the history.
        long.bare.empty(&["scheduler_job_queue"]).await?;
        empty.bare.empty(&["scheduler_job_queue", "scheduler_job", "scheduler_job_execution"]).await?;
        let mut rates = [0.0; 2];
        for side in order(round, 2) {
            rates[side] = [&*long, &*empty][side].drain(args.drain).await?;
        }
        if round > 0 {
            rounds.push(Sample::new("long history", rates[0], rates[1]));
        }
    }
    print_drains(args, "empty", &[rounds]);
    Ok(())
}

/// Drains inside one snapshot: what is dead piles up from the first of them to the last.
const DRAINS: usize = 3;

/// Several drains with a snapshot held, and as many without, in turn; the first round is not counted.
async fn beside_held(long: &mut Place, holder: &mut Bare, args: &Args) -> Result<()> {
    let (mut all, mut last) = (Vec::new(), Vec::new());
    for round in 0..=args.rounds {
        let mut rates = [Vec::new(), Vec::new()];
        for held in order(round, 2) {
            long.bare.empty(&["scheduler_job_queue"]).await?;
            if held == 1 {
                holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
                // Not of the tables that are emptied: it would be waited for.
                holder.run("SELECT count(*) FROM scheduler_node").await?;
            }
            for _ in 0..DRAINS {
                rates[held].push(long.drain(args.drain).await?);
            }
            if held == 1 {
                holder.run("ROLLBACK").await?;
            }
        }
        if round > 0 {
            let [free, held] = &rates;
            let pairs: Vec<Sample> =
                held.iter().zip(free).map(|(held, free)| Sample::new("snapshot held", *held, *free)).collect();
            last.extend(pairs.last().map(|pair| Sample { name: "the last drain in it", ..pair.clone() }));
            all.extend(pairs);
        }
    }
    print_drains(args, "none held", &[all, last]);
    Ok(())
}

fn print_drains(args: &Args, beside: &str, measures: &[Vec<Sample>]) {
    let title = format!("drains of {} jobs, {} rounds", args.drain, args.rounds);
    Table { title: &title, beside, extras: &[], floor: None }.print(measures);
}
