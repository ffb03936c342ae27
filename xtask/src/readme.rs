//! The README's first own-job snippet, built and run as a reader would: in a new crate outside the workspace.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::workspace::{self, Workspace};

/// Builds and runs the snippet with exactly the dependencies that the README tells the reader to add.
pub(crate) fn run_snippet(workspace: &Workspace) -> Result<()> {
    let readme = fs::read_to_string(workspace.root.join("README.md")).context("cannot read README.md")?;
    let program = snippet(&readme).context("README.md has no ```rust block with a `fn main`")?;
    let dependencies = block(&readme, "toml", |_| true).context("README.md has no ```toml block with dependencies")?;

    let directory = tempfile::tempdir()?;
    let root = directory.path();
    fs::create_dir(root.join("src"))?;
    fs::write(root.join("src/main.rs"), program)?;
    fs::write(root.join("Cargo.toml"), manifest(workspace, &dependencies)?)?;
    // The same versions and, in the same target directory, mostly the same builds as the workspace's.
    fs::copy(workspace.root.join("Cargo.lock"), root.join("Cargo.lock"))?;
    let mut run = workspace::cargo(root);
    run.arg("run").env("CARGO_TARGET_DIR", &workspace.target_dir);
    workspace::run(&mut run)
}

/// The first block of Rust with a `main`.
pub(crate) fn snippet(readme: &str) -> Option<String> {
    block(readme, "rust", |text| text.contains("fn main"))
}

/// The first fenced block in `language` that is wanted.
fn block(markdown: &str, language: &str, wanted: impl Fn(&str) -> bool) -> Option<String> {
    let mut lines = markdown.lines();
    loop {
        let fence = lines.by_ref().find(|line| line.starts_with("```"))?;
        let text: String = lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
        if fence == format!("```{language}") && wanted(&text) {
            return Some(text);
        }
    }
}

/// The README's dependencies with the path to this checkout, and the workspace's profiles.
fn manifest(workspace: &Workspace, dependencies: &str) -> Result<String> {
    let own = |line: &&str| line.starts_with("ratchet = ");
    ensure!(dependencies.lines().any(|line| own(&line)), "README.md does not tell how to depend on ratchet");
    // A JSON string is also a TOML string.
    let facade = serde_json::to_string(&workspace.root.join("crates/ratchet"))?;
    let dependencies: String = dependencies
        .lines()
        .map(|line| if own(&line) { format!("ratchet = {{ path = {facade} }}\n") } else { format!("{line}\n") })
        .collect();
    let profiles = profiles(&workspace.root.join("Cargo.toml"))?;
    Ok(format!(
        "[package]\nname = \"readme-snippet\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         {dependencies}\n[workspace]\n\n{profiles}"
    ))
}

fn profiles(manifest: &Path) -> Result<String> {
    let mut inside = false;
    let mut text = String::new();
    for line in fs::read_to_string(manifest)?.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[profile.");
        }
        if inside {
            text.push_str(line);
            text.push('\n');
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_with_a_main_is_the_snippet() {
        let readme = "```rust\nlet x = 1;\n```\ntext\n```toml\n[a]\n```\n```rust\nfn main() {\n}\n```\n```rust\nfn main() {}\n```\n";
        assert_eq!(snippet(readme).as_deref(), Some("fn main() {\n}\n"));
        assert_eq!(block(readme, "toml", |_| true).as_deref(), Some("[a]\n"));
        assert_eq!(snippet("no code"), None);
    }
}
