//! `ratchet jobs list`

use anyhow::Result;
use clap::Args;
use ratchet::{ArchiveScope, JobFilter, JobState, ListCursor, ListOrder, Timestamp};
use ratchet_core::clock;
use serde::Serialize;

use super::filter_args::JobFilterArgs;
use super::view::JobView;
use crate::exit::Exit;
use crate::output::table;
use crate::paging::more;
use crate::session::Session;
use crate::times;

/// Which jobs, in whatever state and wherever they are.
#[derive(Args)]
pub(super) struct Which {
    /// Only in these states, such as `failed` or `pending,running`
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<JobState>,
    #[command(flatten)]
    jobs: JobFilterArgs,
    /// Only jobs in the archive
    #[arg(long, conflicts_with = "with_archived")]
    archived: bool,
    /// Jobs in the archive too
    #[arg(long)]
    with_archived: bool,
}

impl Which {
    pub(super) fn into_filter(self) -> JobFilter {
        let Self { state, jobs, archived, with_archived } = self;
        let archive = match (archived, with_archived) {
            (true, _) => ArchiveScope::Archived,
            (false, true) => ArchiveScope::Both,
            (false, false) => ArchiveScope::Live,
        };
        JobFilter { states: state, archive, ..jobs.into_filter() }
    }
}

#[derive(Args)]
pub(crate) struct Filter {
    #[command(flatten)]
    jobs: Which,
    /// Newest first, oldest first, or the highest priority first
    #[arg(long, default_value = "newest")]
    order: ListOrder,
    /// At most so many on the page
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Begin after this place; the last line of a page names it
    #[arg(long, value_name = "PLACE")]
    after: Option<ListCursor>,
}

#[derive(Serialize)]
struct PageView {
    items: Vec<JobView>,
    next: Option<String>,
}

pub(super) async fn run(session: &Session, filter: Filter) -> Result<Exit> {
    let Filter { jobs, order, limit, mut after } = filter;
    let client = session.client().await?;
    let (filter, limit) = (JobFilter { order, ..jobs.into_filter() }, usize::from(limit));
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
        next: page.next.map(|cursor| cursor.to_string()),
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
    table(&["ID", "STATE", "KIND", "TRY", "WHEN"], 2, rows) + &more(page.next.as_ref())
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
