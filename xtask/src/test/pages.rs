//! Code in the pages, and examples that are crates of their own, built as a reader would: in a new crate outside the workspace.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::output::Output;
use crate::workspace::{self, Workspace};

/// Builds and runs the README's first own-job snippet with exactly the dependencies that it tells the reader to add.
pub(crate) fn run_snippet(workspace: &Workspace, output: &Output) -> Result<()> {
    let readme = fs::read_to_string(workspace.root.join("README.md")).context("cannot read README.md")?;
    let program = snippet(&readme).context("README.md has no ```rust block with a `fn main`")?;
    let reader = reader_of_page(workspace, &readme).context("README.md")?;
    fs::write(reader.path().join("src/main.rs"), program)?;
    cargo(workspace, &reader, "run", output)
}

/// Builds and runs every example that is a crate of its own: a folder in `examples/`.
pub(crate) fn run_example_crates(workspace: &Workspace, output: &Output) -> Result<()> {
    for entry in fs::read_dir(workspace.root.join("examples")).context("cannot list examples/")? {
        let example = entry?.path();
        if !example.is_dir() {
            continue;
        }
        let name = example.display().to_string();
        let manifest = fs::read_to_string(example.join("Cargo.toml")).with_context(|| name.clone())?;
        let at = manifest.find("[dependencies]").with_context(|| format!("{name} has no [dependencies]"))?;
        let reader = new_crate(workspace, &manifest[at..]).with_context(|| name.clone())?;
        fs::copy(example.join("src/main.rs"), reader.path().join("src/main.rs")).with_context(|| name.clone())?;
        cargo(workspace, &reader, "run", output).context(name)?;
    }
    Ok(())
}

/// Checks every complete program of the guide, with the dependencies that its first page lists.
pub(crate) fn check_guide(workspace: &Workspace, output: &Output) -> Result<()> {
    let guide = workspace.root.join("docs/guide");
    let first_page = fs::read_to_string(guide.join("getting-started.md"))?;
    let reader = reader_of_page(workspace, &first_page).context("docs/guide/getting-started.md")?;
    fs::create_dir(reader.path().join("src/bin"))?;
    for page in fs::read_dir(guide)? {
        let path = page?.path();
        let programs = blocks(&fs::read_to_string(&path)?, "rust").filter(|text| is_program(text)).collect::<Vec<_>>();
        for (at, program) in programs.iter().enumerate() {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            fs::write(reader.path().join(format!("src/bin/{stem}-{at}.rs")), program)?;
        }
    }
    cargo(workspace, &reader, "check", output)
}

/// Makes a crate with the dependencies of a page's first ```toml block.
fn reader_of_page(workspace: &Workspace, page: &str) -> Result<TempDir> {
    let dependencies = blocks(page, "toml").next().context("there is no ```toml block with dependencies")?;
    new_crate(workspace, &dependencies)
}

/// Makes a crate in a folder of its own.
fn new_crate(workspace: &Workspace, dependencies: &str) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("src"))?;
    fs::write(folder.path().join("Cargo.toml"), manifest(workspace, dependencies)?)?;
    // The same versions and, in the same target directory, mostly the same builds as the workspace's.
    fs::copy(workspace.root.join("Cargo.lock"), folder.path().join("Cargo.lock"))?;
    Ok(folder)
}

fn cargo(workspace: &Workspace, reader: &TempDir, verb: &str, output: &Output) -> Result<()> {
    let mut cargo = workspace::cargo(reader.path());
    cargo.args([verb, "--quiet"]).env("CARGO_TARGET_DIR", &workspace.target_dir);
    output.run(&mut cargo)
}

/// The first block of Rust with a `main`.
pub(crate) fn snippet(readme: &str) -> Option<String> {
    blocks(readme, "rust").find(|text| is_program(text))
}

fn is_program(text: &str) -> bool {
    text.contains("fn main")
}

/// The fenced blocks in `language`.
fn blocks(markdown: &str, language: &str) -> impl Iterator<Item = String> {
    let wanted = format!("```{language}");
    let mut lines = markdown.lines();
    std::iter::from_fn(move || {
        loop {
            let fence = lines.by_ref().find(|line| line.starts_with("```"))?;
            let text: String = lines.by_ref().take_while(|line| *line != "```").flat_map(|line| [line, "\n"]).collect();
            if fence == wanted {
                return Some(text);
            }
        }
    })
}

/// A page's dependencies with the path to this checkout, and the workspace's profiles.
fn manifest(workspace: &Workspace, dependencies: &str) -> Result<String> {
    let own = |line: &&str| line.starts_with("ratchet = ");
    ensure!(dependencies.lines().any(|line| own(&line)), "it does not tell how to depend on ratchet");
    // A JSON string is also a TOML string.
    let facade = serde_json::to_string(&workspace.root.join("crates/ratchet"))?;
    let dependencies: String = dependencies
        .lines()
        .map(|line| if own(&line) { format!("ratchet = {{ path = {facade} }}\n") } else { format!("{line}\n") })
        .collect();
    let profiles = profiles(&workspace.root.join("Cargo.toml"))?;
    Ok(format!(
        "[package]\nname = \"reader\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         {dependencies}\n[workspace]\n\n{profiles}\n{}",
        as_members(workspace)
    ))
}

/// Our packages are built as in the workspace: to the reader's crate they are dependencies, which it would build anew, as
/// `package."*"` says.
fn as_members(workspace: &Workspace) -> String {
    let ours = |name: &str| format!("[profile.dev.package.{name}]\nopt-level = 0\ndebug = \"line-tables-only\"\n");
    workspace.packages.iter().map(|package| ours(&package.name)).collect()
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
        assert_eq!(blocks(readme, "toml").collect::<Vec<_>>(), ["[a]\n"]);
        assert_eq!(blocks(readme, "rust").count(), 3);
        assert_eq!(snippet("no code"), None);
    }
}
