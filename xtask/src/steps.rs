//! Steps with a name, a time and a result, and the table that closes a run.

use std::time::{Duration, Instant};

use anyhow::Result;

/// How a step that did not fail ended.
pub(crate) enum Ended {
    /// All of it was done.
    Done,
    /// Something could not be done here, and why.
    Skipped(String),
}

/// Runs steps one after the other; a failed step does not keep the next from running.
pub(crate) struct Steps {
    only: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    result: Result<Ended>,
    took: Duration,
}

impl Steps {
    /// All steps, or only those that are named.
    pub(crate) fn new(only: Vec<String>) -> Self {
        Self { only, rows: Vec::new() }
    }

    pub(crate) fn step(&mut self, name: &'static str, step: impl FnOnce() -> Result<Ended>) {
        if !self.only.is_empty() && !self.only.iter().any(|only| only == name) {
            return;
        }
        println!("\n── {name} {}", "─".repeat(74_usize.saturating_sub(name.len())));
        let begun = Instant::now();
        let result = step();
        if let Err(error) = &result {
            eprintln!("error: {error:#}");
        }
        self.rows.push(Row { name, result, took: begun.elapsed() });
    }

    /// Prints the table and says whether the run as a whole is good.
    pub(crate) fn close(self, allow_missing: bool) -> Result<()> {
        for only in &self.only {
            anyhow::ensure!(self.rows.iter().any(|row| row.name == only), "there is no step {only:?}");
        }
        println!("\n{:<16}{:<9}{:>9}", "step", "result", "time");
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
            println!("{name:<16}{word:<9}{:>7.1} s  {note}", took.as_secs_f64());
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
