//! The long run by hand: `cargo xtask chaos`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use ratchet_chaos::database::Database;
use ratchet_chaos::summary;
use ratchet_chaos::trial::{self, Plan};

#[derive(Parser)]
struct Args {
    /// How long things go wrong on each database.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// On which databases, one after the other.
    #[arg(long, value_enum)]
    database: Vec<Database>,
    /// Repeats the choices of an earlier run; else RATCHET_SEED does, or chance.
    #[arg(long)]
    seed: Option<u64>,
    /// Jobs a second.
    #[arg(long, default_value_t = 60)]
    per_second: u64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 4)]
async fn main() -> Result<()> {
    let args = Args::parse();
    let program = std::env::current_exe()?.with_file_name("chaos-node");
    ensure!(program.is_file(), "{} is missing; build the package first", program.display());
    let mut violations = 0;
    for database in args.database {
        let seed = args.seed.unwrap_or_else(trial::seed);
        println!("{database:?}, seed {seed}, {} minutes of faults", args.minutes);
        let plan = Plan {
            database,
            seed,
            faults_for: Duration::from_secs_f64(args.minutes * 60.0),
            end_limit: Duration::from_mins(2),
            per_second: args.per_second,
            program: program.clone(),
        };
        let trial = trial::run(&plan).await.context("the run could not be made")?;
        println!("{}", summary::table(&trial));
        violations += trial.findings.violations.len();
    }
    ensure!(violations == 0, "{violations} promises were broken");
    Ok(())
}
