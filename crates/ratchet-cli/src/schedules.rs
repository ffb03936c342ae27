//! `ratchet schedules`

use anyhow::Result;
use clap::{Args, Subcommand};
use ratchet::schedule::Schedule;
use ratchet::{BusinessKey, Client, InvalidInput, JobCursor, JobId, ScheduleFilter, ScheduleRecord, Tag, Timestamp};
use serde::Serialize;

use crate::counts::counted;
use crate::exit::Exit;
use crate::output::{details, table};
use crate::paging::{Pages, more};
use crate::session::Session;
use crate::times;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List schedules, newest first
    List(Listing),
    /// Show one schedule and its next fires
    Show(Show),
    /// Suspend a schedule
    Pause(Which),
    /// Let a paused schedule go on with its next future fire
    Resume(Which),
    /// Fire a schedule now, beside its own times
    Run(Which),
    /// End schedules for good; the jobs that they have fired stay
    Cancel(Ending),
}

#[derive(Args)]
pub(crate) struct Listing {
    /// Only with this tag
    #[arg(long, value_parser = tag)]
    tag: Option<Tag>,
    /// Only the one with this business key
    #[arg(long, value_name = "KEY", value_parser = business_key)]
    business_key: Option<BusinessKey>,
    /// How many of the next fires of each, with --json
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(0..=1000))]
    next: u16,
    #[command(flatten)]
    pages: Pages,
}

#[derive(Args)]
pub(crate) struct Show {
    /// The schedule
    id: JobId,
    /// How many of its next fires
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(0..=1000))]
    next: u16,
}

#[derive(Args)]
pub(crate) struct Which {
    /// The schedule
    id: JobId,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Ending {
    /// The schedule
    id: Option<JobId>,
    /// All with this tag
    #[arg(long, value_parser = tag)]
    tag: Option<Tag>,
    /// The one with this business key
    #[arg(long, value_name = "KEY", value_parser = business_key)]
    business_key: Option<BusinessKey>,
}

fn tag(text: &str) -> Result<Tag, InvalidInput> {
    Tag::new(text)
}

fn business_key(text: &str) -> Result<BusinessKey, InvalidInput> {
    BusinessKey::new(text)
}

/// A schedule and its next fires.
#[derive(Serialize)]
struct View {
    #[serde(flatten)]
    record: ScheduleRecord,
    next_fires: Vec<Timestamp>,
}

impl View {
    fn new(record: ScheduleRecord, count: u16) -> Self {
        let next_fires = if record.paused { Vec::new() } else { record.next_fires(usize::from(count)) };
        Self { record, next_fires }
    }
}

#[derive(Serialize)]
struct List {
    items: Vec<View>,
    next: Option<JobCursor>,
}

/// What came of a command.
#[derive(Serialize)]
struct Answer {
    done: bool,
    text: String,
    job: Option<JobId>,
}

pub(crate) async fn run(session: &Session, command: Command) -> Result<Exit> {
    let client = session.client().await?;
    match command {
        Command::List(listing) => list(session, &client, listing).await,
        Command::Show(show) => {
            let Some(record) = client.find_schedule(show.id).await? else { return Ok(missing(show.id)) };
            let now = client.store().database_time().await?;
            session.output.show(&View::new(record, show.next), |view| page(view, now))?;
            Ok(Exit::Done)
        }
        Command::Pause(which) => {
            let done = client.pause_schedule(which.id).await?;
            steered(session, &client, which.id, done, "paused", "is paused already").await
        }
        Command::Resume(which) => {
            let done = client.resume_schedule(which.id).await?;
            steered(session, &client, which.id, done, "resumed", "is not paused").await
        }
        Command::Run(which) => {
            let Some(job) = client.run_schedule_now(which.id).await? else { return Ok(missing(which.id)) };
            answer(session, format!("fired job {job}"), Some(job))
        }
        Command::Cancel(ending) => cancel(session, &client, ending).await,
    }
}

async fn list(session: &Session, client: &Client, listing: Listing) -> Result<Exit> {
    let filter = ScheduleFilter { tag: listing.tag, business_key: listing.business_key, declared: None };
    let (after, limit) = listing.pages.ask();
    let page = client.schedules(&filter, after, limit).await?;
    let now = client.store().database_time().await?;
    let items = page.items.into_iter().map(|record| View::new(record, listing.next)).collect();
    let list = List { items, next: page.next };
    session.output.show(&list, |list| {
        if list.items.is_empty() {
            return "There are no schedules.".to_owned();
        }
        let rows = list.items.iter().map(|View { record: one, .. }| {
            [
                one.id.to_string(),
                one.spec.kind.to_string(),
                times_of(&one.schedule),
                next_of(one, now),
                one.last_fire.map(|last| times::ago(last, now)).unwrap_or_default(),
                one.fired.to_string(),
                one.skipped.to_string(),
            ]
        });
        let text = table(&["ID", "KIND", "TIMES", "NEXT", "LAST", "FIRED", "SKIPPED"], 2, rows);
        text + &more(list.next)
    })?;
    Ok(Exit::Done)
}

async fn cancel(session: &Session, client: &Client, ending: Ending) -> Result<Exit> {
    if let Some(id) = ending.id {
        if !client.cancel_schedule(id).await? {
            return Ok(missing(id));
        }
        return answer(session, format!("canceled {id}"), None);
    }
    let filter = ScheduleFilter { tag: ending.tag, business_key: ending.business_key, declared: None };
    let canceled = client.cancel_schedules(&filter).await?;
    answer(session, format!("canceled {}", counted(canceled as u64, "schedule", "schedules")), None)
}

fn answer(session: &Session, text: String, job: Option<JobId>) -> Result<Exit> {
    session.output.show(&Answer { done: true, text, job }, |answer| answer.text.clone())?;
    Ok(Exit::Done)
}

async fn steered(session: &Session, client: &Client, id: JobId, done: bool, did: &str, refusal: &str) -> Result<Exit> {
    if done {
        return answer(session, format!("{did} {id}"), None);
    }
    if client.find_schedule(id).await?.is_none() {
        return Ok(missing(id));
    }
    eprintln!("error: schedule {id} {refusal}");
    Ok(Exit::Refused)
}

fn missing(id: JobId) -> Exit {
    eprintln!("error: there is no schedule {id}");
    Exit::NotFound
}

/// When it fires, as people write it.
fn times_of(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Cron(cron) => format!("{} ({})", cron.expression, cron.zone),
        Schedule::Every(every) => format!("every {}", times::duration(every.interval())),
    }
}

fn next_of(one: &ScheduleRecord, now: Timestamp) -> String {
    match one.next_fire {
        _ if one.paused => "paused".to_owned(),
        Some(next) => times::relative(next, now),
        None => "never".to_owned(),
    }
}

fn page(view: &View, now: Timestamp) -> String {
    let one = &view.record;
    let at = |time: Timestamp| format!("{time:.3} ({})", times::relative(time, now));
    let mut rows = vec![
        ("id", one.id.to_string()),
        ("kind", one.spec.kind.to_string()),
        ("times", times_of(&one.schedule)),
        ("queue", one.spec.queue.to_string()),
        ("misfire", one.misfire.to_string()),
        ("overlap", one.overlap.to_string()),
        ("declared", if one.declared { "by the code of nodes" } else { "at run time" }.to_owned()),
        ("fired", format!("{}, {} passed over", counted(one.fired, "job", "jobs"), one.skipped)),
        ("created", at(one.created_at)),
    ];
    let mut add = |name: &'static str, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("business key", one.business_key.as_ref().map(ToString::to_string));
    add("last fire", one.last_fire.map(at));
    add("last job", one.last_job.map(|id| id.to_string()));
    add("payload", Some(one.spec.payload.as_str().to_owned()));
    add("paused", one.paused.then(|| "yes".to_owned()));
    for next in &view.next_fires {
        rows.push(("next", at(*next)));
    }
    details(rows)
}
