//! Every SQL statement of Ratchet, once; dialects where they must differ; no driver.
//!
//! The narrow waist is [`Conn`]: text and [`Value`]s in, [`Row`]s out. A driver crate implements it over its
//! connection and describes its database as a [`Backend`]; [`SqlStore`] is the whole store on top of it. The functions
//! behind the store's calls take a `&mut dyn Conn`, so the same function serves the store's own transaction and a caller's.
//!
//! A [`Stmt`] is a `const` beside the function that binds it. [`statements`] lists them all, so that a test can prepare
//! each one on the real database. Folders are subjects; in each, the file named after a trait of `ratchet-core` implements it.

mod store;
mod waist;

pub mod in_transaction;
pub mod migrate;

mod job_row;
mod submit;
mod claim;
mod settle;
mod flow;
mod control;
mod signal;
mod schedule;
mod list;
mod archive;
mod job_log;
mod cluster;

pub use store::{Backend, SqlStore};
pub use waist::conn::Conn;
pub use waist::context::StoreContext;
pub use waist::counters::{Counters, Counts};
pub use waist::dialect::Dialect;
pub use waist::row::{CellError, Cells, Fields, Row};
pub use waist::server;
pub use waist::stmt::Stmt;
pub use waist::transact::{Intent, Work};
pub use waist::value::Value;

/// What a connection for heartbeats needs.
pub mod heartbeat {
    pub use crate::cluster::{beat, database_time, register};
}

/// The functions behind the store's calls, for tests of plans and costs that run them on a connection of their own.
#[doc(hidden)]
pub mod calls {
    pub use crate::archive::archive;
    pub use crate::claim::next_due::next_due;
    pub use crate::control::dead_letters::dead_letters;
    pub use crate::list::count::count;
    pub use crate::list::insight::{count_ended, count_waiting, recent_ends, running_by_queue, waiting_lanes};
    pub use crate::list::list;
    pub use crate::settle::settle;
    pub use crate::settle::turn::settle_and_claim;
}

/// Lists the statements of files, each with the file's module path.
macro_rules! files {
    ($($file:path),* $(,)?) => {
        &[$((stringify!($file), { use $file as file; file::STATEMENTS })),*]
    };
}

/// Every statement that runs on a migrated database, but those of [`list::job_index`], by file.
const STATEMENTS: &[(&str, &[Stmt])] = files![
    submit,
    submit::key_reservations,
    submit::plain,
    claim,
    claim::inputs,
    claim::lane_heads,
    claim::limited_lanes,
    claim::merge,
    claim::next_due,
    claim::permits,
    settle,
    settle::success,
    flow::batch_counts,
    flow::batches,
    flow::cancel_children,
    flow::edges,
    flow::follow,
    flow::revive,
    control,
    control::dead_letters,
    control::retry_all,
    control::delete,
    signal,
    signal::mailbox,
    signal::waits,
    schedule,
    schedule::fire,
    job_row,
    list::count,
    list::heads,
    list::insight,
    list::query,
    archive,
    archive::archived,
    archive::purge,
    job_log,
    cluster,
    cluster::breakers,
    cluster::lease,
    cluster::queues,
    cluster::resources,
    waist::server,
    migrate,
];

/// Statements that not every database prepares outside of a transaction, or only before it is migrated, by file.
const UNPREPARED: &[(&str, &[Stmt])] = &[("submit", submit::SAVEPOINTS), ("migrate", migrate::UNPREPARED)];

/// Every statement that runs on some migrated database, one after the other.
pub fn all_statements() -> impl Iterator<Item = &'static Stmt> {
    STATEMENTS.iter().flat_map(|(_, of_one_file)| of_one_file.iter()).chain(list::job_index::statements())
}

/// Every statement, those too that cannot be prepared, each with the module that binds it.
pub fn statements_by_module() -> impl Iterator<Item = (&'static str, &'static Stmt)> {
    let listed = list::job_index::statements().map(|stmt| ("list::job_index", stmt));
    let written = STATEMENTS.iter().chain(UNPREPARED);
    written.flat_map(|(module, stmts)| stmts.iter().map(|stmt| (*module, stmt))).chain(listed)
}

/// Every statement that runs on a migrated database of this kind, one after the other.
pub fn statements(dialect: Dialect) -> impl Iterator<Item = &'static Stmt> {
    all_statements().filter(move |stmt| stmt.is_for(dialect))
}

/// What [`work!`] names.
#[doc(hidden)]
pub mod __private {
    pub use crate::waist::transact::work;
}
