//! A database in a folder of its own, jobs in it, and the command.

use std::path::PathBuf;
use std::process::{Command, Output};

use ratchet::Ratchet;
use ratchet::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

/// Jobs that nobody runs.
#[job(kind = "test.idle")]
pub(crate) async fn idle(number: u32) -> u32 {
    number
}

/// Jobs that fail for good at once.
#[job(kind = "test.broken", max_retries = 0)]
pub(crate) async fn broken() -> Result<(), std::io::Error> {
    Err(std::io::Error::other("it is broken"))
}

pub(crate) struct Place {
    folder: TempDir,
}

/// What a run of the command left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn migrated() -> Self {
        let place = Self::empty();
        SqliteStore::open(place.database()).await.unwrap();
        place
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("ratchet.db")
    }

    /// Runs the command in the folder, with the database at its default path.
    pub(crate) fn ratchet(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().unwrap())
    }

    /// The same command, not yet run.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ratchet"));
        command.args(args).current_dir(self.folder.path()).env_remove("RATCHET_DATABASE");
        command
    }

    /// Runs the command and reads its JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let ran = self.ratchet(&[args, &["--json"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        Ratchet::client(SqliteStore::open(self.database()).await.unwrap())
    }

    /// Submits jobs that nobody runs.
    pub(crate) async fn idle_jobs(&self, count: u32) -> Vec<String> {
        let client = self.client().await;
        let handles = client.submit_all((0..count).map(|n| client.enqueue(idle(n)))).await.unwrap();
        handles.iter().map(|handle| handle.id().to_string()).collect()
    }

    async fn node(&self) -> Ratchet {
        let store = SqliteStore::open(self.database()).await.unwrap();
        Ratchet::builder().store(store).jobs(jobs![broken]).start().await.unwrap()
    }

    /// Submits a batch of one job, lets that fail for good and the batch end.
    pub(crate) async fn failed_child(&self) -> String {
        let ratchet = self.node().await;
        let batch = ratchet.batch().child(broken()).submit().await.unwrap();
        batch.summary().await.unwrap();
        let child = batch.children(None, 1).await.unwrap().items.remove(0);
        ratchet.shutdown().await;
        child.id.to_string()
    }

    /// Submits a job with a business key and lets it fail for good.
    pub(crate) async fn failed_job(&self, business_key: &str) -> String {
        let ratchet = self.node().await;
        let handle = ratchet.enqueue(broken()).business_key(business_key).submit().await.unwrap();
        handle.wait().await.unwrap();
        ratchet.shutdown().await;
        handle.id().to_string()
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Checks the exit code and that each text is somewhere in the output.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for text in texts {
            assert!(self.out.contains(text) || self.err.contains(text), "no {text:?} in {self:?}");
        }
    }
}

/// An id that no job has.
pub(crate) fn no_id() -> String {
    "01890a5d-ac96-774b-bcce-b302099a8057".to_owned()
}
