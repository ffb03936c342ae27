//! Every example runs to its end, in a directory of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::output::Output;
use crate::workspace::Workspace;

const TIME_LIMIT: Duration = Duration::from_mins(1);

/// Every file in `examples/`, which must be a target of some package.
pub(crate) fn run(workspace: &Workspace, output: &Output) -> Result<()> {
    let mut targets = BTreeMap::new();
    for target in workspace.packages.iter().flat_map(|package| &package.targets).filter(|target| target.is("example")) {
        targets.insert(target.src_path.canonicalize()?, target.name.as_str());
    }
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(workspace.root.join("examples")).context("cannot list examples/")? {
        let path = entry?.path().canonicalize()?;
        if path.extension().is_some_and(|extension| extension == "rs") {
            let target = targets.get(&path);
            names.insert(*target.with_context(|| format!("{} is not a target of any package", path.display()))?);
        }
    }
    ensure!(!names.is_empty(), "there are no examples");
    for name in names {
        let begun = Instant::now();
        run_one(workspace, &workspace.target_dir.join("debug/examples").join(name))
            .with_context(|| format!("the example {name} failed"))?;
        output.line(&format!("{name:<28}{:>6.1} s", begun.elapsed().as_secs_f64()));
    }
    Ok(())
}

fn run_one(workspace: &Workspace, program: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let log_path = directory.path().join("output.log");
    let log = File::create(&log_path)?;
    let mut child = Command::new(program)
        .current_dir(directory.path())
        .envs(workspace.environment.iter().cloned())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > TIME_LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("it did not end within {TIME_LIMIT:?}; it said:\n{}", fs::read_to_string(&log_path)?);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    ensure!(status.success(), "it ended with {status}; it said:\n{}", fs::read_to_string(&log_path)?);
    Ok(())
}
