//! `ratchet jobs logs`

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use ratchet::{Client, JobId, JsonText, LogFilter, LogLevel, LogLine, LogPlace, NodeId, Timestamp};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::visible;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Which {
    /// The job
    id: JobId,
    /// Only lines of this level or one that matters more: trace, debug, info, warn, error
    #[arg(long, default_value = "trace")]
    level: LogLevel,
    /// Only lines of this attempt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempt: Option<u32>,
    /// At most so many
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// The page that follows this one; each page names the next
    #[arg(long, value_name = "PLACE")]
    after: Option<LogPlace>,
    /// Show lines as they come, until the job has ended
    #[arg(long, short)]
    follow: bool,
}

/// How often a log that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A line, as programs see it.
#[derive(Serialize)]
struct LineView {
    at: Timestamp,
    level: LogLevel,
    attempt: u32,
    version: u64,
    seq: u32,
    node: NodeId,
    message: String,
    fields: Option<JsonText>,
}

#[derive(Serialize)]
struct PageView {
    lines: Vec<LineView>,
    next: Option<String>,
}

impl From<LogLine> for LineView {
    fn from(line: LogLine) -> Self {
        let LogLine { version, seq, attempt, node, at, level, message, fields, .. } = line;
        Self { at, level, attempt, version, seq, node, message, fields }
    }
}

pub(super) async fn run(session: &Session, which: Which) -> Result<Exit> {
    let client = session.client().await?;
    if client.find(which.id).await?.is_none() {
        eprintln!("error: there is no job {}", which.id);
        return Ok(Exit::NotFound);
    }
    let filter = LogFilter { level_min: which.level, attempt: which.attempt };
    if which.follow {
        follow(session, &client, &which, filter).await?;
        return Ok(Exit::Done);
    }
    let page = client.job_log(which.id, &filter, which.after, usize::from(which.limit)).await?;
    let next = page.next.map(|place| place.to_string());
    let page = PageView { lines: page.lines.into_iter().map(LineView::from).collect(), next };
    session.output.show(&page, shown)?;
    Ok(Exit::Done)
}

/// Prints lines as they come; as JSON, one object a line.
async fn follow(session: &Session, client: &Client, which: &Which, filter: LogFilter) -> Result<()> {
    let mut after = which.after;
    loop {
        // Asked for first: what an ended job wrote is in the log by the time that the log is read again.
        let ended = client.find(which.id).await?.is_none_or(|job| job.state.is_terminal());
        if ended {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        loop {
            let page = client.job_log(which.id, &filter, after, usize::from(which.limit)).await?;
            after = page.lines.last().map(LogLine::place).or(after);
            print(session, page.lines)?;
            if page.next.is_none() {
                break;
            }
        }
        if ended {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn print(session: &Session, lines: Vec<LogLine>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in lines.into_iter().map(LineView::from) {
        if session.output.is_json() {
            serde_json::to_writer(&mut stdout, &line)?;
            writeln!(stdout)?;
        } else {
            writeln!(stdout, "{}", visible(&text(&line)))?;
        }
    }
    stdout.flush()
}

fn shown(page: &PageView) -> String {
    if page.lines.is_empty() {
        return "No lines.".to_owned();
    }
    let lines: Vec<String> = page.lines.iter().map(text).collect();
    let more = page.next.as_ref().map(|place| format!("\n\nMore: --after {place}")).unwrap_or_default();
    lines.join("\n") + &more
}

/// `2026-11-16T09:08:38.123Z WARN  try 1  the card expires  cents=4200 invoice="17"`
fn text(line: &LineView) -> String {
    let indented = line.message.replace('\n', "\n    ");
    format!("{:.3} {:<5} try {}  {indented}{}", line.at, line.level, line.attempt, fields(line.fields.as_ref()))
}

fn fields(fields: Option<&JsonText>) -> String {
    let all = fields.and_then(|fields| fields.decode::<serde_json::Map<String, serde_json::Value>>().ok());
    let shown = all.unwrap_or_default().into_iter().map(|(name, value)| format!(" {name}={value}"));
    let shown: String = shown.collect();
    if shown.is_empty() { shown } else { format!(" {shown}") }
}
