//! `ratchet workflows`

use anyhow::Result;
use clap::{Args, Subcommand};
use ratchet::flow::{EdgeState, Workflow};
use ratchet::{Client, JobCursor, JobId, JobState, WorkflowState};
use serde::Serialize;

use crate::counts::counted;
use crate::exit::Exit;
use crate::output::table;
use crate::paging::{Pages, more};
use crate::session::Session;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List workflows, newest first
    List(Pages),
    /// Show one workflow: its steps, its edges, and what came of them
    Show(Which),
    /// Cancel every step that has not ended
    Cancel(Which),
}

#[derive(Args)]
pub(crate) struct Which {
    /// The workflow, or any of its jobs
    id: JobId,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<Exit> {
    let client = session.client().await?;
    match command {
        Command::List(pages) => list(session, &client, &pages).await,
        Command::Show(which) => {
            let Some(workflow) = find(&client, which.id).await? else { return Ok(missing(which.id)) };
            session.output.show(&Shown { state: workflow.state(), workflow }, |shown| page(&shown.workflow))?;
            Ok(Exit::Done)
        }
        Command::Cancel(which) => {
            let Some(workflow) = find(&client, which.id).await? else { return Ok(missing(which.id)) };
            let canceled = client.cancel_workflow(workflow.id).await?;
            let answer = Canceled { id: workflow.id, canceled };
            session.output.show(&answer, |answer| {
                format!("canceled {} of {}", counted(answer.canceled as u64, "step", "steps"), answer.id)
            })?;
            Ok(Exit::Done)
        }
    }
}

#[derive(Serialize)]
struct Shown {
    state: WorkflowState,
    #[serde(flatten)]
    workflow: Workflow,
}

#[derive(Serialize)]
struct Canceled {
    id: JobId,
    canceled: usize,
}

#[derive(Serialize)]
struct Listed {
    id: JobId,
    state: WorkflowState,
    first: String,
    steps: usize,
    ended: usize,
    failed: usize,
}

#[derive(Serialize)]
struct List {
    items: Vec<Listed>,
    next: Option<JobCursor>,
}

/// The workflow of this id, or the one that the job of this id is a step of.
async fn find(client: &Client, id: JobId) -> Result<Option<Workflow>> {
    if let Some(workflow) = client.workflow_graph(id).await? {
        return Ok(Some(workflow));
    }
    match client.find(id).await?.and_then(|job| job.workflow) {
        Some(workflow) => Ok(client.workflow_graph(workflow).await?),
        None => Ok(None),
    }
}

fn missing(id: JobId) -> Exit {
    eprintln!("error: there is no workflow {id}, and no job of that id that is a step of one");
    Exit::NotFound
}

async fn list(session: &Session, client: &Client, pages: &Pages) -> Result<Exit> {
    let (after, limit) = pages.ask();
    let ids = client.workflows(after, limit).await?;
    let mut items = Vec::with_capacity(ids.items.len());
    for id in ids.items {
        let Some(workflow) = client.workflow_graph(id).await? else { continue };
        let count = |wanted: fn(JobState) -> bool| workflow.steps.iter().filter(|step| wanted(step.state)).count();
        items.push(Listed {
            id,
            state: workflow.state(),
            first: workflow.steps.first().map(|step| step.kind.to_string()).unwrap_or_default(),
            steps: workflow.steps.len(),
            ended: count(JobState::is_terminal),
            failed: count(|state| state == JobState::Failed),
        });
    }
    let list = List { items, next: ids.next };
    session.output.show(&list, |list| {
        if list.items.is_empty() {
            return "There are no workflows.".to_owned();
        }
        let rows = list.items.iter().map(|one| {
            let ended = format!("{}/{}", one.ended, one.steps);
            [one.id.to_string(), one.state.as_str().to_owned(), one.first.clone(), ended, one.failed.to_string()]
        });
        let text = table(&["ID", "STATE", "FIRST STEP", "ENDED", "FAILURES"], 2, rows);
        text + &more(list.next)
    })?;
    Ok(Exit::Done)
}

fn page(workflow: &Workflow) -> String {
    let name = |id: JobId| {
        let step = workflow.steps.iter().find(|step| step.id == id);
        step.map_or_else(
            || id.to_string(),
            |step| step.step.as_ref().map_or_else(|| step.kind.to_string(), |name| name.as_str().to_owned()),
        )
    };
    let counts: Vec<String> = workflow.counts().iter().map(|(state, count)| format!("{count} {state}")).collect();
    let mut text = format!("workflow {}: {}, {}\n\n", workflow.id, workflow.state().as_str(), counts.join(", "));
    let steps = workflow.steps.iter().map(|step| {
        let after: Vec<String> = workflow
            .edges
            .iter()
            .filter(|edge| edge.child == step.id)
            .map(|edge| {
                let told = match edge.state {
                    EdgeState::Open => "",
                    EdgeState::Held => " ✓",
                    EdgeState::NotHeld => " ✗",
                };
                let meaning = edge.description.clone().unwrap_or_else(|| edge.condition.to_string());
                format!("{} ({meaning}){told}", name(edge.parent))
            })
            .collect();
        [
            name(step.id),
            step.kind.to_string(),
            step.id.to_string(),
            step.state.to_string(),
            after.join(", "),
            step.error.clone().unwrap_or_default(),
        ]
    });
    text.push_str(&table(&["STEP", "KIND", "ID", "STATE", "AFTER", "ERROR"], 4, steps));
    text
}
