//! Which stores the test run really covered: no store is left out in silence.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

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
    StoreUnderTest { name: "postgres", package: "ratchet-store-postgres", module: "conformance" },
    StoreUnderTest { name: "mysql", package: "ratchet-store-mysql", module: "conformance" },
];

/// Counts the conformance cases of every store; a store without any was not tested.
pub(crate) fn covered(workspace: &Workspace) -> Result<Ended> {
    let binaries = test_binaries(workspace)?;
    let mut missing = Vec::new();
    for store in STORES {
        let binary = binaries.iter().find(|binary| binary.package() == Some(store.package));
        let cases = binary.map_or(Ok(0), |binary| binary.count(store.module))?;
        println!("{:<10}{cases} conformance cases", store.name);
        if cases == 0 {
            missing.push(store.name);
        }
    }
    Ok(if missing.is_empty() { Ended::Done } else { Ended::Skipped(format!("not tested: {}", missing.join(", "))) })
}

/// One of cargo's messages about what it built.
#[derive(Deserialize)]
struct TestBinary {
    manifest_path: PathBuf,
    executable: Option<PathBuf>,
}

/// The integration tests of all packages, as the test run built them.
fn test_binaries(workspace: &Workspace) -> Result<Vec<TestBinary>> {
    let output = workspace
        .cargo()
        .args(["test", "--quiet", "--workspace", "--test", "it", "--no-run", "--message-format", "json"])
        .output()
        .context("cannot run cargo test")?;
    ensure!(output.status.success(), "the tests cannot be built:\n{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8_lossy(&output.stdout);
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<TestBinary>(line).ok());
    Ok(artifacts.filter(|artifact| artifact.executable.is_some()).collect())
}

impl TestBinary {
    /// Every package is in the folder of its name.
    fn package(&self) -> Option<&str> {
        self.manifest_path.parent()?.file_name()?.to_str()
    }

    /// How many tests the module has.
    fn count(&self, module: &str) -> Result<usize> {
        let binary = self.executable.as_ref().context("only artifacts that can be run were kept")?;
        let output = Command::new(binary).args(["--list", "--format", "terse"]).output()?;
        ensure!(output.status.success(), "{} cannot list its tests", binary.display());
        let names = String::from_utf8_lossy(&output.stdout);
        let inside = format!("{module}::");
        Ok(names.lines().filter(|line| line.starts_with(&inside) && line.ends_with(": test")).count())
    }
}
