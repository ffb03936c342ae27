//! Cleans up after an owner that did not: a test that was killed must not leave its servers behind.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use crate::process::Process;

/// Reads from a pipe that only the owner holds. Each line is the id of the server's process, or empty while there is
/// none; when the pipe ends without the word `keep`, the owner is gone, and with it goes the server.
const SCRIPT: &str = r#"
pid=
while read -r line; do
    [ "$line" = keep ] && exit 0
    pid=$line
done
if [ -n "$pid" ] && kill -s "$1" "$pid"; then
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        kill -0 "$pid" || break
        sleep 0.1
    done
    kill -s KILL "$pid"
fi
rm -rf "$2"
"#;

/// A small process that outlives us if it must.
#[derive(Debug)]
pub(crate) struct Guardian(Child);

impl Guardian {
    /// Over a server in this directory that ends, with its children, at this signal.
    pub(crate) fn over(directory: &Path, signal: Signal) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "ratchet-db-guardian", signal.as_str().trim_start_matches("SIG")]);
        command.arg(directory).current_dir("/").process_group(0);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(piped.spawn().context("cannot run sh")?))
    }

    /// Tells which process to end. As long as the owner has not waited for it, its id cannot be given anew.
    pub(crate) fn watch(&mut self, process: Option<&Process>) -> Result<()> {
        self.tell(&process.map_or_else(String::new, |process| process.pid.to_string()))
    }

    /// Lets the server live on.
    pub(crate) fn dismiss(mut self) -> Result<()> {
        self.tell("keep")
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        let pipe = self.0.stdin.as_mut().context("the pipe is held until the drop")?;
        writeln!(pipe, "{line}").context("the process that cleans up after us is gone")
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // If it cannot be waited for, it stays as a zombie until we end.
        let _ = self.0.wait();
    }
}
