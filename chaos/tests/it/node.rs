//! Nodes as processes, and the file they share.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ratchet::JobFilter;
use ratchet::sqlite::SqliteStore;
use ratchet::{Client, JobId, JobRecord, JobState, NodeId, Ratchet};
use ratchet_chaos::{Deal, Deed, Record};

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
        self.start(Command::new(env!("CARGO_BIN_EXE_chaos-node")), args)
    }

    /// A node that cannot write files beyond so many bytes.
    pub(crate) fn limited_node(&self, bytes: u64) -> Node {
        let mut command = Command::new("bash");
        // The signal that comes with the limit would kill it; ignored, writes fail instead. The limit is in KiB.
        let script = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$0\" \"$@\"", bytes.div_ceil(1_024));
        command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_chaos-node"));
        // Heartbeats fail too; this is not about them.
        self.start(command, &["--heartbeat-ms", "2000", "--grace-ms", "120000"])
    }

    fn start(&self, mut command: Command, args: &[&str]) -> Node {
        command.arg("--database").arg(&self.database).arg("--record").arg(&self.record).args(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        let id = ready.trim().strip_prefix("ready ").unwrap_or_else(|| panic!("{ready:?}")).parse().unwrap();
        Node { child, stdin, stdout, id }
    }

    pub(crate) fn deeds(&self) -> Vec<Deed> {
        Record::read(&self.record)
    }

    /// How many times each job was begun.
    pub(crate) fn runs(&self) -> HashMap<JobId, usize> {
        let mut runs = HashMap::new();
        for deed in self.deeds().into_iter().filter(|deed| deed.what == "begin") {
            *runs.entry(deed.job).or_default() += 1;
        }
        runs
    }

    pub(crate) async fn submit(&self, deal: Deal, count: usize) -> Vec<JobId> {
        let jobs: Vec<_> = (0..count).map(|_| self.client.enqueue(deal.clone()).max_retries(0)).collect();
        self.client.submit_all(jobs).await.unwrap().iter().map(ratchet::JobHandle::id).collect()
    }

    pub(crate) async fn in_state(&self, state: JobState) -> Vec<JobRecord> {
        let filter = JobFilter { states: vec![state], ..JobFilter::default() };
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.client.list(&filter, after, 500).await.unwrap();
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
    }

    pub(crate) async fn count(&self, state: JobState) -> u64 {
        self.client.count_by_state().await.unwrap().get(&state).copied().unwrap_or(0)
    }
}

/// Waits until something holds; a minute is far more than anything here takes.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A node in a process of its own.
pub(crate) struct Node {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pub(crate) id: NodeId,
}

impl Node {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Kills it (-9) and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn stats(&mut self) -> HashMap<String, u64> {
        writeln!(self.stdin, "stats").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Asks it to drain and waits until it is gone.
    pub(crate) fn quit(mut self) {
        writeln!(self.stdin, "quit").unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind; one that has waited already gets an error, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
