//! One node as a process of its own, for the fault tests.
//!
//! It prints `ready NODE-ID` when it runs, answers `stats` on its standard input, and drains on `quit` or at the end of
//! its input.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use ratchet::Ratchet;
use ratchet::sqlite::SqliteStore;
use ratchet_chaos::{Deal, Record};
use tokio::io::{AsyncBufReadExt, BufReader};

#[derive(Parser)]
struct Args {
    /// The database file.
    #[arg(long)]
    database: PathBuf,
    /// The record of deeds.
    #[arg(long)]
    record: PathBuf,
    #[arg(long, default_value_t = 20)]
    slots: usize,
    #[arg(long, default_value_t = 100)]
    heartbeat_ms: u64,
    #[arg(long, default_value_t = 1_000)]
    grace_ms: u64,
    #[arg(long, default_value_t = 1_000)]
    reconcile_ms: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()))
        .init();
    let args = Args::parse();
    let ratchet = Ratchet::builder()
        .store(SqliteStore::open(&args.database).await?)
        .job::<Deal>()
        .state(Record::at(&args.record))
        .queue("default", args.slots)
        .heartbeat(Duration::from_millis(args.heartbeat_ms))
        .grace(Duration::from_millis(args.grace_ms))
        .reconcile(Duration::from_millis(args.reconcile_ms))
        .rescue_scan(Duration::from_millis(args.grace_ms / 5))
        .start()
        .await?;
    println!("ready {}", ratchet.node_id());
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
                    })
                );
            }
            "quit" => break,
            other => anyhow::bail!("unknown command {other:?}"),
        }
    }
    ratchet.shutdown().await;
    Ok(())
}
