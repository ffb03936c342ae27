//! `ratchet archive`

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use ratchet::JobState;
use ratchet_core::limits;
use serde::Serialize;

use crate::counts::counted;
use crate::exit::Exit;
use crate::session::Session;
use crate::times;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Move jobs to the archive that ended long ago
    Run(RunArgs),
    /// Delete jobs for good that were archived long ago
    Purge(Purge),
    /// Delete lines of jobs' logs for good that were written long ago
    PurgeLogs(PurgeLogs),
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// Only jobs that ended longer ago than this, such as 90d
    #[arg(long, value_name = "DURATION", value_parser = times::parse)]
    older_than: Duration,
    /// Only jobs that ended so: succeeded, failed, canceled; all three by default
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = ended)]
    state: Vec<JobState>,
    /// Only say how many would go; those that a live job hangs on stay all the same
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
pub(crate) struct Purge {
    /// Only jobs that were archived longer ago than this, such as 365d
    #[arg(long, value_name = "DURATION", value_parser = times::parse)]
    older_than: Duration,
}

#[derive(Args)]
pub(crate) struct PurgeLogs {
    /// Only lines that were written longer ago than this, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = times::parse)]
    older_than: Duration,
}

fn ended(text: &str) -> Result<JobState, String> {
    let unknown = "it is no state; give succeeded, failed or canceled";
    let state: JobState = text.parse().map_err(|_: ratchet::InvalidInput| unknown.to_owned())?;
    limits::check_ended(state).map(|()| state).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Moved {
    /// How many went, or would go.
    archived: u64,
    /// Whether more would go than were counted.
    more: bool,
    dry_run: bool,
}

fn archived_text(done: &Moved) -> String {
    let jobs = counted(done.archived, "job", "jobs");
    match (done.dry_run, done.more) {
        (false, _) => format!("archived {jobs}"),
        (true, false) => format!("would archive {jobs}"),
        (true, true) => format!("would archive more than {jobs}"),
    }
}

#[derive(Serialize)]
struct Purged {
    purged: u64,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<Exit> {
    let client = session.client().await?;
    match command {
        Command::Run(RunArgs { older_than, state, dry_run }) => {
            let all = || JobState::ALL.into_iter().filter(|state| state.is_terminal()).collect();
            let mut states: Vec<JobState> = if state.is_empty() { all() } else { state };
            states.sort_unstable();
            states.dedup();
            let mut done = Moved { archived: 0, more: false, dry_run };
            for state in states {
                if dry_run {
                    let would_go = client.jobs_to_archive(state, older_than).await?;
                    done.archived += would_go.jobs;
                    done.more |= would_go.more;
                } else {
                    done.archived += client.archive(state, older_than).await?;
                }
            }
            session.output.show(&done, archived_text)?;
        }
        Command::Purge(Purge { older_than }) => {
            let purged = client.purge_archive(older_than).await?;
            let text = |done: &Purged| format!("deleted {}", counted(done.purged, "archived job", "archived jobs"));
            session.output.show(&Purged { purged }, text)?;
        }
        Command::PurgeLogs(PurgeLogs { older_than }) => {
            let purged = client.purge_job_logs(older_than).await?;
            let text = |done: &Purged| format!("deleted {}", counted(done.purged, "line", "lines"));
            session.output.show(&Purged { purged }, text)?;
        }
    }
    Ok(Exit::Done)
}
