//! `cargo xtask test`: everything that CI needs, in one command.

use anyhow::Result;

use crate::steps::{Ended, Steps};
use crate::workspace::{Workspace, run as command};
use crate::{c_compiler, examples, pages, stores, tidy};

pub(crate) fn run(workspace: &Workspace, only: Vec<String>, allow_missing: bool) -> Result<()> {
    let cargo = |args: &[&str]| command(workspace.cargo().args(args));
    let done = |()| Ended::Done;
    let mut steps = Steps::new(only);
    steps.step("compiler", || c_compiler::ensure().map(done));
    steps.step("format", || cargo(&["fmt", "--all", "--check"]).map(done));
    steps.step("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]).map(done));
    steps.step("tests", || cargo(&["test", "--workspace", "--no-fail-fast"]).map(done));
    steps.step("stores", || stores::covered(workspace));
    steps.step("examples", || examples::run(workspace).map(done));
    steps.step("readme", || pages::run_snippet(workspace).map(done));
    steps.step("guide", || pages::check_guide(workspace).map(done));
    steps.step("docs", || {
        let mut doc = workspace.cargo();
        doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "--deny warnings");
        command(&mut doc).map(done)
    });
    steps.step("tidy", || tidy::run(workspace, false).map(done));
    steps.close(allow_missing)
}
