//! Every SQL statement of Ratchet, once; dialects where they must differ; no driver.
//!
//! The narrow waist is [`Conn`]: text and [`Value`]s in, [`Row`]s out. A driver crate implements it over its
//! connection, and gets the whole store from the functions here, one file for each verb. They take a `&mut dyn Conn`, so
//! the same function serves the store's own transaction and a caller's.
//!
//! A [`Stmt`] is a `const` beside the function that binds it. [`statements`] lists them all, so that a test can prepare
//! each one on the real database.

mod conn;
mod counters;
mod dialect;
mod entries;
mod follow;
mod inputs;
mod lane;
mod lane_heads;
mod limited_lanes;
mod list;
mod literal;
mod log_group;
mod mailbox;
mod marks;
mod merge;
mod origin;
mod permits;
mod revive;
mod row;
mod schedule_row;
mod shelf;
mod stmt;
mod store;
mod success;
mod taken;
mod tally;
mod transact;
mod untold;
mod value;
mod waits;

pub mod archive;
pub mod archived;
mod archived_attempts;
pub mod batches;
pub mod breakers;
pub mod cancel_children;
pub mod claim;
pub mod cluster;
pub mod control;
pub mod counting;
pub mod dead_letters;
pub mod edges;
pub mod fire;
pub mod in_transaction;
pub mod insight;
pub mod job_log;
pub mod lease;
pub mod leave;
pub mod listing;
pub mod migrate;
pub mod next_due;
pub mod purge;
pub mod query;
pub mod queues;
pub mod read;
pub mod recurring;
pub mod resources;
pub mod server;
pub mod settle;
pub mod signals;
pub mod submit;
pub mod submit_plain;
pub mod turn;

pub use conn::Conn;
pub use counters::{Counters, Counts};
pub use dialect::Dialect;
pub use row::{CellError, Cells, Fields, Row};
pub use stmt::{Stmt, Texts};
pub use transact::{Intent, Transact, Work};
pub use value::Value;

/// Every statement that runs on a migrated database, but those of [`shelf`].
const STATEMENTS: &[&[Stmt]] = &[
    archive::STATEMENTS,
    archived::STATEMENTS,
    batches::STATEMENTS,
    breakers::STATEMENTS,
    cancel_children::STATEMENTS,
    claim::STATEMENTS,
    cluster::STATEMENTS,
    control::STATEMENTS,
    counting::STATEMENTS,
    dead_letters::STATEMENTS,
    edges::STATEMENTS,
    fire::STATEMENTS,
    follow::STATEMENTS,
    inputs::STATEMENTS,
    insight::STATEMENTS,
    job_log::STATEMENTS,
    lane_heads::STATEMENTS,
    lease::STATEMENTS,
    leave::STATEMENTS,
    limited_lanes::STATEMENTS,
    mailbox::STATEMENTS,
    merge::STATEMENTS,
    migrate::STATEMENTS,
    next_due::STATEMENTS,
    permits::STATEMENTS,
    purge::STATEMENTS,
    query::STATEMENTS,
    queues::STATEMENTS,
    read::STATEMENTS,
    recurring::STATEMENTS,
    resources::STATEMENTS,
    revive::STATEMENTS,
    server::STATEMENTS,
    settle::STATEMENTS,
    signals::STATEMENTS,
    submit::STATEMENTS,
    taken::STATEMENTS,
    submit_plain::STATEMENTS,
    success::STATEMENTS,
    waits::STATEMENTS,
    tally::STATEMENTS,
];

/// Every statement that runs on some migrated database, one after the other.
pub fn all_statements() -> impl Iterator<Item = &'static Stmt> {
    let listed = shelf::KEPT.statements().chain(shelf::ARCHIVE.statements());
    STATEMENTS.iter().flat_map(|of_one_file| of_one_file.iter()).chain(listed)
}

/// Every statement that runs on a migrated database of this kind, one after the other.
pub fn statements(dialect: Dialect) -> impl Iterator<Item = &'static Stmt> {
    all_statements().filter(move |stmt| stmt.is_for(dialect))
}

/// What [`implement_store!`] names.
#[doc(hidden)]
pub mod __private {
    pub use async_trait::async_trait;
    pub use ratchet_core as core;

    pub use crate::transact::work;
}
