//! Nodes on one SQLite file.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;

use ratchet::sqlite::SqliteStore;
use ratchet::{Client, JobHandle, JobId, JobRecord, JobState, Ratchet};
use ratchet_chaos::deal::Work;
use ratchet_chaos::node::Node;
use ratchet_chaos::record::{self, Deed, Run};
use ratchet_chaos::trial::jobs_in;

/// A directory with a database and a record, and a client of its own.
pub(crate) struct Site {
    _dir: tempfile::TempDir,
    pub(crate) database: PathBuf,
    record: PathBuf,
    pub(crate) client: Client,
}

impl Site {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("jobs.db");
        let record = dir.path().join("record");
        let client = Ratchet::client(SqliteStore::open(&database).await.unwrap());
        Self { _dir: dir, database, record, client }
    }

    pub(crate) fn node(&self) -> Node {
        self.node_with(&[])
    }

    pub(crate) fn node_with(&self, args: &[&str]) -> Node {
        self.try_node_with(args).unwrap()
    }

    /// A node that may end before it is ready.
    pub(crate) fn try_node_with(&self, args: &[&str]) -> anyhow::Result<Node> {
        self.start(Command::new(env!("CARGO_BIN_EXE_chaos-node")), args)
    }

    /// A node that cannot write files beyond so many bytes.
    pub(crate) fn limited_node(&self, bytes: u64) -> Node {
        let mut command = Command::new("bash");
        // The signal that comes with the limit would kill it; ignored, writes fail instead. The limit is in KiB.
        let script = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$0\" \"$@\"", bytes.div_ceil(1_024));
        command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_chaos-node"));
        // Heartbeats fail too; this is not about them.
        self.start(command, &["--heartbeat-ms", "2000", "--grace-ms", "120000"]).unwrap()
    }

    fn start(&self, command: Command, args: &[&str]) -> anyhow::Result<Node> {
        Node::start(command, self.database.to_str().unwrap(), &self.record, args)
    }

    pub(crate) fn lines(&self) -> Vec<record::Line> {
        record::read(&self.record)
    }

    /// Every begin.
    pub(crate) fn begun(&self) -> Vec<Run> {
        self.begun_at().into_iter().map(|(_, run)| run).collect()
    }

    /// Every begin, with its time in microseconds.
    fn begun_at(&self) -> Vec<(i64, Run)> {
        let begun = |line: record::Line| match line.deed {
            Deed::Began(run) => Some((line.at, run)),
            _ => None,
        };
        self.lines().into_iter().filter_map(begun).collect()
    }

    /// How often one of these jobs was begun though its success was written: never, whoever dies. (One that was just
    /// claimed may begin after it was canceled.)
    pub(crate) fn begun_after_success(&self, jobs: &[JobRecord]) -> usize {
        let ended = jobs.iter().filter(|job| job.state == JobState::Succeeded);
        let ends: HashMap<JobId, i64> =
            ended.filter_map(|job| Some((job.id, job.terminated_at?.as_microsecond()))).collect();
        // The store's times are cut to milliseconds.
        let late = |(at, run): &(i64, Run)| ends.get(&run.job).is_some_and(|end| *at > end + 1_000);
        self.begun_at().iter().filter(|begun| late(begun)).count()
    }

    /// How many times each job was begun.
    pub(crate) fn runs(&self) -> HashMap<JobId, usize> {
        let mut runs = HashMap::new();
        for run in self.begun() {
            *runs.entry(run.job).or_default() += 1;
        }
        runs
    }

    pub(crate) async fn submit(&self, work: Work, count: usize) -> Vec<JobId> {
        let jobs: Vec<_> = (0..count).map(|_| self.client.enqueue(work.clone().unnumbered()).max_retries(0)).collect();
        self.client.submit_all(jobs).await.unwrap().iter().map(JobHandle::id).collect()
    }

    pub(crate) async fn in_state(&self, state: JobState) -> Vec<JobRecord> {
        jobs_in(&self.client, &[state]).await.unwrap()
    }

    pub(crate) async fn count(&self, state: JobState) -> u64 {
        self.client.count_by_state().await.unwrap().get(&state).copied().unwrap_or(0)
    }
}
