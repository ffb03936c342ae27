//! Benchmarks: Ratchet at its default settings beside bare statements that write the same rows, on the same database
//! in the same run, in interleaved rounds.

mod measure;
mod product;
mod raw_sqlite;
mod report;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::measure::Sizes;

#[derive(Parser)]
#[command(about = "Measures Ratchet beside the raw ceiling of the same rows")]
struct Args {
    #[command(subcommand)]
    database: Database,
}

#[derive(Subcommand)]
enum Database {
    /// The embedded store, synchronous = FULL.
    Sqlite {
        /// Fewer jobs and rounds.
        #[arg(long)]
        quick: bool,
        /// Writes the figures to this file as JSON.
        #[arg(long)]
        json: Option<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Database::Sqlite { quick, json } = Args::parse().database;
    let sizes = if quick { Sizes::QUICK } else { Sizes::FULL };
    let measures = measure::sqlite(&sizes).await?;
    report::print(&measures);
    if let Some(path) = json {
        std::fs::write(&path, report::json(&measures))?;
        println!("\nwritten to {}", path.display());
    }
    Ok(())
}
