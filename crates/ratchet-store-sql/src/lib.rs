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
pub use waist::counters::{Counters, Counts};
pub use waist::dialect::Dialect;
pub use waist::row::{CellError, Cells, Fields, Row};
pub use waist::server;
pub use waist::stmt::{Stmt, Texts};
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
    pub use crate::settle::turn::turn;
}

/// Every statement that runs on a migrated database, but those of [`list::job_index`].
const STATEMENTS: &[&[Stmt]] = &[
    submit::STATEMENTS,
    submit::key_reservations::STATEMENTS,
    submit::plain::STATEMENTS,
    claim::STATEMENTS,
    claim::inputs::STATEMENTS,
    claim::lane_heads::STATEMENTS,
    claim::limited_lanes::STATEMENTS,
    claim::merge::STATEMENTS,
    claim::next_due::STATEMENTS,
    claim::permits::STATEMENTS,
    settle::STATEMENTS,
    settle::success::STATEMENTS,
    flow::batch_counts::STATEMENTS,
    flow::batches::STATEMENTS,
    flow::cancel_children::STATEMENTS,
    flow::edges::STATEMENTS,
    flow::follow::STATEMENTS,
    flow::revive::STATEMENTS,
    control::STATEMENTS,
    control::dead_letters::STATEMENTS,
    control::delete::STATEMENTS,
    signal::STATEMENTS,
    signal::mailbox::STATEMENTS,
    signal::waits::STATEMENTS,
    schedule::STATEMENTS,
    schedule::fire::STATEMENTS,
    job_row::STATEMENTS,
    list::count::STATEMENTS,
    list::insight::STATEMENTS,
    list::query::STATEMENTS,
    archive::STATEMENTS,
    archive::archived::STATEMENTS,
    archive::purge::STATEMENTS,
    job_log::STATEMENTS,
    cluster::STATEMENTS,
    cluster::breakers::STATEMENTS,
    cluster::lease::STATEMENTS,
    cluster::queues::STATEMENTS,
    cluster::resources::STATEMENTS,
    waist::server::STATEMENTS,
    migrate::STATEMENTS,
];

/// Every statement that runs on some migrated database, one after the other.
pub fn all_statements() -> impl Iterator<Item = &'static Stmt> {
    let listed = list::job_index::KEPT.statements().chain(list::job_index::ARCHIVE.statements());
    STATEMENTS.iter().flat_map(|of_one_file| of_one_file.iter()).chain(listed)
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
