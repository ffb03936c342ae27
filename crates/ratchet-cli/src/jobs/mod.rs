//! `ratchet jobs`

mod count;
mod explain;
mod list;
mod logs;
mod filter_args;
mod show;
mod steer;
mod view;

use anyhow::Result;
use clap::Subcommand;

use crate::exit::Exit;
use crate::session::Session;
pub(crate) use filter_args::JobFilterArgs;
use steer::{Ids, Verb};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List jobs, newest first unless --order says otherwise
    List(list::Filter),
    /// Count jobs, by their state or by what else they have in common
    Count(count::Counting),
    /// Show one job with its attempts
    Show(show::Which),
    /// Say why a job does not run now, and when it will
    Explain(show::Which),
    /// Show what a job's handler wrote down, a page at a time unless --tail, --all or --follow says otherwise
    Logs(logs::Which),
    /// End live jobs; a running handler is told to stop
    Cancel(Ids),
    /// Suspend jobs that are pending or have failed, until they are resumed
    Pause(Ids),
    /// Let paused jobs go on
    Resume(Ids),
    /// Retry failed jobs now, resetting their attempts and clearing the error
    Retry(Ids),
    /// Delete jobs for good that have ended, archived or not
    Delete(Ids),
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<Exit> {
    match command {
        Command::List(filter) => list::run(session, filter).await,
        Command::Count(counting) => count::run(session, counting).await,
        Command::Show(which) => show::run(session, which).await,
        Command::Explain(which) => explain::run(session, which).await,
        Command::Logs(which) => logs::run(session, which).await,
        Command::Cancel(ids) => steer::run(session, Verb::Cancel, ids).await,
        Command::Pause(ids) => steer::run(session, Verb::Pause, ids).await,
        Command::Resume(ids) => steer::run(session, Verb::Resume, ids).await,
        Command::Retry(ids) => steer::run(session, Verb::Retry, ids).await,
        Command::Delete(ids) => steer::run(session, Verb::Delete, ids).await,
    }
}
