//! `cargo xtask db`: private database servers for tests and benchmarks.

use std::ffi::OsString;
use std::process;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, Subcommand};
use ratchet_testdb::{Kind, Profile, Server, Servers};

use crate::workspace::run as command;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start servers, leave them running and print how to tell tests: `eval "$(cargo xtask db start)"`
    Start(Wanted),
    /// Stop the servers that were left running, with their data
    Stop,
    /// Show the servers that were left running
    Status,
    /// Start servers of its own for one command, and stop them when it ends
    Run {
        #[command(flatten)]
        wanted: Wanted,
        /// The command, which finds the servers in its environment
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

#[derive(Args)]
pub(crate) struct Wanted {
    /// Every commit reaches the disk, as benchmarks need it; else it only survives a kill of the server
    #[arg(long)]
    durable: bool,
    /// Which: postgres, mysql (MariaDB), redis, pgbouncer; all of them by default
    #[arg(value_name = "SERVER")]
    kinds: Vec<Kind>,
}

impl Wanted {
    fn kinds(&self) -> &[Kind] {
        if self.kinds.is_empty() { &Kind::ALL } else { &self.kinds }
    }

    fn profile(&self) -> Profile {
        if self.durable { Profile::Durable } else { Profile::Fast }
    }
}

pub(crate) fn run(command: Command) -> Result<()> {
    match command {
        Command::Start(wanted) => start(&wanted),
        Command::Stop => stop(),
        Command::Status => status(),
        Command::Run { wanted, command } => run_with_servers(&wanted, &command),
    }
}

/// What a shell should evaluate goes to stdout, all else to stderr.
fn start(wanted: &Wanted) -> Result<()> {
    let before: Vec<Kind> = running(&Servers::left_running()?);
    let begun = Instant::now();
    let servers = Servers::leave_running(wanted.kinds(), wanted.profile())?;
    for server in servers.iter() {
        let word = if before.contains(&server.kind()) { "runs already" } else { "started" };
        eprintln!("{:<11}{word:<14}{}", server.kind(), server.directory().display());
    }
    eprintln!("ready after {:.1} s", begun.elapsed().as_secs_f64());
    for (variable, url) in servers.variables() {
        println!("export {variable}={url}");
    }
    Ok(())
}

fn running(servers: &Servers) -> Vec<Kind> {
    servers.iter().filter(|server| server.is_running()).map(Server::kind).collect()
}

fn stop() -> Result<()> {
    let stopped = Servers::end_left_running()?;
    if stopped.is_empty() {
        println!("no servers were left running");
    }
    for kind in stopped {
        println!("{kind:<11}stopped");
    }
    Ok(())
}

fn status() -> Result<()> {
    let servers = Servers::left_running()?;
    if servers.iter().next().is_none() {
        println!("no servers were left running; `cargo xtask db start` starts them");
    }
    for server in servers.iter() {
        let word = if server.is_running() { "runs" } else { "has ended" };
        let (kind, profile, directory) = (server.kind(), server.profile(), server.directory().display());
        println!("{kind:<11}{word:<11}{profile:<9}{:<52}{directory}", server.url());
    }
    Ok(())
}

fn run_with_servers(wanted: &Wanted, words: &[OsString]) -> Result<()> {
    let servers = Servers::start(wanted.kinds(), wanted.profile())?;
    let (program, arguments) = words.split_first().expect("clap asks for at least one word");
    let result = command(process::Command::new(program).args(arguments).envs(servers.variables()));
    // A server that does not stop must not hide that the command failed.
    result.and(servers.stop())
}
