//! `ratchet queues`

use anyhow::Result;
use clap::Subcommand;
use ratchet::{InvalidInput, JobState, QueueName, QueueRecord};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::table;
use crate::session::Session;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Let no node claim from the queue; jobs that run go on
    Pause(Queue),
    /// Let the queue's jobs be claimed again
    Resume(Queue),
}

#[derive(clap::Args)]
pub(crate) struct Queue {
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
}

pub(crate) async fn run(session: &Session, command: Option<Command>) -> Result<Exit> {
    let client = session.client().await?;
    let steered = match command {
        None => {
            let queues = client.queues().await?;
            session.output.show(&queues, |queues| listed(queues))?;
            return Ok(Exit::Done);
        }
        Some(Command::Pause(Queue { name })) => {
            let changed = client.pause_queue(&name).await?;
            Steered { name, paused: true, changed }
        }
        Some(Command::Resume(Queue { name })) => {
            let changed = client.resume_queue(&name).await?;
            Steered { name, paused: false, changed }
        }
    };
    session.output.show(&steered, |Steered { name, paused, changed }| {
        let word = if *paused { "paused" } else { "resumed" };
        if *changed {
            format!("{word} queue {name}")
        } else {
            format!("queue {name}: nothing to change, {word} already")
        }
    })?;
    Ok(Exit::Done)
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
