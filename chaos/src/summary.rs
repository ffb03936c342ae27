//! A run in a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::history::{Answer, FaultKind};
use crate::record::Deed;
use crate::rerun::Reason;
use crate::said;
use crate::trial::Trial;

/// The numbers of a run, a line each.
pub fn table(trial: &Trial) -> String {
    let Trial { history, findings, ended_after } = trial;
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<28}{value:>12}");
    };
    let answered = |wanted: fn(&Answer) -> bool| {
        history.submissions.iter().filter(|submission| wanted(&submission.answer)).count().to_string()
    };
    row("jobs in the store", history.jobs.len().to_string());
    row("submits accepted", answered(|answer| matches!(answer, Answer::Accepted(_))));
    row("submits refused", answered(|answer| *answer == Answer::Refused));
    row("submits without an answer", answered(|answer| *answer == Answer::Unknown));
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for job in &history.jobs {
        *states.entry(job.state.to_string()).or_default() += 1;
    }
    for (state, count) in states {
        row(&format!("  {state}"), count.to_string());
    }
    let begun = history.lines.iter().filter(|line| matches!(line.deed, Deed::Began(_))).count();
    row("runs", begun.to_string());
    for (reason, count) in &findings.reruns {
        let why = match reason {
            Reason::Retried => "  again: failed before".to_owned(),
            Reason::FencedItself => "  again: fenced itself".to_owned(),
            Reason::NodeLost(kind) => format!("  again: {}", kind.name()),
        };
        row(&why, count.to_string());
    }
    let mut faults: BTreeMap<FaultKind, usize> = BTreeMap::new();
    for fault in &history.faults {
        *faults.entry(fault.kind).or_default() += 1;
    }
    row("faults", history.faults.len().to_string());
    for (kind, count) in faults {
        row(&format!("  {}", kind.name()), count.to_string());
    }
    let says = [
        ("nodes fenced themselves", said::FENCED),
        ("nodes declared dead", said::DECLARED_DEAD),
        ("results that came too late", said::TOO_LATE),
        ("lost claims handed back", said::LOST_CLAIM),
    ];
    for (name, said) in says {
        let count = history.lines.iter().filter(|line| matches!(&line.deed, Deed::Said(text) if text == said)).count();
        row(name, count.to_string());
    }
    for (kind, took) in &findings.slowest_recovery {
        row(&format!("slowest: {}", kind.name()), format!("{:.1} s", took.as_secs_f64()));
    }
    row("last end after the faults", format!("{:.1} s", ended_after.as_secs_f64()));
    row("violations", findings.violations.len().to_string());
    for violation in findings.violations.iter().take(50) {
        let _ = writeln!(text, "  {violation}");
    }
    text
}
