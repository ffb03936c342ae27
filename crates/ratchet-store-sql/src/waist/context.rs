//! What a store's connections share: the facts about its server, the texts of its statements, the resume points of its scans.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::claim::scan_start::ResumePoints;
use crate::waist::dialect::Dialect;
use crate::waist::stmt::{Stmt, Texts};
use crate::waist::value::Value;

/// What the connections of a store share.
#[derive(Debug)]
pub struct StoreContext {
    server: ServerFacts,
    texts: Texts,
    resume_points: ResumePoints,
}

impl StoreContext {
    /// Creates the context of a store on one database.
    pub fn new(dialect: Dialect) -> Self {
        Self::qualified(dialect, "")
    }

    /// Creates the context of a store whose tables have a qualifier: a schema and a dot.
    pub fn qualified(dialect: Dialect, qualifier: &str) -> Self {
        Self {
            server: ServerFacts::assumed(dialect),
            texts: Texts::qualified(qualifier),
            resume_points: ResumePoints::default(),
        }
    }

    /// Returns the dialect of the server.
    pub fn dialect(&self) -> Dialect {
        self.server.dialect()
    }

    /// Sets the dialect of the server, now that it is known. Only the first call counts: a server does not change.
    pub fn identify(&self, server: Dialect) {
        self.texts.renew(|| {
            // A later call has no effect.
            let _ = self.server.identified.set(server);
        });
    }

    /// Moves what `/*now*/` means, for tests.
    pub fn advance_clock(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.texts.renew(|| {
            self.server.clock_offset_us.fetch_add(by, Ordering::SeqCst);
        });
    }

    /// Returns the points in the lanes of the claim index at which scans resume.
    pub(crate) const fn resume_points(&self) -> &ResumePoints {
        &self.resume_points
    }

    /// Returns the text of a statement whose list, if it has one, has `count` entries.
    pub fn render(&self, stmt: &Stmt, count: usize) -> Arc<str> {
        self.texts.render(stmt, &self.server, count)
    }

    /// Returns the text of a statement with its values written into it, for a list of `count` entries.
    pub(crate) fn inline(&self, stmt: &Stmt, count: usize, values: &[Value]) -> String {
        self.texts.inline(stmt, &self.server, count, values)
    }
}

/// The facts about a server on which the texts of statements depend.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    /// The dialect until the server has been identified.
    assumed: Dialect,
    identified: OnceLock<Dialect>,
    /// The distance from the server's clock to `/*now*/`, which tests move.
    clock_offset_us: AtomicI64,
}

impl ServerFacts {
    const fn assumed(dialect: Dialect) -> Self {
        Self { assumed: dialect, identified: OnceLock::new(), clock_offset_us: AtomicI64::new(0) }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.identified.get().copied().unwrap_or(self.assumed)
    }

    pub(crate) fn clock_offset_us(&self) -> i64 {
        self.clock_offset_us.load(Ordering::SeqCst)
    }
}
