//! Nodes on a private server.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ratchet::{Client, JobId, JobState};
use ratchet_chaos::database::{Database, OwnServer};
use ratchet_chaos::node::Node;
use ratchet_chaos::record::{self, Deed, Line, Run};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The program that nodes run.
pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_chaos-node"))
}

/// How many tests may have servers of their own at once.
const TOGETHER: usize = 3;

static TURNS: Semaphore = Semaphore::const_new(TOGETHER);

/// These tests have deadlines: a few of them wait beside each other, more would be in each other's way.
pub(crate) async fn my_turn() -> SemaphorePermit<'static> {
    TURNS.acquire().await.unwrap()
}

/// A server, a record, and a client that reaches the server directly.
pub(crate) struct Cluster {
    // Nodes and clients first, then the server.
    pub(crate) client: Client,
    pub(crate) record: PathBuf,
    pub(crate) server: OwnServer,
    dir: tempfile::TempDir,
}

impl Cluster {
    pub(crate) async fn on(database: Database) -> Self {
        let server = tokio::task::block_in_place(|| OwnServer::start_new(database)).unwrap();
        let client = Client::new(ratchet::open_store(&server.url(), true).await.unwrap());
        let dir = tempfile::tempdir().unwrap();
        Self { client, record: dir.path().join("record"), server, dir }
    }

    /// A file beside the record.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn node_with(&self, args: &[&str]) -> Node {
        self.node_at(&self.server.url(), args)
    }

    pub(crate) fn node_at(&self, url: &str, args: &[&str]) -> Node {
        let start = || Node::start(Command::new(program()), url, &self.record, args);
        tokio::task::block_in_place(start).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        record::read(&self.record)
    }

    /// Every begin, with its time and process.
    pub(crate) fn begun(&self) -> Vec<(i64, u32, Run)> {
        let begun = |line: Line| match line.deed {
            Deed::Began(run) => Some((line.at, line.pid, run)),
            _ => None,
        };
        self.lines().into_iter().filter_map(begun).collect()
    }

    /// How many runs have come to their end.
    pub(crate) fn ended(&self) -> usize {
        self.lines().iter().filter(|line| matches!(line.deed, Deed::Ended(_))).count()
    }

    /// When a handler came to its end.
    pub(crate) fn ended_at(&self, job: JobId) -> Option<i64> {
        self.lines()
            .into_iter()
            .find(|line| matches!(line.deed, Deed::Ended(run) if run.job == job))
            .map(|line| line.at)
    }

    pub(crate) async fn counts(&self) -> HashMap<JobState, u64> {
        self.client.count_by_state().await.unwrap().into_iter().collect()
    }

    pub(crate) async fn count(&self, state: JobState) -> u64 {
        self.counts().await.get(&state).copied().unwrap_or(0)
    }
}

/// The same test on PostgreSQL and on MariaDB.
macro_rules! on_both_servers {
    ($($(#[$attribute:meta])* $test:ident)*) => {
        mod postgres {
            $($(#[$attribute])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                super::$test(ratchet_chaos::database::Database::Postgres).await;
            })*
        }
        mod mysql {
            $($(#[$attribute])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                super::$test(ratchet_chaos::database::Database::Mysql).await;
            })*
        }
    };
}
pub(crate) use on_both_servers;
