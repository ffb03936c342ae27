//! `ratchet jobs list`

use anyhow::Result;
use clap::Args;
use ratchet::{BusinessKey, InvalidInput, JobCursor, JobFilter, JobId, JobState, Kind, QueueName, Tag, Timestamp};
use ratchet_core::clock;
use serde::Serialize;

use super::view::JobView;
use crate::exit::Exit;
use crate::output::table;
use crate::paging::{Pages, more};
use crate::queues::queue_name;
use crate::session::Session;
use crate::times;

#[derive(Args)]
pub(crate) struct Filter {
    /// Only in these states, such as `failed` or `pending,running`
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<JobState>,
    /// Only of this kind
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
    /// Only in this queue
    #[arg(long, value_parser = queue_name)]
    queue: Option<QueueName>,
    /// Only with this tag
    #[arg(long, value_parser = tag)]
    tag: Option<Tag>,
    /// Only with this business key, held or once held
    #[arg(long, value_name = "KEY", value_parser = business_key)]
    business_key: Option<BusinessKey>,
    /// Only the children of this batch or schedule
    #[arg(long, value_name = "ID")]
    parent: Option<JobId>,
    #[command(flatten)]
    pages: Pages,
}

fn kind(text: &str) -> Result<Kind, InvalidInput> {
    Kind::new(text)
}

fn tag(text: &str) -> Result<Tag, InvalidInput> {
    Tag::new(text)
}

fn business_key(text: &str) -> Result<BusinessKey, InvalidInput> {
    BusinessKey::new(text)
}

#[derive(Serialize)]
struct PageView {
    items: Vec<JobView>,
    next: Option<JobId>,
}

pub(super) async fn run(session: &Session, filter: Filter) -> Result<Exit> {
    let Filter { state, kind, queue, tag, business_key, parent, pages } = filter;
    let client = session.client().await?;
    let filter = JobFilter { states: state, kind, queue, tag, business_key, parent };
    let (after, limit) = pages.ask();
    let page = client.list(&filter, after, limit).await?;
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
        [job.id.to_string(), job.state.to_string(), job.kind.to_string(), tries, when(job, now)]
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
