//! `cargo xtask test`: everything that CI needs, in one command.

use anyhow::Result;
use ratchet_testdb::Servers;

use crate::steps::{Ended, Steps};
use crate::workspace::{Workspace, run as command};
use crate::{c_compiler, examples, pages, servers, stores, tidy};

pub(crate) fn run(mut workspace: Workspace, only: Vec<String>, allow_missing: bool) -> Result<()> {
    let mut steps = Steps::new(servers::with_their_steps(only));
    let mut test_servers = Servers::default();
    steps.step("servers", || servers::start(&mut test_servers));
    workspace.environment = servers::environment(&test_servers, allow_missing);

    let workspace = &workspace;
    let cargo = |args: &[&str]| command(workspace.cargo().args(args));
    let done = |()| Ended::Done;
    steps.step("compiler", || c_compiler::ensure().map(done));
    steps.step("format", || cargo(&["fmt", "--all", "--check"]).map(done));
    steps.step("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]).map(done));
    steps.step("tests", || cargo(&["test", "--workspace", "--no-fail-fast"]).map(done));
    steps.step("stores", || stores::covered(workspace));
    steps.step("examples", || examples::run(workspace).map(done));
    steps.step("readme", || {
        pages::run_snippet(workspace)?;
        pages::run_example_crates(workspace).map(done)
    });
    steps.step("guide", || pages::check_guide(workspace).map(done));
    steps.step("docs", || {
        let mut doc = workspace.cargo();
        doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings");
        command(&mut doc).map(done)
    });
    steps.step("tidy", || tidy::run(workspace, false).map(done));
    steps.step("stop-servers", || test_servers.stop().map(done));
    steps.close(allow_missing)
}
