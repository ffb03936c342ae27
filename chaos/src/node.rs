//! A node in a process of its own.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ratchet::NodeId;

/// A node that ended before it was ready.
#[derive(Debug, thiserror::Error)]
#[error("the node ended before it was ready: {0}")]
pub struct NotReady(ExitStatus);

impl NotReady {
    /// Whether its process has aborted itself.
    pub fn has_aborted(&self) -> bool {
        aborted(self.0)
    }
}

fn aborted(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::SIGABRT as i32)
}

/// A node in a process of its own; a drop kills it.
#[derive(Debug)]
pub struct Node {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The incarnation with which it started.
    pub id: NodeId,
}

impl Node {
    /// Starts `chaos-node`, from this command, on a database and with a record; returns when it runs.
    ///
    /// # Errors
    /// [`NotReady`] if it ends before, as it does when the database is away.
    pub fn start(mut command: Command, database: &str, record: &Path, args: &[&str]) -> Result<Self> {
        command.arg("--database").arg(database).arg("--record").arg(record).args(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot run chaos-node")?;
        let stdin = child.stdin.take().context("its input is a pipe")?;
        let mut stdout = BufReader::new(child.stdout.take().context("its output is a pipe")?);
        let mut ready = String::new();
        let read = stdout.read_line(&mut ready);
        let Some(id) = ready.trim().strip_prefix("ready ").filter(|_| read.is_ok()) else {
            let _ = child.kill();
            return Err(NotReady(child.wait()?).into());
        };
        let id = id.parse()?;
        Ok(Self { child, stdin, stdout, id })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// If it is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.pid()).context("process ids fit 31 bits")?);
        kill(pid, signal).with_context(|| format!("cannot send {signal} to a node"))
    }

    /// Kills it (-9) and waits until it is gone.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Whether its process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Whether its process has aborted itself.
    ///
    /// # Errors
    /// If it has ended in another way: this was no death that was meant.
    pub fn has_aborted(&mut self) -> Result<bool> {
        let Some(status) = self.child.try_wait()? else { return Ok(false) };
        ensure!(aborted(status), "the node ended with {status}");
        Ok(true)
    }

    /// What it has counted.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn stats(&mut self) -> Result<HashMap<String, u64>> {
        writeln!(self.stdin, "stats")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("{line:?} are no statistics"))
    }

    /// Asks it to drain and waits until it is gone.
    ///
    /// # Errors
    /// If it did not end well.
    pub fn quit(mut self) -> Result<()> {
        writeln!(self.stdin, "quit")?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the node ended with {status}");
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind; one that has waited already gets an error, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
