//! Benchmarks: Ratchet at its default settings beside bare statements that write the same rows, on the same database
//! in the same run, in interleaved rounds.

mod ceiling;
mod claims;
mod measure;
mod mysql;
mod postgres;
mod product;
mod raw;
mod report;
mod rows;
mod site;
mod sizes;
mod sqlite;
mod target;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::site::Site;
use crate::sizes::Sizes;

#[derive(Parser)]
#[command(about = "Measures Ratchet beside the raw ceiling of the same rows")]
struct Args {
    /// The database; a server is started for the run, with durable commits.
    database: Database,
    /// Fewer jobs and rounds.
    #[arg(long)]
    quick: bool,
    /// Write the measurements to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Only measures whose name begins with one of these words, such as `drain`.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Database {
    /// The embedded store, synchronous = FULL.
    Sqlite,
    Postgres,
    /// MariaDB.
    Mysql,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    // Starting a server blocks, so it comes before the runtime.
    let site: Box<dyn Site> = match args.database {
        Database::Sqlite => Box::new(sqlite::SqliteSite::new()?),
        Database::Postgres => Box::new(postgres::PostgresSite::start()?),
        Database::Mysql => Box::new(mysql::MysqlSite::start()?),
    };
    let sizes = if args.quick { Sizes::QUICK } else { Sizes::FULL };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let measures = runtime.block_on(measure::run(&*site, &sizes, &args.only))?;
    report::print(site.name(), &measures);
    if let Some(path) = args.json {
        std::fs::write(&path, report::json(&measures))?;
        println!("\nwritten to {}", path.display());
    }
    Ok(())
}
