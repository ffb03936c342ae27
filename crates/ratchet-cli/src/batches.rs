//! `ratchet batches`

use anyhow::Result;
use clap::{Args, Subcommand};
use ratchet::{Batch, BatchProgress, Client, ErrorKind, JobCursor, JobId, ProgressEvery};
use serde::Serialize;

use crate::counts::counted;
use crate::exit::Exit;
use crate::output::{details, table};
use crate::paging::{Pages, more};
use crate::session::Session;
use crate::times;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List batches, newest first
    List(Pages),
    /// Show one batch: how far it is, and what came of its children
    Show(Which),
    /// Cancel a batch with all its children that have not ended
    Cancel(Which),
    /// Say that an open batch gets no further children, so that it can end
    Seal(Which),
}

#[derive(Args)]
pub(crate) struct Which {
    /// The batch
    id: JobId,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<Exit> {
    let client = session.client().await?;
    match command {
        Command::List(pages) => list(session, &client, &pages).await,
        Command::Show(which) => {
            let Some(batch) = client.batch_record(which.id).await? else { return Ok(missing(which.id)) };
            let shown = Shown { progress: batch.progress(), batch };
            session.output.show(&shown, page)?;
            Ok(Exit::Done)
        }
        Command::Cancel(which) => {
            if client.batch_record(which.id).await?.is_none() {
                return Ok(missing(which.id));
            }
            let canceled = client.cancel_batch(which.id).await?;
            let answer = Canceled { id: which.id, canceled };
            session.output.show(&answer, |answer| {
                format!("canceled {} of {}", counted(answer.canceled, "child", "children"), answer.id)
            })?;
            Ok(Exit::Done)
        }
        Command::Seal(which) => match client.seal_batch(which.id).await {
            Ok(()) => {
                session.output.show(&Sealed { id: which.id }, |sealed| format!("sealed {}", sealed.id))?;
                Ok(Exit::Done)
            }
            Err(error) if *error.kind() == ErrorKind::NotFound => Ok(missing(which.id)),
            Err(error) if *error.kind() == ErrorKind::Conflict => {
                eprintln!("error: {error}");
                Ok(Exit::Refused)
            }
            Err(error) => Err(error.into()),
        },
    }
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    batch: Batch,
    progress: BatchProgress,
}

#[derive(Serialize)]
struct Canceled {
    id: JobId,
    canceled: u64,
}

#[derive(Serialize)]
struct Sealed {
    id: JobId,
}

#[derive(Serialize)]
struct List {
    items: Vec<Batch>,
    next: Option<JobCursor>,
}

fn missing(id: JobId) -> Exit {
    eprintln!("error: there is no batch {id}");
    Exit::NotFound
}

async fn list(session: &Session, client: &Client, pages: &Pages) -> Result<Exit> {
    let (after, limit) = pages.ask();
    let page = client.batches(after, limit).await?;
    let list = List { items: page.items, next: page.next };
    session.output.show(&list, |list| {
        if list.items.is_empty() {
            return "There are no batches.".to_owned();
        }
        let rows = list.items.iter().map(|batch| {
            let progress = batch.progress();
            let ended = format!("{}/{}", progress.done, progress.total);
            [batch.id.to_string(), standing(batch), bar(&progress, 20), ended, progress.failed.to_string()]
        });
        let text = table(&["ID", "STATE", "PROGRESS", "ENDED", "FAILURES"], 1, rows);
        text + &more(list.next)
    })?;
    Ok(Exit::Done)
}

/// What people want to know first: a batch that waits for more children is not one that waits for these.
fn standing(batch: &Batch) -> String {
    let state = batch.state.to_string();
    match (batch.canceling, batch.refusal()) {
        (true, _) => format!("{state}, canceling children"),
        (false, None) => format!("open, {} so far", counted(batch.counts.total, "child", "children")),
        (false, Some(_)) => state,
    }
}

/// `[#########...........]  45.0 %`
fn bar(progress: &BatchProgress, width: usize) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a drawing"
    )]
    let full = ((progress.percent / 100.0 * width as f64) as usize).min(width);
    format!("[{}{}] {:>5.1} %", "#".repeat(full), ".".repeat(width - full), progress.percent)
}

fn page(shown: &Shown) -> String {
    let Shown { batch, progress } = shown;
    let mut rows = vec![
        ("batch", batch.id.to_string()),
        ("state", standing(batch)),
        ("progress", format!("{}  {} of {}", bar(progress, 40), progress.done, progress.total)),
        ("succeeded", progress.succeeded.to_string()),
        ("failed", progress.failed.to_string()),
        ("canceled", progress.canceled.to_string()),
        ("rate", format!("{:.1} a second", progress.rate_per_second)),
        ("children ran", times::duration(batch.counts.child_execution)),
        ("began", batch.created_at.to_string()),
        ("last counted", batch.updated_at.to_string()),
    ];
    if let Some(ended) = batch.completed_at {
        rows.push(("ended", ended.to_string()));
    }
    if let Some(hook) = &batch.hook {
        let every = match hook.every {
            ProgressEvery::Items(1) => "child".to_owned(),
            ProgressEvery::Items(items) => format!("{items} children"),
            ProgressEvery::Percent(percent) => format!("{percent} %"),
        };
        rows.push(("tells", format!("{}, every {every}", hook.spec.kind)));
    }
    format!("{}\n\nIts children: ratchet jobs list --parent {}", details(rows), batch.id)
}
