//! `ratchet demo`: a mixed workload, seen from submit to summary.

mod handlers;
mod live;
mod summary;
mod workload;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use ratchet::{AlwaysAdmit, Client, JobContext, JobFilter, JobState, Ratchet, Tag, Timing};
use serde::Serialize;

use crate::counts::counted;
use crate::exit::Exit;
use crate::session::Session;
use live::Live;

/// How often to look whether everything has ended; events only draw the picture.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The whole demo takes a few seconds; a machine that needs this long has another problem.
const GIVE_UP_AFTER: Duration = Duration::from_mins(2);

pub(crate) async fn run(session: &Session) -> Result<Exit> {
    let mut stop = StopSignal::listen()?;
    let ratchet = start(session, "demo").await?;
    let begun = Instant::now();
    let mut live = Live::start(&ratchet, session.output.is_json());
    let run = workload::submit(&ratchet).await?;
    live.expect(&run.jobs_by_kind);
    let ended = tokio::select! {
        ended = all_ended(&ratchet, &run.tag, &mut live) => ended,
        () = workload::cancel_soon(&ratchet, run.to_cancel) => unreachable!("it waits for ever once it is done"),
        _ = stop.told() => Err(anyhow::anyhow!("interrupted; jobs that are left run when a node next starts here")),
    };
    let took = begun.elapsed();
    live.finish();
    let summary = match ended {
        Ok(()) => summary::gather(&ratchet, &run.tag, took).await.map_err(Into::into),
        Err(error) => Err(error),
    };
    ratchet.shutdown().await;
    session.output.show(&summary?, |summary| summary.page(&session.shown(), session.is_default()))?;
    Ok(Exit::Done)
}

/// Runs what others submit, until it is told to stop.
pub(crate) async fn run_node(session: &Session) -> Result<Exit> {
    let name = format!("demo-{}", std::process::id());
    let mut stop = StopSignal::listen()?;
    let ratchet = start(session, &name).await?;
    eprintln!("node {name} runs the demo's jobs in {}; Ctrl-C stops it", session.shown());
    stop.told().await?;
    let settled = ratchet.stats().settled;
    ratchet.shutdown().await;
    session.output.show(&NodeRan { node: name, attempts: settled }, |ran| {
        format!("node {} ended after {}", ran.node, counted(ran.attempts, "attempt", "attempts"))
    })?;
    Ok(Exit::Done)
}

/// Ctrl-C, or what a supervisor sends. It is listened to before a node is there to be seen: from then on somebody may send it.
struct StopSignal {
    #[cfg(unix)]
    interrupted: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
}

impl StopSignal {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupted: signal(SignalKind::interrupt())?, terminated: signal(SignalKind::terminate())? })
    }

    #[cfg(unix)]
    async fn told(&mut self) -> std::io::Result<()> {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.terminated.recv() => {}
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn told(&mut self) -> std::io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}

#[derive(Serialize)]
struct NodeRan {
    node: String,
    attempts: u64,
}

async fn start(session: &Session, name: &str) -> Result<Ratchet> {
    expect_panics();
    let moment = Duration::from_millis(200);
    let ratchet = Ratchet::builder()
        .store(session.create_store().await?)
        .jobs(handlers::all())
        .node_name(name.to_owned())
        .queue("default", 20)
        .timing(Timing { reconcile: moment, cancel_grace: moment, ..Timing::default() })
        .drain_timeout(Duration::from_secs(2))
        // Much of it fails because it is told to: a breaker would open for half a minute, or not, as it happens.
        .resilience_strategy(AlwaysAdmit)
        .start()
        .await?;
    Ok(ratchet)
}

async fn all_ended(client: &Client, tag: &Tag, live: &mut Live) -> Result<()> {
    let states = JobState::ALL.into_iter().filter(|state| !state.is_terminal()).collect();
    let filter = JobFilter { states, tag: Some(tag.clone()), ..JobFilter::default() };
    let begun = Instant::now();
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        tokio::select! {
            () = live.next() => {}
            _ = look.tick() => {
                if client.list(&filter, None, 1).await?.items.is_empty() {
                    return Ok(());
                }
                if begun.elapsed() > GIVE_UP_AFTER {
                    bail!("the demo has not ended after {GIVE_UP_AFTER:?}; see `ratchet jobs list --tag {tag}`");
                }
            }
        }
    }
}

/// One handler panics on purpose; the default hook would print that across the progress.
fn expect_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if JobContext::current().is_none() {
            default(panic);
        }
    }));
}
