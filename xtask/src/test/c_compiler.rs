//! SQLite is compiled from its C source, so there has to be a C compiler.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::output::Output;

/// Finds a C compiler, or installs one where that can be done without asking: on Debian, as root.
pub(crate) fn ensure(output: &Output) -> Result<()> {
    if let Some(found) = find() {
        output.line(&found);
        return Ok(());
    }
    if Path::new("/etc/debian_version").exists() && is_root() {
        output.line("no C compiler found; installing gcc");
        output.run(Command::new("apt-get").arg("update"))?;
        output.run(Command::new("apt-get").args(["install", "--yes", "gcc", "libc6-dev"]))?;
        return Ok(());
    }
    bail!(
        "no C compiler found, and SQLite is compiled from C source; install one: \
         `apt-get install gcc libc6-dev` on Debian and Ubuntu, `dnf install gcc` on Fedora, \
         `xcode-select --install` on macOS, or name yours in the environment variable CC"
    )
}

fn find() -> Option<String> {
    let named = std::env::var("CC").ok();
    let candidates = named.iter().map(String::as_str).chain(["cc", "gcc", "clang"]);
    candidates.into_iter().find_map(first_line_of_version)
}

fn first_line_of_version(compiler: &str) -> Option<String> {
    let output = Command::new(compiler).arg("--version").stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().next().unwrap_or(compiler).to_owned())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
