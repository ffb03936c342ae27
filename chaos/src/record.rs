//! The record of what handlers and nodes really did, in a file outside the job tables.
//!
//! Every handler appends a line when it begins and when it ends, so that a test can compare what was done with what the
//! store says. Nodes add what they say of themselves.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use ratchet::{Clock, JobContext, JobId, NodeId, SystemClock};
use serde::{Deserialize, Serialize};

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When, in microseconds of the machine's clock.
    pub at: i64,
    /// The process that wrote it.
    pub pid: u32,
    /// What happened.
    pub deed: Deed,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// A handler began.
    Began(Run),
    /// A handler came to its end, whatever it was.
    Ended(Run),
    /// The node logged a warning or an error.
    Said(String),
    /// The process got no processor between then and now.
    Stalled {
        /// Since when.
        since: i64,
    },
}

/// One run of a job: with the job's id, the version of its claim names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The job.
    pub job: JobId,
    /// The version of the claim.
    pub version: u64,
    /// The incarnation that claimed it.
    pub node: NodeId,
    /// Which attempt, as its handler was told.
    pub attempt: u32,
}

impl Run {
    /// The run that a handler is in.
    pub fn of(ctx: &JobContext) -> Self {
        let job = ctx.job();
        let node = job.picked_by.expect("a job that runs was claimed by a node");
        Self { job: job.id, version: job.version, node, attempt: ctx.attempt() }
    }
}

/// The append-only record.
#[derive(Debug, Clone)]
pub struct Record(Arc<File>);

impl Record {
    /// The record in this file, to be added to.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(OpenOptions::new().create(true).append(true).open(path)?)))
    }

    /// Appends a line in one write, so that lines of several processes do not mix and a kill leaves none half written.
    pub fn add(&self, deed: Deed) {
        let line = Line { at: now(), pid: std::process::id(), deed };
        let text = serde_json::to_string(&line).expect("a line is plain data") + "\n";
        (&*self.0).write_all(text.as_bytes()).expect("the record can be written");
    }
}

/// Everything that was recorded so far; nothing if there is no record yet.
pub fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last one may be in the making.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).expect("lines are whole")).collect()
}

/// The machine's clock in microseconds, which all processes of a run share.
pub fn now() -> i64 {
    SystemClock.now().as_microsecond()
}
