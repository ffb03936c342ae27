//! Chores of the Ratchet workspace: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask bench`,
//! `cargo xtask chaos`, `cargo xtask db`.

mod bench;
mod chaos;
mod db;
mod sample;
mod test;
mod tidy;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Ratchet workspace")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that CI needs: servers, format, lints, tests, examples, README, docs, tidy
    #[command(visible_alias = "ci")]
    Test(test::Options),
    /// Check the rules of ARCHITECTURE.md that a compiler does not
    Tidy {
        /// Write generated pages anew
        #[arg(long)]
        fix: bool,
    },
    /// Measure jobs per second beside the raw ceiling of the same database
    Bench {
        /// Which store
        store: bench::Store,
        /// A short run, to see that it works
        #[arg(long)]
        quick: bool,
        /// Also write the numbers to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Show what a running process spends its processor time on, by thread and, with perf, by function
    Sample {
        /// The process, such as a node
        pid: u32,
        /// How long to watch it
        #[arg(long, default_value_t = 5)]
        seconds: u64,
    },
    /// Kill, stop and cut off nodes and servers while they run jobs, and check what comes of it
    Chaos {
        /// How long things go wrong on each database
        #[arg(long, default_value_t = 5.0)]
        minutes: f64,
        /// On which databases
        #[arg(long, value_enum, default_value = "both")]
        database: chaos::Databases,
        /// Repeats the choices of an earlier run
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Private database servers for tests and benchmarks
    #[command(subcommand)]
    Db(db::Command),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Test(options) => test::run(Workspace::find()?, options),
        Command::Tidy { fix } => tidy::run(&Workspace::find()?, fix),
        Command::Bench { store, quick, json } => bench::run(&Workspace::find()?, store, quick, json.as_deref()),
        Command::Sample { pid, seconds } => sample::run(pid, seconds),
        Command::Chaos { minutes, database, seed } => chaos::run(&Workspace::find()?, minutes, database, seed),
        Command::Db(command) => db::run(command),
    }
}
