//! What is SQLite's own; what every store must do is in `ratchet-conformance`.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod conformance;
mod cost;
mod database;
mod lists;
mod meanwhile;
mod migrate;
mod open;
mod plan;
mod statements;
mod unreadable;
mod watch;
mod writer;

use ratchet_core::NewJob;
use ratchet_core::store::{JobStore as _, SubmitUnit};
use ratchet_store_sqlite::{SqliteStore, Synchronous};
use ratchet_testdb::suite::{job, register, request, run};
use tempfile::TempDir;

/// A fresh store in a directory of its own; a commit does not wait for the disk, which nothing here is about.
async fn fresh() -> (SqliteStore, TempDir) {
    let dir = TempDir::new().unwrap();
    let options = SqliteStore::options(dir.path().join("jobs.db")).synchronous(Synchronous::Normal);
    (options.open().await.unwrap(), dir)
}

async fn submit(store: &SqliteStore, jobs: Vec<NewJob>) {
    for outcome in store.submit(&[SubmitUnit::of(jobs)]).await.unwrap() {
        outcome.unwrap();
    }
}
