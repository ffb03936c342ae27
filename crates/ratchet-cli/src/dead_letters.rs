//! `ratchet dead-letters`

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use ratchet::{
    Client, DeadLetter, DeadLetterFilter, DeadLetterGroups, ErrorKind, Fingerprint, JobCursor, JobId, RetriedAll,
    Timestamp,
};
use serde::Serialize;

use crate::exit::Exit;
use crate::jobs::Narrow;
use crate::output::table;
use crate::paging::{Pages, more};
use crate::session::Session;
use crate::times;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List dead letters with their errors, newest first
    List(Listing),
    /// Put dead letters together by why they failed, the most frequent reason first
    Groups(Narrow),
    /// Give many dead letters a new life at once: all of them, or none
    Retry(Retrying),
    /// Take old dead letters out of the queue; they go to the archive
    Purge(Purge),
}

#[derive(Args)]
pub(crate) struct Listing {
    #[command(flatten)]
    jobs: Narrow,
    #[command(flatten)]
    pages: Pages,
}

#[derive(Args)]
pub(crate) struct Retrying {
    #[command(flatten)]
    jobs: Narrow,
    /// Only those that failed for this reason; `groups` shows the fingerprints
    #[arg(long)]
    fingerprint: Option<Fingerprint>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

#[derive(Args)]
pub(crate) struct Purge {
    /// Only those that failed longer ago than this, such as 30d
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    older_than: Duration,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<Exit> {
    let client = session.client().await?;
    match command {
        Command::List(listing) => list(session, &client, listing).await,
        Command::Groups(jobs) => {
            let groups = client.dead_letter_groups(&jobs.into_filter()).await?;
            let now = client.store().database_time().await?;
            session.output.show(&groups, |groups| grouped(groups, now))?;
            Ok(Exit::Done)
        }
        Command::Retry(retrying) => retry(session, &client, retrying).await,
        Command::Purge(Purge { older_than }) => {
            let purged = client.purge_dead_letters(older_than).await?;
            session.output.show(&Purged { purged }, |done| format!("archived {} dead letters", done.purged))?;
            Ok(Exit::Done)
        }
    }
}

#[derive(Serialize)]
struct Purged {
    purged: u64,
}

#[derive(Serialize)]
struct PageView {
    items: Vec<DeadLetter>,
    next: Option<JobId>,
}

async fn list(session: &Session, client: &Client, listing: Listing) -> Result<Exit> {
    let (after, limit) = listing.pages.ask();
    let page = client.dead_letters(&listing.jobs.into_filter(), after, limit).await?;
    let now = client.store().database_time().await?;
    let page = PageView { items: page.items, next: page.next.map(|JobCursor(id)| id) };
    session.output.show(&page, |page| {
        if page.items.is_empty() {
            return "No dead letters.".to_owned();
        }
        let rows = page.items.iter().map(|letter| {
            let class = letter.error_class.clone().unwrap_or_default();
            let failed = times::ago(letter.failed_at, now);
            [letter.id.to_string(), letter.kind.to_string(), failed, class, letter.error.clone()]
        });
        table(&["ID", "KIND", "WHEN", "CLASS", "ERROR"], 4, rows) + &more(page.next.map(JobCursor))
    })?;
    Ok(Exit::Done)
}

fn grouped(groups: &DeadLetterGroups, now: Timestamp) -> String {
    if groups.groups.is_empty() {
        return "No dead letters.".to_owned();
    }
    let rows = groups.groups.iter().map(|group| {
        let last = times::ago(group.last, now);
        [group.fingerprint.to_string(), group.count.to_string(), group.kind.to_string(), last, group.error.clone()]
    });
    let text = table(&["FINGERPRINT", "COUNT", "KIND", "LAST", "ERROR"], 4, rows);
    if groups.complete {
        return text;
    }
    format!("{text}\n\nOnly the newest {} were looked at; --kind or --queue tells more.", groups.looked_at)
}

#[derive(Serialize)]
struct Done {
    retried: u64,
    revived: u64,
    passed_over: u64,
}

async fn retry(session: &Session, client: &Client, retrying: Retrying) -> Result<Exit> {
    let Retrying { jobs, fingerprint, limit } = retrying;
    let filter = DeadLetterFilter { jobs: jobs.into_filter(), fingerprint };
    let RetriedAll { count, revived, passed_over, .. } = match client.retry_all(&filter, limit.into()).await {
        Ok(retried) => retried,
        Err(error) if matches!(error.kind(), ErrorKind::Duplicate { .. } | ErrorKind::Conflict) => {
            eprintln!("error: none was retried: {error}");
            return Ok(Exit::Refused);
        }
        Err(error) => return Err(error.into()),
    };
    session.output.show(&Done { retried: count, revived, passed_over }, |done| {
        let mut text = format!("{} dead letters will be tried again", done.retried);
        if done.revived > 0 {
            write!(text, ", {} jobs wait for them again", done.revived).expect("a text takes everything");
        }
        if done.passed_over > 0 {
            let passed_over = done.passed_over;
            write!(text, "; {passed_over} cannot be and were passed over").expect("a text takes everything");
        }
        text
    })?;
    Ok(Exit::Done)
}
