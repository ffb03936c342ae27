//! The test programs of the workspace, built once.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::workspace::Workspace;

/// Packages whose integration tests need no server.
const WITHOUT_SERVERS: &[&str] = &["ratchet-conformance", "ratchet-core", "ratchet-store-sqlite"];

/// Every test program of the workspace.
#[derive(Default)]
pub(crate) struct TestBinaries(Vec<TestBinary>);

/// A test program.
pub(crate) struct TestBinary {
    pub(crate) package: String,
    /// The name of an integration test; `None` for unit tests.
    pub(crate) integration: Option<String>,
    directory: PathBuf,
    manifest: PathBuf,
    program: PathBuf,
}

/// A message of cargo about what it built.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl TestBinaries {
    /// Builds them, and with them the examples and the programs that they run.
    pub(crate) fn build(workspace: &Workspace) -> Result<Self> {
        let output = workspace
            .cargo()
            .args(["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo test")?;
        ensure!(output.status.success(), "the tests cannot be built");
        let messages = String::from_utf8_lossy(&output.stdout);
        let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
        let tests = artifacts.filter(|artifact| artifact.profile.test);
        Ok(Self(tests.filter_map(|artifact| TestBinary::of(artifact, workspace)).collect()))
    }

    /// Keeps unit tests, and integration tests that need no server.
    pub(crate) fn leave_those_without_servers(&mut self) {
        let stays =
            |binary: &TestBinary| binary.integration.is_none() || WITHOUT_SERVERS.contains(&binary.package.as_str());
        self.0.retain(stays);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TestBinary> {
        self.0.iter()
    }
}

impl TestBinary {
    fn of(artifact: Artifact, workspace: &Workspace) -> Option<Self> {
        let Artifact { manifest_path: manifest, target, executable, .. } = artifact;
        let package = workspace.packages.iter().find(|package| package.manifest_path == manifest)?;
        Some(Self {
            package: package.name.clone(),
            integration: target.kind.contains(&"test".to_owned()).then_some(target.name),
            program: executable?,
            directory: manifest.parent()?.to_owned(),
            manifest,
        })
    }

    /// What a reader calls it.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.package, self.integration.as_deref().unwrap_or("unit"))
    }

    /// The program with the directory and the variables that cargo would give it.
    pub(crate) fn command(&self, workspace: &Workspace) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            .env("CARGO_MANIFEST_PATH", &self.manifest)
            .envs(workspace.environment.iter().cloned());
        command
    }

    /// The number of tests in a module.
    pub(crate) fn count(&self, module: &str) -> Result<usize> {
        let output = Command::new(&self.program).args(["--list", "--format", "terse"]).output()?;
        ensure!(output.status.success(), "{} cannot list its tests", self.program.display());
        let names = String::from_utf8_lossy(&output.stdout);
        let inside = format!("{module}::");
        Ok(names.lines().filter(|line| line.starts_with(&inside) && line.ends_with(": test")).count())
    }
}
