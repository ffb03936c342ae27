//! One node as a process of its own, for the fault tests.
//!
//! It prints `ready NODE-ID` when it runs, answers `stats` on its standard input, and drains on `quit` or at the end of
//! its input.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use ratchet::{AlwaysAdmit, Ratchet, Store, Timing};
use ratchet_chaos::book::{Book, Ledger};
use ratchet_chaos::broken::Broken;
use ratchet_chaos::deal::{Deal, Nothing, Tally};
use ratchet_chaos::dying::DyingStore;
use ratchet_chaos::errand::Errand;
use ratchet_chaos::record::Record;
use ratchet_chaos::twin::{Moment, TwinStore};
use ratchet_chaos::{said, stall};
use tokio::io::{AsyncBufReadExt, BufReader};

#[derive(Parser)]
struct Args {
    /// The path of a SQLite file, or the URL of a server.
    #[arg(long)]
    database: String,
    /// The record of deeds.
    #[arg(long)]
    record: PathBuf,
    #[arg(long, default_value_t = 20)]
    slots: usize,
    #[arg(long, default_value_t = 100)]
    heartbeat_ms: u64,
    #[arg(long, default_value_t = 1_000)]
    grace_ms: u64,
    /// A fifth of the grace by default.
    #[arg(long)]
    scan_ms: Option<u64>,
    #[arg(long, default_value_t = 750)]
    reconcile_ms: u64,
    #[arg(long, default_value_t = 30_000)]
    store_deadline_ms: u64,
    /// Breaks a promise, to see that it is noticed.
    #[arg(long)]
    broken: Option<Broken>,
    /// Dies right after so many calls of the store that changed something.
    #[arg(long, conflicts_with = "broken")]
    dies_after: Option<u64>,
    /// Dies at this moment while one call settles and another claims.
    #[arg(long, conflicts_with_all = ["broken", "dies_after"])]
    dies_between: Option<Moment>,
    /// What it does beside running jobs, once it is ready.
    #[arg(long, value_parser = Errand::from_arg)]
    errand: Option<Errand>,
    /// Where to write, at the end, which jobs of the kind `nothing` it ran.
    #[arg(long)]
    tally: Option<PathBuf>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let record = Record::open(&args.record)?;
    let tried_again = said::listen(record.clone());
    stall::watch(record.clone())?;
    let mut store = ratchet::open_store(&args.database, true).await?;
    if let Some(broken) = args.broken {
        store = broken.over(store);
    }
    if let Some(calls) = args.dies_after {
        store = Arc::new(DyingStore::new(store, calls)) as Arc<dyn Store>;
    }
    if let Some(moment) = args.dies_between {
        store = Arc::new(TwinStore::new(store, moment)) as Arc<dyn Store>;
    }
    let tally = Tally::default();
    let ms = Duration::from_millis;
    let ratchet = Ratchet::builder()
        .store(store)
        .job::<Deal>()
        .job::<Nothing>()
        .job::<Book>()
        .state(record)
        .state(tally.clone())
        .state(Ledger::beside(&args.database)?)
        .queue("default", args.slots)
        .timing(Timing {
            heartbeat: ms(args.heartbeat_ms),
            grace: ms(args.grace_ms),
            reconcile: ms(args.reconcile_ms),
            scan: ms(args.scan_ms.unwrap_or(args.grace_ms / 5)),
            store_deadline: ms(args.store_deadline_ms),
            ..Timing::default()
        })
        // One kind stands for all sorts of work, and much of it fails because it is told to.
        .resilience_strategy(AlwaysAdmit)
        .start()
        .await?;
    println!("ready {}", ratchet.node_id());
    if let Some(errand) = args.errand {
        errand.run(&ratchet).await?;
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match line.as_str() {
            "stats" => {
                let stats = ratchet.stats();
                println!(
                    "{}",
                    serde_json::json!({
                        "claimed": stats.claimed, "settled": stats.settled, "conflicts": stats.conflicts,
                        "rescued": stats.rescued, "reincarnations": stats.reincarnations,
                        "lost_claims": stats.lost_claims, "turn_errors": stats.turn_errors, "turns": stats.turns,
                        "tried_again": tried_again.count(), "tallied": tally.ids().len(),
                    })
                );
            }
            "quit" => break,
            other => anyhow::bail!("unknown command {other:?}"),
        }
    }
    ratchet.shutdown().await;
    if let Some(path) = args.tally {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        for id in tally.ids() {
            writeln!(file, "{id}")?;
        }
        file.flush()?;
    }
    Ok(())
}
