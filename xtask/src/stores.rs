//! Which stores the test run really covered: no store is left out in silence.

use anyhow::{Context, Result, ensure};

use crate::steps::Ended;
use crate::workspace::Workspace;

/// A store and the package whose integration tests hold it to the conformance suite.
struct StoreUnderTest {
    name: &'static str,
    package: &'static str,
    /// The module of those tests.
    module: &'static str,
}

const STORES: &[StoreUnderTest] = &[
    StoreUnderTest { name: "memory", package: "ratchet-conformance", module: "memory" },
    StoreUnderTest { name: "sqlite", package: "ratchet-store-sqlite", module: "conformance" },
];

/// Counts the conformance cases of every store; a store without any was not tested.
pub(crate) fn covered(workspace: &Workspace) -> Result<Ended> {
    let mut missing = Vec::new();
    for store in STORES {
        let cases = conformance_cases(workspace, store)?;
        println!("{:<10}{cases} conformance cases", store.name);
        if cases == 0 {
            missing.push(store.name);
        }
    }
    Ok(if missing.is_empty() { Ended::Done } else { Ended::Skipped(format!("not tested: {}", missing.join(", "))) })
}

fn conformance_cases(workspace: &Workspace, store: &StoreUnderTest) -> Result<usize> {
    let package = store.package;
    let has_suite = workspace
        .packages
        .iter()
        .find(|p| p.name == package)
        .is_some_and(|p| p.targets.iter().any(|target| target.is("test") && target.name == "it"));
    if !has_suite {
        return Ok(0);
    }
    let output = workspace
        .cargo()
        .args(["test", "--quiet", "--package", package, "--test", "it", "--", "--list", "--format", "terse"])
        .output()
        .context("cannot run cargo test")?;
    ensure!(
        output.status.success(),
        "the tests of {package} cannot be listed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names
        .lines()
        .filter(|line| line.starts_with(&format!("{}::", store.module)) && line.ends_with(": test"))
        .count())
}
