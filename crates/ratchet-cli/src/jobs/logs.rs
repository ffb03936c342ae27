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
    /// A page of at most so many lines, from the first on
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Begin after this place; the last line of a page names it
    #[arg(long, value_name = "PLACE")]
    after: Option<LogPlace>,
    /// Only the last so many lines
    #[arg(long, value_name = "N", conflicts_with_all = ["all", "limit", "after"], value_parser = clap::value_parser!(u16).range(1..))]
    tail: Option<u16>,
    /// Every line instead of a page; with --json one object a line
    #[arg(long, conflicts_with_all = ["limit", "follow"])]
    all: bool,
    /// Show lines as they come, until the job has ended
    #[arg(long, short, conflicts_with = "limit")]
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
    let page = usize::from(which.limit);
    let mut log = Reading { client: &client, id: which.id, filter, after: which.after, page };
    if which.all {
        let count = log.read_on(|lines| print(session, lines)).await?;
        say_if_none(session, count)?;
        return Ok(Exit::Done);
    }
    let mut shown_before = 0;
    if let Some(tail) = which.tail {
        let lines = log.last(tail.into()).await?;
        if !which.follow {
            let page = PageView { lines: lines.into_iter().map(LineView::from).collect(), next: None };
            session.output.show(&page, shown)?;
            return Ok(Exit::Done);
        }
        shown_before = lines.len();
        print(session, lines)?;
    }
    if which.follow {
        let count = follow(session, log).await?;
        say_if_none(session, shown_before + count)?;
        return Ok(Exit::Done);
    }
    let page = client.job_log(which.id, &log.filter, log.after, page).await?;
    let next = page.next.map(|place| place.to_string());
    let page = PageView { lines: page.lines.into_iter().map(LineView::from).collect(), next };
    session.output.show(&page, shown)?;
    Ok(Exit::Done)
}

/// How far a log has been read.
struct Reading<'c> {
    client: &'c Client,
    id: JobId,
    filter: LogFilter,
    after: Option<LogPlace>,
    page: usize,
}

impl Reading<'_> {
    /// Hands over what follows, up to the last line that is there, a page at a time. Returns how many lines these were.
    async fn read_on(&mut self, mut take: impl FnMut(Vec<LogLine>) -> io::Result<()>) -> Result<usize> {
        let mut count = 0;
        loop {
            let page = self.client.job_log(self.id, &self.filter, self.after, self.page).await?;
            self.after = page.next.or(page.lines.last().map(LogLine::place)).or(self.after);
            count += page.lines.len();
            take(page.lines)?;
            if page.next.is_none() {
                return Ok(count);
            }
        }
    }

    /// The last of what follows.
    async fn last(&mut self, count: usize) -> Result<Vec<LogLine>> {
        let mut last = Vec::new();
        self.read_on(|lines| {
            last.extend(lines);
            last.drain(..last.len().saturating_sub(count));
            Ok(())
        })
        .await?;
        Ok(last)
    }
}

/// Prints lines as they come; as JSON, one object a line. Returns how many came.
async fn follow(session: &Session, mut log: Reading<'_>) -> Result<usize> {
    let mut count = 0;
    loop {
        // Asked for first: what an ended job wrote is in the log by the time that the log is read again.
        let ended = log.client.find(log.id).await?.is_none_or(|job| job.state.is_terminal());
        if ended {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        count += log.read_on(|lines| print(session, lines)).await?;
        if ended {
            return Ok(count);
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

const NONE: &str = "No lines.";

/// For people: a program sees that there was none.
fn say_if_none(session: &Session, count: usize) -> io::Result<()> {
    if count == 0 && !session.output.is_json() {
        session.output.say(NONE)?;
    }
    Ok(())
}

fn shown(page: &PageView) -> String {
    if page.lines.is_empty() {
        return NONE.to_owned();
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
