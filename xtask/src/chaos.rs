//! `cargo xtask chaos`: jobs on real nodes and servers while everything goes wrong, for as long as one likes.

use anyhow::Result;
use clap::ValueEnum;

use crate::workspace::{Workspace, run as command};

/// On which databases.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Databases {
    Postgres,
    Mysql,
    Both,
}

impl Databases {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Postgres => &["postgres"],
            Self::Mysql => &["mysql"],
            Self::Both => &["postgres", "mysql"],
        }
    }
}

pub(crate) fn run(workspace: &Workspace, minutes: f64, databases: Databases, seed: Option<u64>) -> Result<()> {
    let profile = ["--release", "--package", "ratchet-chaos"];
    // The run starts nodes, which are a program of their own.
    command(workspace.cargo().arg("build").args(profile).arg("--bins"))?;
    let mut chaos = workspace.cargo();
    chaos.arg("run").args(profile).args(["--bin", "chaos-run", "--", "--minutes", &minutes.to_string()]);
    for name in databases.names() {
        chaos.args(["--database", name]);
    }
    if let Some(seed) = seed {
        chaos.args(["--seed", &seed.to_string()]);
    }
    command(&mut chaos)
}
