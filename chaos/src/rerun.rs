//! Why a job ran more than once.

use std::collections::HashMap;

use ratchet::AttemptStatus;

use crate::history::{Fault, FaultKind, History};
use crate::record::{Deed, Run};
use crate::said;

/// Why a job ran again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The attempt failed and the job's policy allows another.
    Retried,
    /// Its node noticed that it was cut off, and gave it back.
    FencedItself,
    /// Its node was declared dead, because of this.
    NodeLost(FaultKind),
}

/// What nodes did and suffered, by process.
#[derive(Debug)]
pub struct Evidence {
    faults: Vec<Fault>,
    /// When each process gave its jobs up.
    fenced: HashMap<u32, Vec<i64>>,
    grace_us: i64,
}

/// One run, and when and where it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// The run.
    pub run: Run,
    /// When.
    pub at: i64,
    /// In which process.
    pub pid: u32,
}

impl Evidence {
    /// What the history says of nodes with this grace.
    pub fn of(history: &History, grace_us: i64) -> Self {
        let mut faults = history.faults.clone();
        let mut fenced: HashMap<u32, Vec<i64>> = HashMap::new();
        for line in &history.lines {
            match &line.deed {
                Deed::Said(text) if text == said::FENCED || text == said::DECLARED_DEAD => {
                    fenced.entry(line.pid).or_default().push(line.at);
                }
                Deed::Stalled { since } => {
                    faults.push(Fault { kind: FaultKind::Stalled, pid: Some(line.pid), from: *since, to: line.at });
                }
                Deed::Began(_) | Deed::Ended(_) | Deed::Said(_) => {}
            }
        }
        Self { faults, fenced, grace_us }
    }

    /// Why a run that ended so was followed by another before `until`; `None` if nothing explains it.
    pub fn reason(&self, begun: &Begun, status: AttemptStatus, until: i64) -> Option<Reason> {
        match status {
            AttemptStatus::Failed | AttemptStatus::TimedOut | AttemptStatus::Panicked => Some(Reason::Retried),
            AttemptStatus::Deferred => {
                let fenced = self.fenced.get(&begun.pid).into_iter().flatten();
                let by_itself = fenced.into_iter().any(|at| (begun.at - self.grace_us..=until).contains(at));
                by_itself.then_some(Reason::FencedItself)
            }
            AttemptStatus::Crashed => self.loss(begun, until).map(|fault| Reason::NodeLost(fault.kind)),
            AttemptStatus::Succeeded | AttemptStatus::Canceled => None,
        }
    }

    /// What made others lose a node before `until`: it died, or it was silent for so long that faults account for at
    /// least half of the grace. A fault that was over when the run began counts as long as it may still have effect.
    pub fn loss(&self, begun: &Begun, until: i64) -> Option<Fault> {
        let window = (begun.at - self.grace_us, until);
        let own = || self.faults.iter().filter(|fault| fault.pid.is_none_or(|pid| pid == begun.pid));
        if let Some(death) = own().find(|fault| fault.is_deadly() && fault.from <= until) {
            return Some(*death);
        }
        let overlap = |fault: &Fault| (fault.from.max(window.0), fault.to.min(window.1));
        let mut silent: Vec<(i64, i64)> =
            own().filter(|fault| fault.silences()).map(overlap).filter(|(from, to)| from < to).collect();
        silent.sort_unstable();
        let (mut total, mut reached) = (0, i64::MIN);
        for (from, to) in silent {
            total += (to - from.max(reached)).max(0);
            reached = reached.max(to);
        }
        if total < self.grace_us / 2 {
            return None;
        }
        // A node that was stopped got no processor either; what was done to it is the better reason.
        let weight = |fault: &&Fault| {
            let (from, to) = overlap(fault);
            (to > from && fault.kind != FaultKind::Stalled, to - from)
        };
        own().filter(|fault| fault.silences()).max_by_key(weight).copied()
    }
}
