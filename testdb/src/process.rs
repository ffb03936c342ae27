//! A server's process: known by more than its id, so that an id that was given anew is never taken for it.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long an orderly stop may take.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How long the kernel may take to end what was killed.
const KILL_LIMIT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A process that we, or an earlier command of ours, started.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// The boot and the time since the boot at which it began.
    pub(crate) begun: String,
    /// If it is our own child: to be waited for, or it stays as a zombie.
    child: Option<Child>,
}

impl Process {
    /// Starts it in a group of its own, so that a Ctrl-C at our terminal is not meant for it.
    pub(crate) fn spawn(command: &mut Command, log: File) -> Result<Self> {
        command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot run {}", command.get_program().display()))?;
        let pid = i32::try_from(child.id()).context("process ids fit 31 bits")?;
        let begun = look(pid).context("a child is in /proc until it is waited for")?.begun;
        Ok(Self { pid, begun, child: Some(child) })
    }

    /// One that another command started.
    pub(crate) fn known(pid: i32, begun: String) -> Self {
        Self { pid, begun, child: None }
    }

    pub(crate) fn is_running(&self) -> bool {
        look(self.pid).is_some_and(|seen| seen.begun == self.begun && seen.is_alive)
    }

    /// Asks it to end and waits until it has. One that does not listen is killed, which is an error.
    pub(crate) fn stop(&self, signal: Signal) -> Result<()> {
        if self.is_running() {
            send(self.pid, signal)?;
        }
        if !wait_until(STOP_LIMIT, || !self.is_running()) {
            self.kill()?;
            bail!("process {} did not stop within {STOP_LIMIT:?} of {signal} and was killed", self.pid);
        }
        Ok(())
    }

    /// Ends it and all its children at once. Stopped first, it can neither start new ones nor clean up.
    pub(crate) fn kill(&self) -> Result<()> {
        if !self.is_running() {
            return Ok(());
        }
        send(self.pid, Signal::SIGSTOP)?;
        let mut family = descendants(self.pid)?;
        family.push(Self::known(self.pid, self.begun.clone()));
        for member in &family {
            send(member.pid, Signal::SIGKILL)?;
        }
        if !wait_until(KILL_LIMIT, || !family.iter().any(Self::is_running)) {
            bail!("process {} or a child of it lives {KILL_LIMIT:?} after SIGKILL", self.pid);
        }
        Ok(())
    }

    /// The processor time that it and its children have used, those that have ended included, in microseconds.
    pub(crate) fn cpu_micros(&self) -> Result<u64> {
        let mut micros = ended_children_micros(self.pid)? + thread_micros(self.pid)?;
        for member in descendants(self.pid)? {
            // One that has just ended is counted by its parent.
            micros += thread_micros(member.pid).unwrap_or(0);
        }
        Ok(micros)
    }

    /// Waits for one that has ended; from now on, its id may be given anew.
    pub(crate) fn reap(self) -> Result<()> {
        if let Some(mut child) = self.child {
            child.wait().context("cannot wait for a child that has ended")?;
        }
        Ok(())
    }
}

/// Asks again and again; whether it came true in time.
pub(crate) fn wait_until(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A process that has just ended needs no signal.
fn send(pid: i32, signal: Signal) -> Result<()> {
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot send {signal} to process {pid}")),
    }
}

struct Seen {
    parent: i32,
    begun: String,
    is_alive: bool,
}

fn look(pid: i32) -> Option<Seen> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// `PID (NAME) STATE PARENT …`, where the name may hold anything, and the 22nd field is the start.
fn parse(stat: &str) -> Option<Seen> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(Seen {
        parent: fields.get(1)?.parse().ok()?,
        begun: format!("{}/{}", boot.trim(), fields.get(19)?),
        is_alive: !matches!(*fields.first()?, "Z" | "X"),
    })
}

/// The children of a process, their children and so on. PostgreSQL's are each in a group of their own, so that a signal
/// to a group would not do.
fn descendants(ancestor: i32) -> Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot list /proc")? {
        let pid = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        all.extend(pid.and_then(|pid| Some((pid, look(pid)?))));
    }
    let mut found = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for (pid, seen) in all.iter().filter(|(_, seen)| seen.parent == parent) {
            parents.push(*pid);
            found.push(Process::known(*pid, seen.begun.clone()));
        }
    }
    Ok(found)
}

/// The processor time of all threads of a process, in microseconds.
fn thread_micros(pid: i32) -> Result<u64> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).with_context(|| format!("process {pid} has ended"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(nanos / 1_000)
}

/// The processor time of the children of a process that have ended, in microseconds; the kernel counts it in hundredths of a
/// second.
fn ended_children_micros(pid: i32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} has ended"))?;
    // The second field is the name in brackets, which may contain anything.
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    let ticks: u64 = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(ticks * 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(script: &str) -> Process {
        let null = File::options().write(true).open("/dev/null").unwrap();
        Process::spawn(Command::new("sh").args(["-c", script]), null).unwrap()
    }

    #[test]
    fn a_process_with_the_same_id_and_another_start_is_another() {
        let process = sleeper("sleep 60");
        assert!(process.is_running());
        let recycled = Process::known(process.pid, format!("{}0", process.begun));
        assert!(!recycled.is_running());
        recycled.kill().unwrap();
        assert!(process.is_running(), "the stranger was killed");
        process.kill().unwrap();
        process.reap().unwrap();
    }

    #[test]
    fn a_kill_takes_the_children_along() {
        let process = sleeper("sleep 60 & sleep 60");
        assert!(wait_until(KILL_LIMIT, || descendants(process.pid).unwrap().len() == 2));
        let children = descendants(process.pid).unwrap();
        assert!(children.iter().all(Process::is_running));
        process.kill().unwrap();
        assert!(!process.is_running() && !children.iter().any(Process::is_running));
        process.reap().unwrap();
    }

    #[test]
    fn names_of_processes_may_hold_anything() {
        let seen = parse("7 (a) b (c) S 42 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0").unwrap();
        assert_eq!(seen.parent, 42);
        assert!(seen.begun.ends_with("/12345") && seen.is_alive, "{}", seen.begun);
    }
}
