//! `ratchet dead-letters`

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use ratchet::{
    Client, DeadLetter, DeadLetterFilter, DeadLetterGroups, ErrorKind, Fingerprint, HeldKey, JobCursor, JobId,
    RetriedAll, Timestamp,
};
use serde::Serialize;

use crate::counts::counted;
use crate::exit::Exit;
use crate::jobs::JobFilterArgs;
use crate::output::table;
use crate::paging::{Pages, more};
use crate::session::Session;
use crate::times;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List dead letters with their errors, newest first
    List(Listing),
    /// Group dead letters by error, most frequent first
    Groups(JobFilterArgs),
    /// Retry many dead letters in one transaction: all of them, or none
    Retry(Retrying),
    /// Move old dead letters to the archive, where they can be read but not retried
    Archive(ArchiveArgs),
}

#[derive(Args)]
pub(crate) struct Listing {
    #[command(flatten)]
    jobs: JobFilterArgs,
    #[command(flatten)]
    pages: Pages,
}

/// The dead letters to retry or to archive.
#[derive(Args)]
pub(crate) struct DeadLetterArgs {
    #[command(flatten)]
    jobs: JobFilterArgs,
    /// Only those that failed for this reason; `groups` shows the fingerprints
    #[arg(long)]
    fingerprint: Option<Fingerprint>,
    /// But not these jobs; several with commas in between
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    except: Vec<JobId>,
}

impl DeadLetterArgs {
    fn into_filter(self) -> DeadLetterFilter {
        let Self { jobs, fingerprint, except } = self;
        DeadLetterFilter { jobs: jobs.into_filter(), fingerprint, except: except.into_iter().collect() }
    }
}

#[derive(Args)]
pub(crate) struct Retrying {
    #[command(flatten)]
    dead_letters: DeadLetterArgs,
    /// Leave out those whose business key another job holds, instead of retrying none
    #[arg(long)]
    skip_held: bool,
    /// At most so many, the newest first
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

#[derive(Args)]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    dead_letters: DeadLetterArgs,
    /// Count the dead letters without moving them; those that a live job depends on stay in any case
    #[arg(long)]
    dry_run: bool,
    /// Only those that failed longer ago than this, for example 30d
    #[arg(long, value_name = "DURATION", value_parser = times::parse)]
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
        Command::Archive(args) => archive(session, &client, args).await,
    }
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
        table(&["ID", "KIND", "WHEN", "CLASS", "ERROR"], 4, rows) + &more(page.next)
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

#[derive(Serialize, Default)]
struct Done {
    retried: u64,
    revived: u64,
    passed_over: u64,
    /// Whether as many were retried as were asked for, so that there may be more.
    more: bool,
    /// Those that were left out because of their business keys, or because of which none was retried.
    held: Vec<HeldKey>,
}

async fn retry(session: &Session, client: &Client, retrying: Retrying) -> Result<Exit> {
    let Retrying { dead_letters, skip_held, limit } = retrying;
    let mut filter = dead_letters.into_filter();
    let mut held = Vec::new();
    // Dead letters that are left out are not named again, so this ends.
    let retried = loop {
        match client.retry_all(&filter, limit.into()).await {
            Err(error) if skip_held && !error.held().is_empty() => {
                filter.except.extend(error.held().iter().map(|held| held.job));
                held.extend_from_slice(error.held());
            }
            retried => break retried,
        }
    };
    let RetriedAll { count, revived, passed_over, .. } = match retried {
        Ok(retried) => retried,
        Err(error) if matches!(error.kind(), ErrorKind::Duplicate { .. } | ErrorKind::Conflict) => {
            eprintln!("error: none was retried: {error}");
            if !error.held().is_empty() {
                eprintln!("  --skip-held retries the others");
            }
            if session.output.is_json() {
                let none = Done { held: error.held().to_vec(), ..Done::default() };
                session.output.show(&none, retried_text)?;
            }
            return Ok(Exit::Refused);
        }
        Err(error) => return Err(error.into()),
    };
    let more = count == u64::from(limit);
    let done = Done { retried: count, revived, passed_over, more, held };
    session.output.show(&done, retried_text)?;
    // There were some, and none of them could be.
    let refused = count == 0 && (passed_over > 0 || !done.held.is_empty());
    Ok(if refused { Exit::Refused } else { Exit::Done })
}

const PASSED_OVER: &str = "as children of batches that are over are, and steps whose condition could not be told";

fn retried_text(done: &Done) -> String {
    let mut text = format!("{} will be tried again", counted(done.retried, "dead letter", "dead letters"));
    if done.revived > 0 {
        let _ = write!(text, ", {} for them again", counted(done.revived, "job waits", "jobs wait"));
    }
    if done.passed_over > 0 {
        let _ = write!(text, "; {} passed over, {PASSED_OVER}", counted(done.passed_over, "was", "were"));
    }
    if done.more {
        text.push_str("; there may be more: --limit takes up to 1000, and the same again goes on");
    }
    for held in &done.held {
        let _ = write!(text, "\nleft out: {held}");
    }
    text
}

#[derive(Serialize)]
struct ArchivedDeadLetters {
    /// The number of dead letters that were archived, or would be.
    archived: u64,
    dry_run: bool,
}

async fn archive(session: &Session, client: &Client, args: ArchiveArgs) -> Result<Exit> {
    let ArchiveArgs { dead_letters, dry_run, older_than } = args;
    let filter = dead_letters.into_filter();
    let archived = if dry_run {
        client.dead_letters_to_archive(&filter, older_than).await?
    } else {
        client.archive_dead_letters_of(&filter, older_than).await?
    };
    session.output.show(&ArchivedDeadLetters { archived, dry_run }, |done| {
        let counted = counted(done.archived, "dead letter", "dead letters");
        if done.dry_run { format!("would archive {counted}") } else { format!("archived {counted}") }
    })?;
    Ok(Exit::Done)
}
