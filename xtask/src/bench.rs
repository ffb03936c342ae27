//! `cargo xtask bench`: runs the benchmarks in release mode.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;

use crate::workspace::{Workspace, run as command};

/// The stores that have benchmarks.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Store {
    Sqlite,
    Postgres,
    Mysql,
}

pub(crate) fn run(workspace: &Workspace, store: Store, quick: bool, json: Option<&Path>) -> Result<()> {
    let mut bench = workspace.cargo();
    bench.args(["run", "--release", "--package", "ratchet-bench", "--"]);
    match store {
        Store::Sqlite => bench.arg("sqlite"),
        Store::Postgres => bench.arg("postgres"),
        Store::Mysql => bench.arg("mysql"),
    };
    if quick {
        bench.arg("--quick");
    }
    if let Some(file) = json {
        bench.arg("--json").arg(std::path::absolute(file)?);
    }
    command(&mut bench)
}
