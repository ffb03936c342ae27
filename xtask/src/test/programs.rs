//! Test programs in two lanes, the times of their tests, and the tests that measure time.

use std::fs::File;
use std::io::Read as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::binaries::{TestBinaries, TestBinary};
use super::output::Output;
use crate::workspace::Workspace;

/// The packages whose tests mostly wait: for nodes to die, for polls, for one another. The first takes longest.
const WAITING: &[&str] =
    &["ratchet-chaos", "ratchet-engine", "ratchet-cli", "ratchet-coordinator-redis", "ratchet", "ratchet-testdb"];
/// The module of the tests that measure time, in any test program. Nothing else runs beside them.
const TIMED: &str = "timed::";
/// The number of tests that the summary names.
const SLOWEST: usize = 10;

/// Test programs that run one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Lane {
    /// Tests that mostly wait: many at once.
    Waiting,
    /// Tests that compute, or let a server compute: as many at once as there are cores.
    Computing,
}

impl Lane {
    fn of(binary: &TestBinary) -> Self {
        if binary.integration.is_some() && WAITING.contains(&binary.package.as_str()) {
            Self::Waiting
        } else {
            Self::Computing
        }
    }

    fn threads(self) -> usize {
        match self {
            Self::Waiting => 8,
            Self::Computing => 2,
        }
    }
}

/// Runs test programs, and collects the times of their tests.
pub(crate) struct TestRuns<'a> {
    workspace: &'a Workspace,
    binaries: &'a TestBinaries,
    times: Mutex<Vec<TestTime>>,
    /// The number of tests that passed, and of those that failed.
    counts: Mutex<[u64; 2]>,
}

struct TestTime {
    name: String,
    took: Duration,
}

impl<'a> TestRuns<'a> {
    pub(crate) fn new(workspace: &'a Workspace, binaries: &'a TestBinaries) -> Self {
        Self { workspace, binaries, times: Mutex::default(), counts: Mutex::default() }
    }

    /// Runs the programs of a lane, but for the tests that measure time. A program that fails does not keep the next from running.
    pub(crate) fn run(&self, lane: Lane, output: &Output) -> Result<()> {
        let mut binaries: Vec<_> = self.binaries.iter().filter(|binary| Lane::of(binary) == lane).collect();
        binaries.sort_by_key(|binary| WAITING.iter().position(|package| *package == binary.package));
        let threads = lane.threads().to_string();
        self.run_each(binaries, &["--test-threads", &threads, "--skip", TIMED], output)
    }

    /// Runs the tests that measure time, one after the other.
    pub(crate) fn run_timed(&self, output: &Output) -> Result<()> {
        self.run_each(self.binaries.iter().collect(), &["--test-threads", "1", TIMED], output)
    }

    fn run_each(&self, binaries: Vec<&TestBinary>, args: &[&str], output: &Output) -> Result<()> {
        let mut failed = Vec::new();
        for binary in binaries {
            if !self.run_one(binary, args, output)? {
                failed.push(binary.name());
            }
        }
        ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
        Ok(())
    }

    /// Runs a program; shows all of its output if a test fails, and one line if none does.
    fn run_one(&self, binary: &TestBinary, args: &[&str], output: &Output) -> Result<bool> {
        let begun = Instant::now();
        let mut command = binary.command(self.workspace);
        command.args(args);
        // The times of single tests are an unstable option of the test harness. Compilers that a test runs must not see
        // the variable, so tests of the macros go without.
        if binary.package != "ratchet-macros" {
            command.args(["-Z", "unstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
        }
        let log = tempfile::NamedTempFile::new()?;
        let status = command
            .stdout(log.reopen()?)
            .stderr(log.reopen()?)
            .status()
            .with_context(|| format!("cannot run the tests of {}", binary.name()))?;
        let mut text = Vec::new();
        File::open(log.path())?.read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        self.collect(binary, &text);
        let took = begun.elapsed().as_secs_f64();
        let result = text.lines().rfind(|line| line.starts_with("test result: ")).unwrap_or("test result: none");
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter_mut().zip(counts_of(result)).for_each(|(sum, count)| *sum += count);
        drop(counts);
        if !status.success() {
            output.line(&text);
        } else if result.contains(" 0 passed") {
            return Ok(true);
        }
        output.line(&format!("{:<32}{took:>7.1} s  {result}", binary.name()));
        Ok(status.success())
    }

    fn collect(&self, binary: &TestBinary, text: &str) {
        let times = text.lines().filter_map(|line| {
            let (name, took) = time_of_test(line)?;
            Some(TestTime { name: format!("{} {name}", binary.name()), took })
        });
        self.times.lock().unwrap_or_else(PoisonError::into_inner).extend(times);
    }

    /// Prints the number of tests, and the slowest of them.
    pub(crate) fn print_summary(&self) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.sort_by_key(|test| std::cmp::Reverse(test.took));
        if times.is_empty() {
            return;
        }
        println!("\nthe slowest of {} tests", times.len());
        for TestTime { name, took } in times.iter().take(SLOWEST) {
            println!("{:>7.1} s  {name}", took.as_secs_f64());
        }
        let [passed, failed] = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        println!("\n{passed} passed, {failed} failed");
    }
}

/// Reads a line of the test harness: `test name ... ok <1.234s>`.
fn time_of_test(line: &str) -> Option<(&str, Duration)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = rest.rsplit_once('<')?.1.strip_suffix("s>")?.parse().ok()?;
    Some((name, Duration::try_from_secs_f64(seconds).ok()?))
}

/// Reads the last line of the test harness: `test result: ok. 3 passed; 0 failed; …`.
fn counts_of(result: &str) -> [u64; 2] {
    ["passed", "failed"].map(|word| {
        let before = result.split(';').find_map(|part| part.trim_end().strip_suffix(word));
        before.and_then(|text| text.split_whitespace().last()?.parse().ok()).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        assert_eq!(counts_of("test result: FAILED. 258 passed; 1 failed; 0 ignored; finished in 10.68s"), [258, 1]);
        assert_eq!(counts_of("test result: none"), [0, 0]);
    }

    #[test]
    fn times_are_read_from_the_lines_of_the_harness() {
        let check = |line: &str, expected: Option<(&str, u64)>| {
            let expected = expected.map(|(name, ms)| (name, Duration::from_millis(ms)));
            assert_eq!(time_of_test(line), expected, "{line}");
        };
        check("test a::b ... ok <1.250s>", Some(("a::b", 1_250)));
        check("test a::b ... FAILED <0.001s>", Some(("a::b", 1)));
        check("test a::b ... ok", None);
        check("running 3 tests", None);
        check("test result: ok. 3 passed; 0 failed; finished in 0.01s", None);
    }
}
