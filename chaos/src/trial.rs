//! A run: nodes, a stream of jobs, faults, and the history of it all.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ratchet::{Client, JobFilter, JobRecord, JobState};
use tokio::sync::{Mutex, watch};

use crate::broken::Broken;
use crate::check::{Findings, Rules, check};
use crate::database::{Database, OwnServer};
use crate::deal::Deal;
use crate::faults::{Slot, befall_nodes, befall_server};
use crate::history::{History, Sighting, StoredAttempt, StoredJob};
use crate::node::Node;
use crate::record::{self, now};
use crate::stream::{self, Log};

/// How the nodes of a run are started.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// The program `chaos-node`.
    pub program: PathBuf,
    /// The record.
    pub record: PathBuf,
    /// Between two heartbeats.
    pub heartbeat_ms: u64,
    /// How long a node may be silent.
    pub grace_ms: u64,
    /// What is broken on purpose.
    pub broken: Option<Broken>,
}

impl NodeSettings {
    /// Quick nodes, so that a run need not be long.
    pub fn quick(program: &Path, record: &Path) -> Self {
        let (program, record) = (program.to_owned(), record.to_owned());
        Self { program, record, heartbeat_ms: 200, grace_ms: 2_000, broken: None }
    }

    /// Starts one and waits until it runs.
    ///
    /// # Errors
    /// If it ends before.
    pub fn start(&self, url: &str) -> Result<Node> {
        let mut command = Command::new(&self.program);
        command.args(["--heartbeat-ms", &self.heartbeat_ms.to_string(), "--grace-ms", &self.grace_ms.to_string()]);
        command.args(["--store-deadline-ms", "5000"]);
        if let Some(broken) = self.broken {
            command.args(["--broken", broken.name()]);
        }
        Node::start(command, url, &self.record, &[])
    }
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// On which database.
    pub database: Database,
    /// What decides about everything that is random.
    pub seed: u64,
    /// How long things go wrong.
    pub faults_for: Duration,
    /// How soon after that everything must have ended.
    pub end_limit: Duration,
    /// Jobs a second.
    pub per_second: u64,
    /// The program `chaos-node`.
    pub program: PathBuf,
}

/// What came of it.
#[derive(Debug)]
pub struct Trial {
    /// Everything that happened.
    pub history: History,
    /// What is wrong with it.
    pub findings: Findings,
    /// How long after the faults the last job ended.
    pub ended_after: Duration,
}

const NODES: usize = 3;

/// What `RATCHET_SEED` says, or chance.
pub fn seed() -> u64 {
    std::env::var("RATCHET_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..))
}

/// Runs the plan on a server of its own.
///
/// # Errors
/// If the run itself cannot be made; broken promises are among the findings.
pub async fn run(plan: &Plan) -> Result<Trial> {
    let database = plan.database;
    let server = Mutex::new(tokio::task::block_in_place(|| OwnServer::start_new(database))?);
    let dir = tempfile::tempdir()?;
    let settings = NodeSettings::quick(&plan.program, &dir.path().join("record"));
    let url = server.lock().await.url();
    let direct = Client::new(ratchet::open_store(&url, true).await?);

    let mut slots = Vec::new();
    for _ in 0..NODES {
        slots.push(Slot::start(&server, &settings).await?);
    }
    let way = server.lock().await.proxy().await?;
    let submitter = Client::new(ratchet::open_store(&server.lock().await.url_through(&way), false).await?);
    let log = Log::default();
    let (stop, stopped) = watch::channel(false);
    let stream = tokio::spawn(stream::submit(submitter, log.clone(), plan.per_second, plan.seed, stopped.clone()));
    let sightings = tokio::spawn(watch_ends(direct.clone(), log.clone(), stopped));

    let deadline = Instant::now() + plan.faults_for;
    let (to_nodes, to_server) = tokio::join!(
        befall_nodes(&mut slots, &way, &server, &settings, plan.seed ^ 1, deadline),
        befall_server(&server, plan.seed ^ 2, deadline),
    );
    let faults = [to_nodes?, to_server?].concat();
    let faults_ended = now();
    stop.send_replace(true);
    stream.await?;
    sightings.await?;
    wait_for_ends(&direct, plan.end_limit).await?;
    for slot in slots {
        slot.node.kill()?;
    }
    let history = gather(&direct, &log, &settings.record, faults, faults_ended).await?;
    let grace = Duration::from_millis(settings.grace_ms);
    let findings = check(&history, Rules { grace, end_limit: plan.end_limit });
    let last = history.jobs.iter().filter_map(|job| job.terminated_at).max().unwrap_or(faults_ended);
    let ended_after = Duration::from_micros(u64::try_from(last - faults_ended).unwrap_or(0));
    Ok(Trial { history, findings, ended_after })
}

/// Notes the ends of jobs while the run goes on, as far as the server answers.
async fn watch_ends(client: Client, log: Log, mut stop: watch::Receiver<bool>) {
    let mut seen = std::collections::HashSet::new();
    loop {
        let pause = tokio::time::sleep(Duration::from_millis(300));
        tokio::select! {
            () = pause => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let open: Vec<_> = log.accepted().into_iter().filter(|id| !seen.contains(id)).collect();
        let asked = tokio::time::timeout(Duration::from_secs(2), client.store().find(&open)).await;
        let Ok(Ok(jobs)) = asked else { continue };
        for job in jobs.iter().filter(|job| job.state.is_terminal()) {
            seen.insert(job.id);
            log.saw(Sighting { job: job.id, state: job.state, version: Some(job.version) });
        }
    }
}

/// Waits until every job is terminal, or the limit has passed.
///
/// # Errors
/// If the store does not answer.
pub async fn wait_for_ends(client: &Client, limit: Duration) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        let counts = client.count_by_state().await?;
        if counts.iter().all(|(state, count)| state.is_terminal() || *count == 0) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Puts together what all sides say.
///
/// # Errors
/// If the store does not answer.
pub async fn gather(
    client: &Client,
    log: &Log,
    record: &Path,
    faults: Vec<crate::history::Fault>,
    faults_ended: i64,
) -> Result<History> {
    let told = log.told();
    let mut history = History {
        submissions: told.submissions,
        sightings: told.sightings,
        lines: record::read(record),
        faults,
        faults_ended,
        ..History::default()
    };
    for job in all_jobs(client).await? {
        for attempt in client.attempts(job.id).await? {
            let (version, node, status) = (attempt.version, attempt.node, attempt.status);
            history.attempts.push(StoredAttempt { job: job.id, version, node, status });
        }
        history.jobs.push(StoredJob {
            id: job.id,
            serial: job.spec.payload.decode::<Deal>().context("only deals are in this store")?.serial,
            state: job.state,
            version: job.version,
            business_key: job.business_key.map(|key| key.to_string()),
            created_at: job.created_at.as_microsecond(),
            terminated_at: job.terminated_at.map(ratchet::Timestamp::as_microsecond),
        });
    }
    Ok(history)
}

/// Every job that the store has.
///
/// # Errors
/// If the store does not answer.
pub async fn all_jobs(client: &Client) -> Result<Vec<JobRecord>> {
    jobs_in(client, &[]).await
}

/// Every job in one of these states, or in any if there are none.
///
/// # Errors
/// If the store does not answer.
pub async fn jobs_in(client: &Client, states: &[JobState]) -> Result<Vec<JobRecord>> {
    let filter = JobFilter { states: states.to_vec(), ..JobFilter::default() };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = client.list(&filter, after, 1_000).await?;
        found.extend(page.items);
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}
