//! `cargo xtask test`: everything that CI needs, in one command.
//!
//! Everything is built once. Then the test programs run in two lanes: those that mostly wait beside those that compute. Tests
//! that measure time run after them, one at a time.

mod binaries;
mod c_compiler;
mod examples;
mod output;
pub(crate) mod pages;
mod programs;
mod servers;
mod steps;
mod stores;

use anyhow::Result;
use clap::Args;
use ratchet_testdb::Servers;

use crate::tidy;
use crate::workspace::Workspace;
use binaries::TestBinaries;
use output::Output;
use programs::{Lane, TestRuns};
use steps::{Ended, Step, Steps};

/// The steps of a quick run, which need no server.
const QUICK: [&str; 5] = ["format", "clippy", "build", "tests", "tidy"];

#[derive(Args)]
pub(crate) struct Options {
    /// Run only this step, as the closing table names it; may be repeated
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Accept that a server or a store is missing
    #[arg(long)]
    allow_missing: bool,
    /// Run only what needs no server: format, lints, unit tests, the memory and SQLite suites
    #[arg(long, conflicts_with = "only")]
    quick: bool,
}

pub(crate) fn run(mut workspace: Workspace, options: Options) -> Result<()> {
    let Options { only, allow_missing, quick } = options;
    let only = if quick { QUICK.map(str::to_owned).to_vec() } else { steps::with_needed(only) };
    let mut steps = Steps::new(only);
    let mut test_servers = Servers::default();
    steps.step("servers", || servers::start(&mut test_servers));
    workspace.environment = servers::environment(&test_servers, allow_missing);

    let workspace = &workspace;
    let terminal = &Output::Terminal;
    let cargo = |args: &[&str]| terminal.run(workspace.cargo().args(args));
    let done = |()| Ended::Done;
    steps.step("compiler", || c_compiler::ensure(terminal).map(done));
    steps.step("format", || cargo(&["fmt", "--all", "--check"]).map(done));
    steps.step("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]).map(done));

    let mut binaries = TestBinaries::default();
    steps.step("build", || {
        binaries = TestBinaries::build(workspace)?;
        if quick {
            binaries.leave_those_without_servers();
        }
        Ok(Ended::Done)
    });
    let runs = TestRuns::new(workspace, &binaries);
    let waiting = vec![
        Step::new("waiting tests", |output| runs.run(Lane::Waiting, output).map(done)),
        Step::new("examples", |output| examples::run(workspace, output).map(done)),
    ];
    let computing = vec![
        Step::new("tests", |output| runs.run(Lane::Computing, output).map(done)),
        Step::new("doc tests", |output| output.run(workspace.cargo().args(["test", "--workspace", "--doc"])).map(done)),
        Step::new("readme", |output| {
            pages::run_snippet(workspace, output)?;
            pages::run_example_crates(workspace, output).map(done)
        }),
        Step::new("guide", |output| pages::check_guide(workspace, output).map(done)),
        Step::new("docs", |output| {
            let mut doc = workspace.cargo();
            doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings");
            output.run(&mut doc).map(done)
        }),
    ];
    steps.lanes([waiting, computing]);
    steps.step("timed tests", || runs.run_timed(terminal).map(done));
    steps.step("stores", || stores::covered(&binaries));
    steps.step("tidy", || tidy::run(workspace, false).map(done));
    steps.step("stop-servers", || test_servers.stop().map(done));
    runs.print_summary();
    steps.close(allow_missing)
}
