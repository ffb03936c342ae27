//! The checker must notice every sort of broken history.

use std::time::Duration;

use ratchet::{AttemptStatus, JobId, JobState, NodeId};
use ratchet_chaos::check::{Promise, Rules, check};
use ratchet_chaos::history::{Answer, Fault, FaultKind, History, Sighting, StoredAttempt, StoredJob, Submission};
use ratchet_chaos::record::{Deed, Line, Run};
use ratchet_chaos::rerun::Reason;
use ratchet_chaos::said;

const RULES: Rules = Rules { grace: Duration::from_secs(2), end_limit: Duration::from_mins(2) };
/// A second.
const S: i64 = 1_000_000;
/// Two processes.
const A: u32 = 100;
const B: u32 = 200;

fn job(serial: u64) -> JobId {
    format!("00000000-0000-7000-8000-{serial:012x}").parse().unwrap()
}

fn node(pid: u32) -> NodeId {
    format!("00000000-0000-7000-9000-{pid:012x}").parse().unwrap()
}

/// A history in the making.
#[derive(Default)]
struct Made(History);

impl Made {
    fn run(&mut self, serial: u64, version: u64, pid: u32, (from, to): (i64, i64), status: AttemptStatus) {
        let run = Run { job: job(serial), version, node: node(pid), attempt: 1 };
        self.0.lines.push(Line { at: from, pid, deed: Deed::Began(run) });
        if status != AttemptStatus::Crashed {
            self.0.lines.push(Line { at: to, pid, deed: Deed::Ended(run) });
        }
        self.0.attempts.push(StoredAttempt { job: job(serial), version, node: node(pid), status });
    }

    fn stored(&mut self, serial: u64, state: JobState, version: u64, ended: i64) {
        let id = job(serial);
        self.0.submissions.push(Submission { serial, answer: Answer::Accepted(id) });
        let terminated_at = Some(ended);
        self.0.jobs.push(StoredJob { id, serial, state, version, business_key: None, created_at: 0, terminated_at });
    }
}

/// Job 1 succeeds; 2 is on a node that is killed; 3 fails once; 4 is canceled; 5 is on a node that is stopped; 6 is given
/// back by a node that is cut off.
fn sound() -> Made {
    use AttemptStatus::{Canceled, Crashed, Deferred, Failed, Succeeded};
    let mut made = Made::default();
    made.run(1, 1, A, (S, 2 * S), Succeeded);
    made.stored(1, JobState::Succeeded, 2, 2 * S);
    made.run(2, 1, A, (2 * S, 0), Crashed);
    made.run(2, 3, B, (6 * S, 7 * S), Succeeded);
    made.stored(2, JobState::Succeeded, 4, 7 * S);
    made.run(3, 1, B, (S, 2 * S), Failed);
    made.run(3, 3, B, (3 * S, 4 * S), Succeeded);
    made.stored(3, JobState::Succeeded, 4, 4 * S);
    made.run(4, 1, B, (S, 2 * S), Canceled);
    made.stored(4, JobState::Canceled, 2, 2 * S);
    made.run(5, 1, B, (10 * S, 0), Crashed);
    made.run(5, 3, A, (14 * S, 15 * S), Succeeded);
    made.stored(5, JobState::Succeeded, 4, 15 * S);
    made.run(6, 1, B, (20 * S, 22 * S), Deferred);
    made.run(6, 3, B, (23 * S, 24 * S), Succeeded);
    made.stored(6, JobState::Succeeded, 4, 24 * S);
    let history = &mut made.0;
    history.lines.push(Line { at: 21 * S, pid: B, deed: Deed::Said(said::FENCED.to_owned()) });
    let fault = |kind, pid, from, to| Fault { kind, pid, from, to };
    history.faults.push(fault(FaultKind::Killed, Some(A), 3 * S, 3 * S));
    history.faults.push(fault(FaultKind::Stopped, Some(B), 11 * S, 14 * S));
    history.faults.push(fault(FaultKind::Cut, Some(B), 20 * S, 22 * S));
    history.sightings.push(Sighting { job: job(4), state: JobState::Canceled, version: Some(2) });
    history.faults_ended = 25 * S;
    made
}

#[test]
fn a_sound_history_has_no_violations_and_every_second_run_its_reason() {
    let findings = check(&sound().0, RULES);
    assert_eq!(findings.violations, []);
    let reasons: Vec<_> = findings.reruns.into_iter().collect();
    let lost = Reason::NodeLost;
    assert_eq!(
        reasons,
        [(Reason::Retried, 1), (Reason::FencedItself, 1), (lost(FaultKind::Killed), 1), (lost(FaultKind::Stopped), 1)]
    );
    let slowest: Vec<_> = findings.slowest_recovery.into_iter().collect();
    let three = Duration::from_secs(3);
    assert_eq!(slowest, [(FaultKind::Killed, three), (FaultKind::Stopped, three)]);
}

/// Breaks the sound history and expects that this promise, and no other, is found to be broken.
#[track_caller]
fn breaks(promise: Promise, text: &str, break_it: impl FnOnce(&mut Made)) {
    let mut made = sound();
    break_it(&mut made);
    let found = check(&made.0, RULES).violations;
    assert!(found.iter().any(|violation| violation.promise == promise && violation.text.contains(text)), "{found:?}");
}

fn stored(made: &mut Made, serial: u64) -> &mut StoredJob {
    made.0.jobs.iter_mut().find(|job| job.serial == serial).unwrap()
}

#[test]
fn a_lost_job_is_noticed() {
    breaks(Promise::NothingIsLost, "the store has []", |made| made.0.jobs.retain(|job| job.serial != 1));
}

#[test]
fn a_job_that_is_there_twice_is_noticed() {
    breaks(Promise::NothingIsLost, "in the store as", |made| {
        let twin = StoredJob { id: job(99), ..stored(made, 1).clone() };
        made.0.jobs.push(twin);
    });
}

#[test]
fn a_job_that_was_refused_and_is_there_is_noticed() {
    breaks(Promise::NothingIsLost, "was refused", |made| made.0.submissions[0].answer = Answer::Refused);
}

#[test]
fn a_job_that_nobody_submitted_is_noticed() {
    breaks(Promise::NothingIsLost, "in the store as", |made| {
        made.0.submissions.remove(0);
    });
}

#[test]
fn a_success_that_was_accepted_after_a_later_claim_is_noticed() {
    breaks(Promise::NoStaleWrite, "accepted after a claim of 3", |made| {
        let crashed = made.0.attempts.iter_mut().find(|attempt| attempt.job == job(2)).unwrap();
        crashed.status = AttemptStatus::Succeeded;
    });
}

#[test]
fn a_success_of_a_node_that_did_not_run_it_is_noticed() {
    breaks(Promise::NoStaleWrite, "which it never ran", |made| made.0.attempts[0].node = node(B));
}

#[test]
fn a_success_of_a_handler_that_did_not_end_is_noticed() {
    breaks(Promise::NoStaleWrite, "never came to its end", |made| {
        made.0.lines.retain(|line| !matches!(line.deed, Deed::Ended(run) if run.job == job(1)));
    });
}

#[test]
fn two_attempts_and_two_runs_under_one_version_are_noticed() {
    breaks(Promise::NoStaleWrite, "two attempts are recorded for version 1", |made| {
        made.0.attempts.push(StoredAttempt { node: node(B), ..made.0.attempts[0] });
    });
    breaks(Promise::NoStaleWrite, "two runs under version 1", |made| {
        let run = Run { job: job(1), version: 1, node: node(B), attempt: 1 };
        made.0.lines.push(Line { at: S, pid: B, deed: Deed::Began(run) });
    });
}

#[test]
fn a_version_that_went_back_is_noticed() {
    breaks(Promise::NoStaleWrite, "but it is at 1", |made| stored(made, 1).version = 1);
}

#[test]
fn a_second_end_is_noticed() {
    breaks(Promise::OneEnd, "ended with version 1, and went on with 3", |made| {
        made.run(1, 3, B, (9 * S, 10 * S), AttemptStatus::Failed);
        let one = stored(made, 1);
        (one.state, one.version) = (JobState::Failed, 4);
    });
    breaks(Promise::OneEnd, "begun with 7", |made| {
        let run = Run { job: job(4), version: 7, node: node(B), attempt: 1 };
        made.0.lines.push(Line { at: 9 * S, pid: B, deed: Deed::Began(run) });
    });
}

#[test]
fn an_end_that_was_seen_and_is_another_later_is_noticed() {
    breaks(Promise::OneEnd, "in the end", |made| made.0.sightings[0].state = JobState::Succeeded);
    breaks(Promise::OneEnd, "in the end", |made| made.0.sightings[0].version = Some(3));
}

#[test]
fn a_state_that_does_not_fit_the_last_attempt_is_noticed() {
    breaks(Promise::OneEnd, "its last attempt was", |made| stored(made, 3).state = JobState::Failed);
    breaks(Promise::OneEnd, "its last attempt was", |made| stored(made, 4).state = JobState::Succeeded);
}

#[test]
fn a_second_run_without_a_fault_is_noticed() {
    let nothing_befell = "nothing befell process";
    breaks(Promise::RunsAgainForAReason, nothing_befell, |made| made.0.faults.retain(|f| f.kind != FaultKind::Killed));
    breaks(Promise::RunsAgainForAReason, nothing_befell, |made| made.0.faults[0].pid = Some(B));
    breaks(Promise::RunsAgainForAReason, nothing_befell, |made| made.0.faults[0].from = 8 * S);
    breaks(Promise::RunsAgainForAReason, nothing_befell, |made| made.0.faults[1].to = 11 * S + S / 2);
    breaks(Promise::RunsAgainForAReason, nothing_befell, |made| made.0.faults[1].kind = FaultKind::Terminated);
    breaks(Promise::RunsAgainForAReason, nothing_befell, |made| {
        made.0.lines.retain(|line| !matches!(line.deed, Deed::Said(_)));
    });
}

#[test]
fn a_run_that_left_no_attempt_is_noticed() {
    breaks(Promise::RunsAgainForAReason, "left no attempt", |made| {
        made.0.attempts.remove(1);
    });
}

#[test]
fn a_job_that_never_ended_or_too_late_is_noticed() {
    breaks(Promise::EndsInTime, "is still", |made| {
        made.0.attempts.retain(|attempt| attempt.job != job(1));
        let one = stored(made, 1);
        (one.state, one.version, one.terminated_at) = (JobState::Running, 1, None);
    });
    breaks(Promise::EndsInTime, "ended later", |made| stored(made, 6).terminated_at = Some((25 + 121) * S));
}

#[test]
fn two_holders_of_a_key_at_once_are_noticed() {
    breaks(Promise::OneHolderOfAKey, "at once", |made| {
        for serial in [1, 2] {
            stored(made, serial).business_key = Some("invoice:7".to_owned());
        }
    });
}

/// Whether a job may be in the dead letter queue after these attempts.
fn may_be_dead_after(statuses: &[AttemptStatus]) -> bool {
    let mut made = Made::default();
    for (place, status) in statuses.iter().enumerate() {
        let at = S * i64::try_from(place).unwrap();
        made.run(7, 2 * place as u64 + 1, A, (at, at), *status);
        made.0.faults.push(Fault { kind: FaultKind::Killed, pid: Some(A), from: at, to: at });
    }
    made.stored(7, JobState::Failed, 2 * statuses.len() as u64, 100 * S);
    made.0.faults_ended = 100 * S;
    !check(&made.0, RULES).violations.iter().any(|violation| violation.promise == Promise::OneEnd)
}

#[test]
fn three_crashes_in_a_row_are_a_reason_to_be_dead_and_going_back_in_between_proves_nothing() {
    use AttemptStatus::{Crashed, Deferred, Failed};
    assert!(may_be_dead_after(&[Crashed, Crashed, Crashed]));
    assert!(may_be_dead_after(&[Crashed, Deferred, Crashed, Crashed]));
    assert!(may_be_dead_after(&[Failed, Crashed, Crashed, Deferred, Crashed]));
    assert!(!may_be_dead_after(&[Crashed, Crashed]));
    assert!(!may_be_dead_after(&[Crashed, Failed, Crashed, Crashed]));
}
