use std::sync::atomic::{AtomicU64, Ordering};

/// How much a store has asked of its database, for tests and benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Statements that were run, without those that begin and end transactions.
    pub statements: u64,
    /// Transactions that were committed.
    pub commits: u64,
    /// Transactions that the database rolled back to resolve a deadlock or a conflict, and that were tried again.
    pub retries: u64,
}

/// Counts as they grow.
#[derive(Debug, Default)]
pub struct Counters {
    statements: AtomicU64,
    commits: AtomicU64,
    retries: AtomicU64,
}

impl Counters {
    /// One more statement.
    pub fn count_statement(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    /// More commits.
    pub fn count_commits(&self, commits: u64) {
        self.commits.fetch_add(commits, Ordering::Relaxed);
    }

    /// One more transaction that is tried again.
    pub fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn read(&self) -> Counts {
        Counts {
            statements: self.statements.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
        }
    }
}
