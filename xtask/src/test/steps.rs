//! Steps with a name, a time and a result, and the table that closes a run.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::output::Output;

/// The steps whose programs use servers.
const SERVER_USERS: &[&str] = &["tests", "waiting tests", "timed tests", "examples"];
/// The steps that run what `build` builds.
const BUILD_USERS: &[&str] = &["tests", "waiting tests", "timed tests", "examples", "stores"];

/// The result of a step that did not fail.
pub(crate) enum Ended {
    /// All of it was done.
    Done,
    /// Something could not be done here, and why.
    Skipped(String),
}

/// A step of a lane.
pub(crate) struct Step<'a> {
    name: &'static str,
    #[expect(clippy::type_complexity, reason = "it is called in one place")]
    work: Box<dyn FnOnce(&Output) -> Result<Ended> + Send + 'a>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(name: &'static str, work: impl FnOnce(&Output) -> Result<Ended> + Send + 'a) -> Self {
        Self { name, work: Box::new(work) }
    }
}

/// Runs steps; a failed step does not keep the next from running.
pub(crate) struct Steps {
    only: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    result: Result<Ended>,
    took: Duration,
}

/// Adds the steps without which the named ones do not work.
pub(crate) fn with_needed(mut only: Vec<String>) -> Vec<String> {
    let needs = |users: &[&str]| only.iter().any(|step| users.contains(&step.as_str()));
    let (servers, build) = (needs(SERVER_USERS), needs(BUILD_USERS));
    let added = [("servers", servers), ("stop-servers", servers), ("build", build)];
    only.extend(added.iter().filter(|(_, needed)| *needed).map(|(name, _)| (*name).to_owned()));
    only
}

impl Steps {
    /// All steps, or only those that are named.
    pub(crate) fn new(only: Vec<String>) -> Self {
        Self { only, rows: Vec::new() }
    }

    fn has(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }

    /// Runs a step whose output goes to the terminal.
    pub(crate) fn step(&mut self, name: &'static str, step: impl FnOnce() -> Result<Ended>) {
        if !self.has(name) {
            return;
        }
        print_heading(name);
        let begun = Instant::now();
        let result = step();
        if let Err(error) = &result {
            eprintln!("error: {error:#}");
        }
        self.rows.push(Row { name, result, took: begun.elapsed() });
    }

    /// Runs lanes beside each other, and the steps of a lane one after the other. The output of a step is printed when it ends.
    pub(crate) fn lanes<'a>(&mut self, lanes: impl IntoIterator<Item = Vec<Step<'a>>>) {
        let rows = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for lane in lanes {
                let lane: Vec<_> = lane.into_iter().filter(|step| self.has(step.name)).collect();
                let rows = &rows;
                scope.spawn(move || {
                    for step in lane {
                        let row = run_beside_others(step);
                        rows.lock().expect("no step panics while it holds the rows").push(row);
                    }
                });
            }
        });
        self.rows.extend(rows.into_inner().expect("no step panics while it holds the rows"));
    }

    /// Prints the table and says whether the run as a whole is good.
    pub(crate) fn close(self, allow_missing: bool) -> Result<()> {
        for only in &self.only {
            anyhow::ensure!(self.rows.iter().any(|row| row.name == only), "there is no step {only:?}");
        }
        println!("\n{:<16}{:<9}{:>8}", "step", "result", "minutes");
        let (mut failed, mut skipped) = (Vec::new(), Vec::new());
        for Row { name, result, took } in &self.rows {
            let (word, note) = match result {
                Ok(Ended::Done) => ("ok", ""),
                Ok(Ended::Skipped(why)) => {
                    skipped.push(*name);
                    ("skipped", why.as_str())
                }
                Err(_) => {
                    failed.push(*name);
                    ("failed", "")
                }
            };
            println!("{name:<16}{word:<9}{:>8.2}  {note}", took.as_secs_f64() / 60.0);
        }
        println!();
        anyhow::ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
        anyhow::ensure!(
            skipped.is_empty() || allow_missing,
            "skipped: {}; run with --allow-missing to accept that",
            skipped.join(", ")
        );
        Ok(())
    }
}

fn run_beside_others(step: Step<'_>) -> Row {
    let Step { name, work } = step;
    let begun = Instant::now();
    let (result, text) = match Output::file() {
        Ok(output) => {
            let result = work(&output);
            (result, output.text().unwrap_or_default())
        }
        Err(error) => (Err(error), String::new()),
    };
    let row = Row { name, result, took: begun.elapsed() };
    // One lock for all of it, so that the lines of two lanes do not mix.
    let _stdout = std::io::stdout().lock();
    print_heading(name);
    print!("{text}");
    if let Err(error) = &row.result {
        println!("error: {error:#}");
    }
    row
}

fn print_heading(name: &str) {
    println!("\n── {name} {}", "─".repeat(74_usize.saturating_sub(name.len())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_steps_bring_the_steps_that_they_need() {
        let check = |only: &str, expected: &[&str]| assert_eq!(with_needed(vec![only.to_owned()]), expected);
        check("tests", &["tests", "servers", "stop-servers", "build"]);
        check("stores", &["stores", "build"]);
        check("tidy", &["tidy"]);
        assert!(with_needed(Vec::new()).is_empty(), "no names mean all steps");
    }

    #[test]
    fn lanes_run_beside_each_other_and_a_failed_step_stops_nothing() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut steps = Steps::new(vec!["waits".to_owned(), "sends".to_owned(), "fails".to_owned()]);
        steps.lanes([
            vec![Step::new("waits", move |_| {
                receiver.recv()?;
                Ok(Ended::Done)
            })],
            vec![
                Step::new("fails", |_| anyhow::bail!("a reason")),
                Step::new("left out", |_| panic!("it was not asked for")),
                Step::new("sends", move |_| {
                    sender.send(())?;
                    Ok(Ended::Done)
                }),
            ],
        ]);
        let names: std::collections::BTreeSet<_> = steps.rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["fails", "sends", "waits"].into());
        let error = steps.close(true).expect_err("a step failed");
        assert_eq!(error.to_string(), "failed: fails");
    }
}
