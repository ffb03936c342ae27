//! Whether a history keeps the promises. Pure: the same history has the same violations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use ratchet::{AttemptStatus, JobId};

use crate::history::{Answer, FaultKind, History, StoredAttempt, StoredJob};
use crate::record::{Deed, Run};
use crate::rerun::{Begun, Evidence, Reason};

/// What is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promise {
    /// Every accepted job is there, once; a refused one is not.
    NothingIsLost,
    /// Only the present owner of a job writes about it.
    NoStaleWrite,
    /// A job that has ended stays as it ended.
    OneEnd,
    /// A job runs again only for a reason.
    RunsAgainForAReason,
    /// After the faults everything ends.
    EndsInTime,
    /// While a job holds a business key, no other does.
    OneHolderOfAKey,
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub promise: Promise,
    /// How.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.promise, self.text)
    }
}

/// By what a history is judged.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The nodes' grace.
    pub grace: Duration,
    /// How soon after the faults everything must have ended.
    pub end_limit: Duration,
}

/// What a check found.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Broken promises.
    pub violations: Vec<Violation>,
    /// How many jobs ran again, and why.
    pub reruns: BTreeMap<Reason, usize>,
    /// The longest time from the loss of a node to the next run of a job that it had, by what befell the node.
    pub slowest_recovery: BTreeMap<FaultKind, Duration>,
}

/// Checks every promise.
pub fn check(history: &History, rules: Rules) -> Findings {
    let mut checker = Checker::of(history, rules);
    checker.nothing_is_lost();
    checker.keys_have_one_holder();
    for job in &history.jobs {
        checker.no_stale_write(job);
        checker.one_end(job);
        checker.runs_again_for_a_reason(job);
        checker.ends_in_time(job);
    }
    checker.sightings_hold();
    checker.findings
}

struct Checker<'a> {
    history: &'a History,
    rules: Rules,
    evidence: Evidence,
    /// By job, in the order of versions.
    begun: HashMap<JobId, Vec<Begun>>,
    ended: HashSet<Run>,
    attempts: HashMap<JobId, Vec<StoredAttempt>>,
    findings: Findings,
}

impl<'a> Checker<'a> {
    fn of(history: &'a History, rules: Rules) -> Self {
        let evidence = Evidence::of(history, micros(rules.grace));
        let mut begun: HashMap<JobId, Vec<Begun>> = HashMap::new();
        let mut ended = HashSet::new();
        for line in &history.lines {
            match line.deed {
                Deed::Began(run) => begun.entry(run.job).or_default().push(Begun { run, at: line.at, pid: line.pid }),
                Deed::Ended(run) => drop(ended.insert(run)),
                Deed::Said(_) | Deed::Stalled { .. } => {}
            }
        }
        for runs in begun.values_mut() {
            runs.sort_by_key(|begun| (begun.run.version, begun.at));
        }
        let mut attempts: HashMap<JobId, Vec<StoredAttempt>> = HashMap::new();
        for attempt in &history.attempts {
            attempts.entry(attempt.job).or_default().push(*attempt);
        }
        for attempts in attempts.values_mut() {
            attempts.sort_by_key(|attempt| attempt.version);
        }
        Self { history, rules, evidence, begun, ended, attempts, findings: Findings::default() }
    }

    fn broken(&mut self, promise: Promise, text: String) {
        self.findings.violations.push(Violation { promise, text });
    }

    fn begun(&self, job: JobId) -> Vec<Begun> {
        self.begun.get(&job).cloned().unwrap_or_default()
    }

    fn attempts(&self, job: JobId) -> Vec<StoredAttempt> {
        self.attempts.get(&job).cloned().unwrap_or_default()
    }

    fn nothing_is_lost(&mut self) {
        let mut stored: HashMap<u64, Vec<JobId>> = HashMap::new();
        for job in &self.history.jobs {
            stored.entry(job.serial).or_default().push(job.id);
        }
        let asked: HashSet<u64> = self.history.submissions.iter().map(|submission| submission.serial).collect();
        for submission in &self.history.submissions {
            let serial = submission.serial;
            let ids = stored.get(&serial).map_or(&[][..], Vec::as_slice);
            match submission.answer {
                Answer::Accepted(id) if ids != [id] => {
                    let text = format!("job {serial} was accepted as {id}; the store has {ids:?}");
                    self.broken(Promise::NothingIsLost, text);
                }
                Answer::Refused if !ids.is_empty() => {
                    let text = format!("job {serial} was refused, but the store has {ids:?}");
                    self.broken(Promise::NothingIsLost, text);
                }
                _ => {}
            }
        }
        for (serial, ids) in stored {
            if ids.len() > 1 || !asked.contains(&serial) {
                self.broken(Promise::NothingIsLost, format!("job {serial} is in the store as {ids:?}"));
            }
        }
    }

    fn keys_have_one_holder(&mut self) {
        let mut holders: HashMap<&str, Vec<&StoredJob>> = HashMap::new();
        for job in &self.history.jobs {
            if let Some(key) = &job.business_key {
                holders.entry(key).or_default().push(job);
            }
        }
        for (key, mut jobs) in holders {
            jobs.sort_by_key(|job| job.created_at);
            for pair in jobs.windows(2) {
                if pair[0].terminated_at.is_none_or(|end| end > pair[1].created_at) {
                    let text = format!("{key} was held by {} and {} at once", pair[0].id, pair[1].id);
                    self.broken(Promise::OneHolderOfAKey, text);
                }
            }
        }
    }

    /// Claims have versions of their own, and what was accepted came from the one that held the last of them.
    fn no_stale_write(&mut self, job: &StoredJob) {
        let (begun, attempts) = (self.begun(job.id), self.attempts(job.id));
        for pair in begun.windows(2) {
            if pair[0].run.version == pair[1].run.version {
                let text = format!("{}: two runs under version {}", job.id, pair[0].run.version);
                self.broken(Promise::NoStaleWrite, text);
            }
        }
        for pair in attempts.windows(2) {
            if pair[0].version == pair[1].version {
                let text = format!("{}: two attempts are recorded for version {}", job.id, pair[0].version);
                self.broken(Promise::NoStaleWrite, text);
            }
        }
        for attempt in attempts.iter().filter(|attempt| attempt.version >= job.version) {
            let text = format!("{}: version {} was claimed, but it is at {}", job.id, attempt.version, job.version);
            self.broken(Promise::NoStaleWrite, text);
        }
        let last = begun.iter().map(|begun| begun.run.version).chain(attempts.iter().map(|attempt| attempt.version));
        let last = last.max().unwrap_or(0);
        for attempt in attempts.iter().filter(|attempt| attempt.status == AttemptStatus::Succeeded) {
            let run = begun.iter().map(|begun| begun.run).find(|run| run.version == attempt.version);
            let version = attempt.version;
            if version < last {
                let text = format!("{}: success of version {version} was accepted after a claim of {last}", job.id);
                self.broken(Promise::NoStaleWrite, text);
            }
            if run.is_none_or(|run| run.node != attempt.node) {
                let text = format!("{}: {} succeeded with version {version}, which it never ran", job.id, attempt.node);
                self.broken(Promise::NoStaleWrite, text);
            } else if run.is_some_and(|run| !self.ended.contains(&run)) {
                let text = format!("{}: version {version} succeeded, but its handler never came to its end", job.id);
                self.broken(Promise::NoStaleWrite, text);
            }
        }
    }

    /// What follows a terminal attempt was written after the end.
    fn one_end(&mut self, job: &StoredJob) {
        use ratchet::JobState::{Canceled, Failed, Succeeded};
        let (begun, attempts) = (self.begun(job.id), self.attempts(job.id));
        let is_end =
            |attempt: &&StoredAttempt| matches!(attempt.status, AttemptStatus::Succeeded | AttemptStatus::Canceled);
        if let Some(end) = attempts.iter().find(is_end) {
            let later = attempts.iter().map(|attempt| attempt.version).chain(begun.iter().map(|b| b.run.version));
            if let Some(later) = later.filter(|version| *version > end.version).max() {
                let text = format!("{}: ended with version {}, and went on with {later}", job.id, end.version);
                self.broken(Promise::OneEnd, text);
            }
        }
        if let Some(late) = begun.iter().find(|b| job.state.is_terminal() && b.run.version >= job.version) {
            let text =
                format!("{}: {} with version {}, then begun with {}", job.id, job.state, job.version, late.run.version);
            self.broken(Promise::OneEnd, text);
        }
        let last = attempts.last().map(|attempt| attempt.status);
        let fits = match job.state {
            Succeeded => last == Some(AttemptStatus::Succeeded),
            Canceled => last != Some(AttemptStatus::Succeeded),
            // No job of the stream fails for good by itself. One that went back in between has proven nothing.
            Failed => {
                let proven = attempts.iter().rev().filter(|attempt| attempt.status != AttemptStatus::Deferred);
                proven.take(3).filter(|attempt| attempt.status == AttemptStatus::Crashed).count() == 3
            }
            _ => last.is_none_or(|status| !matches!(status, AttemptStatus::Succeeded | AttemptStatus::Canceled)),
        };
        if !fits {
            self.broken(Promise::OneEnd, format!("{} is {}, but its last attempt was {last:?}", job.id, job.state));
        }
    }

    fn sightings_hold(&mut self) {
        let jobs: HashMap<JobId, &StoredJob> = self.history.jobs.iter().map(|job| (job.id, job)).collect();
        for seen in &self.history.sightings {
            let now = jobs.get(&seen.job).map(|job| (job.state, job.version));
            let holds = now
                .is_some_and(|(state, version)| state == seen.state && seen.version.is_none_or(|seen| seen == version));
            if !holds {
                let text = format!("{} was {} ({:?}), and is {now:?} in the end", seen.job, seen.state, seen.version);
                self.broken(Promise::OneEnd, text);
            }
        }
    }

    fn runs_again_for_a_reason(&mut self, job: &StoredJob) {
        let (begun, attempts) = (self.begun(job.id), self.attempts(job.id));
        for (at, run) in begun.iter().enumerate() {
            let attempt = attempts.iter().find(|attempt| attempt.version == run.run.version);
            let next = begun.get(at + 1);
            let until = next.map_or(i64::MAX, |next| next.at);
            let version = run.run.version;
            let Some(attempt) = attempt else {
                if next.is_some() || job.state.is_terminal() {
                    let text = format!("{}: the run of version {version} left no attempt", job.id);
                    self.broken(Promise::RunsAgainForAReason, text);
                }
                continue;
            };
            // A crash needs a reason even if it was the last: it may have sent the job to the dead letters.
            if next.is_none() && attempt.status != AttemptStatus::Crashed {
                continue;
            }
            let Some(reason) = self.evidence.reason(run, attempt.status, until) else {
                let text = format!(
                    "{}: version {version} ended as {:?} and the job ran again, but nothing befell process {} by then",
                    job.id, attempt.status, run.pid
                );
                self.broken(Promise::RunsAgainForAReason, text);
                continue;
            };
            *self.findings.reruns.entry(reason).or_default() += usize::from(next.is_some());
            if let (Reason::NodeLost(kind), Some(next)) = (reason, next)
                && let Some(fault) = self.evidence.loss(run, until)
            {
                let took = u64::try_from(next.at - fault.from.max(run.at)).unwrap_or(0);
                let slowest = self.findings.slowest_recovery.entry(kind).or_default();
                *slowest = (*slowest).max(Duration::from_micros(took));
            }
        }
    }

    fn ends_in_time(&mut self, job: &StoredJob) {
        let limit = self.history.faults_ended + micros(self.rules.end_limit);
        if !job.state.is_terminal() {
            let text = format!("{} is still {} with version {}", job.id, job.state, job.version);
            self.broken(Promise::EndsInTime, text);
        } else if job.terminated_at.is_none_or(|end| end > limit) {
            let text = format!("{} ended later than {:?} after the faults", job.id, self.rules.end_limit);
            self.broken(Promise::EndsInTime, text);
        }
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
