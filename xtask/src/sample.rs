//! `cargo xtask sample`: what a running node, or any other process, spends its processor time on, by thread.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Threads of a process by name, each with its processor time in nanoseconds.
type Spent = BTreeMap<String, u64>;

/// Watches a process for some seconds and prints the share of one core that its threads have used. Where `perf` is installed, it
/// also prints the functions that used most.
pub(crate) fn run(pid: u32, seconds: u64) -> Result<()> {
    let tasks = format!("/proc/{pid}/task");
    let before = spent(Path::new(&tasks)).with_context(|| format!("cannot read the threads of process {pid}"))?;
    let profile = tempfile::NamedTempFile::new()?;
    let perf = std::process::Command::new("perf")
        .args(["record", "--quiet", "-g", "--pid", &pid.to_string(), "--output"])
        .arg(profile.path())
        .args(["--", "sleep", &seconds.to_string()])
        .status();
    if perf.is_err() {
        println!("perf is not installed: only threads are shown (Debian: apt-get install linux-perf)");
        std::thread::sleep(Duration::from_secs(seconds));
    }
    let after = spent(Path::new(&tasks)).with_context(|| format!("process {pid} has ended"))?;
    ensure!(seconds > 0, "sample for one second at least");
    for (name, share) in shares(&before, &after, seconds) {
        println!("{share:>6.1} %  {name}");
    }
    if perf.is_ok_and(|status| status.success()) {
        let mut report = std::process::Command::new("perf");
        report.args(["report", "--stdio", "--no-children", "--percent-limit", "1", "--call-graph", "none", "--input"]);
        crate::workspace::run(report.arg(profile.path()))?;
    }
    Ok(())
}

fn spent(tasks: &Path) -> Result<Spent> {
    let mut spent = Spent::new();
    for task in fs::read_dir(tasks)? {
        let task = task?.path();
        // A thread may end meanwhile.
        let (Ok(name), Ok(times)) = (fs::read_to_string(task.join("comm")), fs::read_to_string(task.join("schedstat")))
        else {
            continue;
        };
        let nanos = times.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0);
        *spent.entry(name.trim_end().to_owned()).or_default() += nanos;
    }
    Ok(spent)
}

/// The share of one core in percent, of the threads of each name, the largest first.
#[expect(clippy::cast_precision_loss, reason = "percents of some seconds")]
fn shares(before: &Spent, after: &Spent, seconds: u64) -> Vec<(String, f64)> {
    let used = |name: &String, after: u64| after.saturating_sub(before.get(name).copied().unwrap_or(0));
    let share = |(name, after): (&String, &u64)| (name.clone(), used(name, *after) as f64 / seconds as f64 / 1e7);
    let mut shares: Vec<_> = after.iter().map(share).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between() {
        let of = |entries: &[(&str, u64)]| entries.iter().map(|(name, nanos)| ((*name).to_owned(), *nanos)).collect();
        let (before, after) = (of(&[("a", 5), ("b", 0)]), of(&[("a", 5), ("b", 1_000_000_000), ("new", 500_000_000)]));
        let shares = shares(&before, &after, 2);
        assert_eq!(shares, [("b".to_owned(), 50.0), ("new".to_owned(), 25.0), ("a".to_owned(), 0.0)]);
    }

    #[test]
    fn the_threads_of_this_process_are_read() {
        assert!(spent(Path::new("/proc/self/task")).is_ok_and(|spent| !spent.is_empty()));
    }
}
