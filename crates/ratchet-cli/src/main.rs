//! The `ratchet` command. It holds no SQL and no rules: it asks the client and shows what it says.

mod archive;
mod batches;
mod breakers;
mod counts;
mod dead_letters;
mod demo;
mod exit;
mod jobs;
mod migrate;
mod nodes;
mod output;
mod paging;
mod queues;
mod resources;
mod schedules;
mod session;
mod signal;
mod times;
mod workflows;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::exit::Exit;
use crate::output::Output;
use crate::session::{DATABASE_DEFAULT, Session};

#[derive(Parser)]
#[command(name = "ratchet", version, about = "Durable background jobs: look at them, steer them, try them out")]
#[command(after_help = exit::HELP, arg_required_else_help = true)]
struct Cli {
    /// Where the jobs are: a SQLite file, postgres://user@host/database or mysql://user@host/database
    #[arg(
        long,
        global = true,
        value_name = "PATH|URL",
        env = "RATCHET_DATABASE",
        hide_env_values = true,
        default_value = DATABASE_DEFAULT,
        value_parser = clap::builder::NonEmptyStringValueParser::new()
    )]
    database: String,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a mixed workload: failures, retries, a timeout, dead letters, a cancel
    Demo {
        /// Submit nothing: be a further node for the demos of others, until Ctrl-C or SIGTERM
        #[arg(long)]
        node: bool,
    },
    /// Create the database, or bring its schema up to date
    Migrate,
    /// Look at jobs and steer them
    #[command(subcommand)]
    Jobs(jobs::Command),
    /// Look through the dead letter queue, retry and purge it
    #[command(subcommand, visible_alias = "dlq")]
    DeadLetters(dead_letters::Command),
    /// Archive jobs that ended long ago, and delete what was archived long ago
    #[command(subcommand)]
    Archive(archive::Command),
    /// List queues, show how they are, or pause and resume one
    Queues {
        #[command(subcommand)]
        command: Option<queues::Command>,
    },
    /// List resources that limit how many jobs run at once, or set and remove a limit
    Resources {
        #[command(subcommand)]
        command: Option<resources::Command>,
    },
    /// List circuit breakers that are not closed, or open and reset one on every node
    Breakers {
        #[command(subcommand)]
        command: Option<breakers::Command>,
    },
    /// Look at schedules and steer them
    #[command(subcommand)]
    Schedules(schedules::Command),
    /// Look at batches, seal and cancel them
    #[command(subcommand)]
    Batches(batches::Command),
    /// Look at workflows and cancel them
    #[command(subcommand)]
    Workflows(workflows::Command),
    /// Send a signal to jobs that wait for it
    Signal(signal::Sending),
    /// List the nodes that run jobs
    Nodes,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { database, json, command } = Cli::parse();
    log_to_stderr();
    let session = Session::new(database, Output::new(json));
    let exit = match run(&session, command).await {
        Ok(exit) => exit,
        Err(error) => exit::report(&error),
    };
    session.end().await;
    exit.into()
}

async fn run(session: &Session, command: Command) -> Result<Exit> {
    match command {
        Command::Demo { node: true } => demo::run_node(session).await,
        Command::Demo { node: false } => demo::run(session).await,
        Command::Migrate => migrate::run(session).await,
        Command::Jobs(command) => jobs::run(session, command).await,
        Command::DeadLetters(command) => dead_letters::run(session, command).await,
        Command::Archive(command) => archive::run(session, command).await,
        Command::Queues { command } => queues::run(session, command).await,
        Command::Resources { command } => resources::run(session, command).await,
        Command::Breakers { command } => breakers::run(session, command).await,
        Command::Schedules(command) => schedules::run(session, command).await,
        Command::Batches(command) => batches::run(session, command).await,
        Command::Workflows(command) => workflows::run(session, command).await,
        Command::Signal(sending) => signal::run(session, sending).await,
        Command::Nodes => nodes::run(session).await,
    }
}

/// Quiet unless `RUST_LOG` asks for more: a command's answer is its output.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
