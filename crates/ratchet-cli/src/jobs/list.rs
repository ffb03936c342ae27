//! `ratchet jobs list`

use anyhow::Result;
use clap::Args;
use ratchet::{ArchiveScope, JobCursor, JobFilter, JobId, JobState, Timestamp};
use ratchet_core::clock;
use serde::Serialize;

use super::narrow::Narrow;
use super::view::JobView;
use crate::exit::Exit;
use crate::output::table;
use crate::paging::{Pages, more};
use crate::session::Session;
use crate::times;

#[derive(Args)]
pub(crate) struct Filter {
    /// Only in these states, such as `failed` or `pending,running`
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<JobState>,
    #[command(flatten)]
    jobs: Narrow,
    /// Only jobs in the archive
    #[arg(long, conflicts_with = "with_archived")]
    archived: bool,
    /// Jobs in the archive too
    #[arg(long)]
    with_archived: bool,
    #[command(flatten)]
    pages: Pages,
}

#[derive(Serialize)]
struct PageView {
    items: Vec<JobView>,
    next: Option<JobId>,
}

pub(super) async fn run(session: &Session, filter: Filter) -> Result<Exit> {
    let Filter { state, jobs, archived, with_archived, pages } = filter;
    let client = session.client().await?;
    let archive = match (archived, with_archived) {
        (true, _) => ArchiveScope::Archived,
        (false, true) => ArchiveScope::Both,
        (false, false) => ArchiveScope::Live,
    };
    let filter = JobFilter { states: state, archive, ..jobs.into_filter() };
    let (mut after, limit) = pages.ask();
    let mut page = client.list(&filter, after, limit).await?;
    // Each look is short; whoever asked wants the page full.
    while page.items.len() < limit && page.next.is_some() {
        after = page.next;
        let more = client.list(&filter, after, limit - page.items.len()).await?;
        page.items.extend(more.items);
        page.next = more.next;
    }
    let now = client.store().database_time().await?;
    let page = PageView {
        items: page.items.into_iter().map(JobView::from).collect(),
        next: page.next.map(|JobCursor(id)| id),
    };
    session.output.show(&page, |page| listed(page, now))?;
    Ok(Exit::Done)
}

fn listed(page: &PageView, now: Timestamp) -> String {
    if page.items.is_empty() {
        return "No jobs.".to_owned();
    }
    let rows = page.items.iter().map(|job| {
        let tries = format!("{}/{}", job.attempts, job.max_retries.saturating_add(1));
        let archived = if job.archived_at.is_some() { " (archived)" } else { "" };
        [job.id.to_string(), format!("{}{archived}", job.state), job.kind.to_string(), tries, when(job, now)]
    });
    table(&["ID", "STATE", "KIND", "TRY", "WHEN"], 2, rows) + &more(page.next.map(JobCursor))
}

/// When it runs, since when it runs, or when it ended.
fn when(job: &JobView, now: Timestamp) -> String {
    match (job.state, job.running_since, job.ended_at) {
        (JobState::Pending, ..) => format!("due {}", times::relative(job.due_at, now)),
        (JobState::Running, Some(since), _) => {
            let percent = job.progress.map(|progress| format!(" {:.0}%", progress * 100.0)).unwrap_or_default();
            format!("for {}{percent}", times::short(clock::elapsed(since, now)))
        }
        (_, _, Some(ended)) => times::ago(ended, now),
        _ => "-".to_owned(),
    }
}
