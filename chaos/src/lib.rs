//! The jobs of the fault tests, and the record of what their handlers really did.
//!
//! The record is a file outside the job tables to which every handler appends a line when it begins and when it ends,
//! so that a test can compare what was done with what the store says.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ratchet::{Failure, Job, JobContext, JobId, Requirement};
use serde::{Deserialize, Serialize};

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// The job.
    pub job: JobId,
    /// The process that ran it.
    pub pid: u32,
    /// What happened.
    pub what: String,
}

/// The append-only record.
#[derive(Debug, Clone)]
pub struct Record(PathBuf);

impl Record {
    /// The record in this file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Appends a line in one write, so that lines of several processes do not mix.
    pub fn add(&self, job: JobId, what: &str) {
        let deed = Deed { job, pid: std::process::id(), what: what.to_owned() };
        let line = serde_json::to_string(&deed).expect("a deed is plain data") + "\n";
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0).expect("the record can be opened");
        file.write_all(line.as_bytes()).expect("the record can be written");
    }

    /// Everything that was recorded so far.
    pub fn read(path: &Path) -> Vec<Deed> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("lines are whole")).collect()
    }
}

/// A job of the fault tests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Deal {
    /// Takes so many milliseconds and succeeds.
    Work(u64),
    /// Aborts its process after so many milliseconds.
    Abort(u64),
    /// Blocks its thread for so many milliseconds.
    Block(u64),
    /// Waits so many milliseconds, except in its second run, which fails.
    FailSecond(u64),
}

impl Job for Deal {
    const KIND: &'static str = "deal";
    type Output = u32;

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<Record>()]
    }

    async fn run(self, ctx: JobContext) -> Result<u32, Failure> {
        let record = ctx.state::<Record>();
        record.add(ctx.id(), "begin");
        let wait = |ms| tokio::time::sleep(Duration::from_millis(ms));
        match self {
            Self::Work(ms) => wait(ms).await,
            Self::Block(ms) => std::thread::sleep(Duration::from_millis(ms)),
            Self::Abort(ms) => {
                wait(ms).await;
                std::process::abort();
            }
            Self::FailSecond(ms) => {
                let deeds = Record::read(&record.0);
                let runs = deeds.iter().filter(|deed| deed.job == ctx.id() && deed.what == "begin").count();
                if runs == 2 {
                    return Err(Failure::new("the second run fails"));
                }
                wait(ms).await;
            }
        }
        record.add(ctx.id(), "end");
        Ok(std::process::id())
    }
}
