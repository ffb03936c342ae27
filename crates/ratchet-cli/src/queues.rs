//! `ratchet queues`

use anyhow::Result;
use clap::Subcommand;
use ratchet::{Depth, InvalidInput, JobState, Percentiles, QueueHealth, QueueName, QueueRecord, Recent};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::table;
use crate::session::Session;
use crate::times;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show how every queue is: what waits and for how long, what runs, how it went lately
    Health,
    /// Let no node claim from the queue; jobs that run go on
    Pause(Queue),
    /// Let the queue's jobs be claimed again
    Resume(Queue),
}

#[derive(clap::Args)]
pub(crate) struct Queue {
    /// The queue
    #[arg(value_name = "QUEUE", value_parser = queue_name)]
    name: QueueName,
}

pub(crate) fn queue_name(text: &str) -> Result<QueueName, InvalidInput> {
    QueueName::new(text)
}

#[derive(Serialize)]
struct Steered {
    name: QueueName,
    paused: bool,
    changed: bool,
    /// Whether it had neither jobs nor a pause before.
    unknown: bool,
}

pub(crate) async fn run(session: &Session, command: Option<Command>) -> Result<Exit> {
    let client = session.client().await?;
    let steered = match command {
        None => {
            let queues = client.queues().await?;
            session.output.show(&queues, |queues| listed(queues))?;
            return Ok(Exit::Done);
        }
        Some(Command::Health) => {
            let health = client.queue_health().await?;
            let views: Vec<HealthView<'_>> = health.iter().map(HealthView::of).collect();
            session.output.show(&views, |_| healthy(&health))?;
            return Ok(Exit::Done);
        }
        Some(Command::Pause(Queue { name })) => {
            // A queue is a name, which may be paused before its first job; but mostly it is a slip of the pen.
            let unknown = !client.queues().await?.iter().any(|queue| queue.name == name);
            let changed = client.pause_queue(&name).await?;
            Steered { name, paused: true, changed, unknown }
        }
        Some(Command::Resume(Queue { name })) => {
            let changed = client.resume_queue(&name).await?;
            Steered { name, paused: false, changed, unknown: false }
        }
    };
    session.output.show(&steered, |Steered { name, paused, changed, unknown }| {
        let word = if *paused { "paused" } else { "resumed" };
        if *changed && *unknown {
            format!("{word} queue {name}, which has no live jobs; `ratchet queues` lists those that have")
        } else if *changed {
            format!("{word} queue {name}")
        } else {
            format!("queue {name}: nothing to change, {word} already")
        }
    })?;
    Ok(Exit::Done)
}

/// A queue's health, with times in milliseconds as everywhere in JSON.
#[derive(Serialize)]
struct HealthView<'a> {
    queue: &'a QueueName,
    paused: bool,
    waiting: Depth,
    oldest_wait_ms: Option<f64>,
    running: u64,
    recent: RecentView,
}

#[derive(Serialize)]
struct RecentView {
    succeeded: u64,
    failed: u64,
    per_minute: f64,
    wait_ms: PercentilesView,
    run_ms: PercentilesView,
}

#[derive(Serialize)]
struct PercentilesView {
    p50: f64,
    p95: f64,
    p99: f64,
}

impl<'a> HealthView<'a> {
    fn of(health: &'a QueueHealth) -> Self {
        let QueueHealth { queue, paused, waiting, oldest_wait, running, recent } = health;
        let Recent { succeeded, failed, per_minute, wait, run } = *recent;
        let millis = |it: Percentiles| {
            let [p50, p95, p99] = [it.p50, it.p95, it.p99].map(times::millis);
            PercentilesView { p50, p95, p99 }
        };
        let recent = RecentView { succeeded, failed, per_minute, wait_ms: millis(wait), run_ms: millis(run) };
        let oldest_wait_ms = oldest_wait.map(times::millis);
        Self { queue, paused: *paused, waiting: *waiting, oldest_wait_ms, running: *running, recent }
    }
}

fn listed(queues: &[QueueRecord]) -> String {
    if queues.is_empty() {
        return "No queue has live jobs or is paused.".to_owned();
    }
    let live = JobState::ALL.into_iter().filter(|state| !state.is_terminal());
    let states: Vec<JobState> = live.collect();
    let mut header = vec!["QUEUE", "CLAIMS"];
    header.extend(states.iter().map(|state| state.as_str()));
    let rows = queues.iter().map(|queue| {
        let mut row = vec![queue.name.to_string(), if queue.paused { "paused" } else { "open" }.to_owned()];
        row.extend(states.iter().map(|state| queue.live.get(state).copied().unwrap_or(0).to_string()));
        row
    });
    table(&header, 0, rows)
}

fn healthy(queues: &[QueueHealth]) -> String {
    if queues.is_empty() {
        return "No queue has jobs that wait, run or ended lately, or is paused.".to_owned();
    }
    let rows = queues.iter().map(|queue| {
        let recent = queue.recent;
        let ended = recent.succeeded + recent.failed;
        let of_ended = |text: String| if ended == 0 { String::new() } else { text };
        vec![
            queue.queue.to_string(),
            if queue.paused { "paused" } else { "open" }.to_owned(),
            queue.waiting.to_string(),
            queue.oldest_wait.map(times::duration).unwrap_or_default(),
            queue.running.to_string(),
            of_ended(format!("{:.1}", recent.per_minute)),
            of_ended(format!("{} of {ended}", recent.failed)),
            of_ended(format!("{} / {}", times::duration(recent.wait.p50), times::duration(recent.wait.p99))),
            of_ended(format!("{} / {}", times::duration(recent.run.p50), times::duration(recent.run.p99))),
        ]
    });
    let (running, failed) = (JobState::Running.as_str(), JobState::Failed.as_str());
    let header = ["QUEUE", "CLAIMS", "DEPTH", "OLDEST", running, "A MINUTE", failed, "WAIT P50/P99", "RUN P50/P99"];
    table(&header, 0, rows)
}
