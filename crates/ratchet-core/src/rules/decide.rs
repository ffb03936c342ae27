//! From what an attempt came to, to what the store must now do. Pure: no clock, no store, no user code.

use crate::claim::Fence;
use crate::id::{JobId, derived_id};
use crate::outcome::{ErrorReport, Outcome, Verdicts};
use crate::record::{AttemptRecord, AttemptStatus, AttemptTiming, JobRecord};
use crate::settlement::{Change, DeadLetterReason, Settlement};
use crate::spec::{JobType, NewJob, Origin};

/// A job whose node dies this many times in a row goes to the dead letter queue.
pub const CRASH_LIMIT: u32 = 3;

/// Everything that a decision rests on.
#[derive(Debug)]
pub struct Decision<'a> {
    /// The job as it was claimed.
    pub job: &'a JobRecord,
    /// The claim's fence.
    pub fence: Fence,
    /// What the attempt came to.
    pub outcome: Outcome,
    /// What user code had to say about a failure.
    pub verdicts: Verdicts,
    /// When the attempt ran.
    pub timing: AttemptTiming,
    /// Makes the id for a callback, should one follow. Most jobs have none, and a good id is a tenth of what a small job costs.
    pub callback_id: fn() -> JobId,
}

/// Decides what the store must now do; `None` if the end is already written.
///
/// The order of questions for a failed attempt: attempt counted → not to be retried? → refused by the retry policy? →
/// attempts within max retries? → backoff and retry, else dead letter. A job whose node died takes the same door.
pub fn decide(input: Decision<'_>) -> Option<Settlement> {
    let Decision { job, fence, outcome, verdicts, timing, callback_id } = input;
    let counted = job.attempts.saturating_add(1);
    let (change, status, error) = match outcome {
        Outcome::Canceled => return None,
        Outcome::Succeeded { result } => {
            (Change::Succeed { attempts: counted, result }, Some(AttemptStatus::Succeeded), None)
        }
        Outcome::Failed(error) => (failed(job, counted, &error, verdicts), Some(AttemptStatus::Failed), Some(error)),
        Outcome::TimedOut(error) => {
            (failed(job, counted, &error, verdicts), Some(AttemptStatus::TimedOut), Some(error))
        }
        Outcome::Panicked(error) => {
            (failed(job, counted, &error, verdicts), Some(AttemptStatus::Panicked), Some(error))
        }
        Outcome::Crashed => {
            let (change, error) = crashed(job);
            (change, Some(AttemptStatus::Crashed), Some(error))
        }
        Outcome::Deferred { delay, reason } => {
            (Change::Defer { delay }, reason.handler_ran().then_some(AttemptStatus::Deferred), None)
        }
    };
    let attempt = status.map(|status| AttemptRecord {
        job_id: job.id,
        version: fence.version,
        attempt: counted,
        node: fence.node,
        status,
        timing,
        error_class: error.as_ref().map(|error| error.class().to_owned()),
        error: error.as_ref().map(|error| error.text().to_owned()),
    });
    let new_jobs = callback(job, &change, callback_id).into_iter().collect();
    Some(Settlement { attempt, new_jobs, ..Settlement::of(fence, change) })
}

fn failed(job: &JobRecord, attempts: u32, error: &ErrorReport, verdicts: Verdicts) -> Change {
    let dead = |reason| Change::Fail { attempts, error: error.clone(), reason };
    if let Some(reason) = verdicts.do_not_retry {
        return dead(DeadLetterReason::DoNotRetry(reason));
    }
    if verdicts.policy_refused {
        return dead(DeadLetterReason::PolicyRefused);
    }
    if attempts > job.spec.max_retries {
        return dead(DeadLetterReason::RetriesExhausted);
    }
    let delay = verdicts.policy_delay.unwrap_or_else(|| job.spec.backoff.delay(attempts));
    Change::Reschedule { delay, attempts, error: error.clone() }
}

fn crashed(job: &JobRecord) -> (Change, ErrorReport) {
    let crash_count = job.crash_count.saturating_add(1);
    if crash_count < CRASH_LIMIT {
        return (Change::Rescue { crash_count }, ErrorReport::new("Crashed", "the node that ran this attempt died"));
    }
    let error = ErrorReport::new("Crashed", &format!("the node that ran this job died {crash_count} times in a row"));
    let reason = DeadLetterReason::CrashLimit { crash_count };
    (Change::Fail { attempts: job.attempts, error: error.clone(), reason }, error)
}

/// What follows from a failure that no attempt came to: the job never ran.
pub fn failure_callback(job: &JobRecord, error: &ErrorReport) -> Option<NewJob> {
    let id = || derived_id(job.id, job.version, "on_failure");
    let reason = DeadLetterReason::NeverRan;
    callback(job, &Change::Fail { attempts: job.attempts, error: error.clone(), reason }, id)
}

fn callback(job: &JobRecord, change: &Change, id: impl FnOnce() -> JobId) -> Option<NewJob> {
    let (mut spec, result, error) = match change {
        Change::Succeed { result, .. } => (job.on_success.clone()?, result.clone(), None),
        Change::Fail { error, .. } => (job.on_failure.clone()?, None, Some(error.text().to_owned())),
        Change::Reschedule { .. } | Change::Defer { .. } | Change::Rescue { .. } => return None,
    };
    // A callback goes on with the trace of its job, unless it was given one of its own.
    spec.trace = spec.trace.or_else(|| job.spec.trace.clone());
    let origin = Origin { job_id: job.id, kind: job.spec.kind.clone(), params: job.spec.params.clone(), result, error };
    Some(NewJob { job_type: JobType::Callback, origin: Some(origin), ..NewJob::new(id(), spec) })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::backoff::Backoff;
    use crate::id::NodeId;
    use crate::json::JsonText;
    use crate::name::Kind;
    use crate::outcome::DeferReason;
    use crate::spec::JobSpec;
    use crate::state::JobState;

    fn job(attempts: u32, max_retries: u32, crash_count: u32) -> JobRecord {
        let mut spec = JobSpec::new(Kind::new("test").unwrap(), JsonText::null());
        spec.max_retries = max_retries;
        spec.backoff = Backoff::Exponential(Duration::from_secs(2));
        let mut job = JobRecord::stored(
            JobId(Uuid::from_u128(1)),
            spec,
            JobType::Single,
            JobState::Running,
            Timestamp::UNIX_EPOCH,
            Timestamp::UNIX_EPOCH,
        );
        job.attempts = attempts;
        job.crash_count = crash_count;
        job
    }

    fn settle(job: &JobRecord, outcome: Outcome, verdicts: Verdicts) -> Option<Settlement> {
        let timing = AttemptTiming {
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: Timestamp::UNIX_EPOCH,
            duration: Duration::ZERO,
            queue_wait: Duration::ZERO,
        };
        let fence = Fence { job_id: job.id, version: 7, node: NodeId(Uuid::from_u128(2)) };
        decide(Decision { job, fence, outcome, verdicts, timing, callback_id: || JobId(Uuid::from_u128(3)) })
    }

    fn error() -> ErrorReport {
        ErrorReport::new("E", "E: broke")
    }

    #[test]
    fn a_failed_attempt_passes_the_questions_in_order() {
        let check = |attempts, max_retries, verdicts: Verdicts, expected: Change| {
            let settled = settle(&job(attempts, max_retries, 1), Outcome::Failed(error()), verdicts).unwrap();
            assert_eq!(settled.change, expected, "attempts {attempts} of {max_retries}");
            assert_eq!(settled.change.crash_count(1), 0, "a normally settled attempt resets the crash count");
        };
        let quiet = Verdicts::default;
        let dead = |attempts, reason| Change::Fail { attempts, error: error(), reason };
        let again = |attempts, secs| Change::Reschedule { delay: Duration::from_secs(secs), attempts, error: error() };
        check(0, 3, quiet(), again(1, 2));
        check(1, 3, quiet(), again(2, 4));
        check(2, 3, quiet(), again(3, 8));
        check(3, 3, quiet(), dead(4, DeadLetterReason::RetriesExhausted));
        check(0, 0, quiet(), dead(1, DeadLetterReason::RetriesExhausted));
        let refused = || Verdicts { policy_refused: true, ..quiet() };
        check(0, 3, refused(), dead(1, DeadLetterReason::PolicyRefused));
        let hopeless = || Verdicts { do_not_retry: Some("no".into()), ..refused() };
        check(0, 3, hopeless(), dead(1, DeadLetterReason::DoNotRetry("no".into())));
        let delayed = || Verdicts { policy_delay: Some(Duration::from_secs(99)), ..quiet() };
        check(0, 3, delayed(), again(1, 99));
        check(3, 3, delayed(), dead(4, DeadLetterReason::RetriesExhausted));
    }

    #[test]
    fn timeouts_and_panics_take_the_same_door_and_keep_their_name() {
        for (outcome, status) in [
            (Outcome::TimedOut(error()), AttemptStatus::TimedOut),
            (Outcome::Panicked(error()), AttemptStatus::Panicked),
        ] {
            let settled = settle(&job(0, 1, 0), outcome, Verdicts::default()).unwrap();
            assert!(matches!(settled.change, Change::Reschedule { attempts: 1, .. }));
            assert_eq!(settled.attempt.unwrap().status, status);
        }
    }

    #[test]
    fn the_third_crash_in_a_row_is_the_last_and_none_counts_as_an_attempt() {
        let rescued = settle(&job(2, 9, 1), Outcome::Crashed, Verdicts::default()).unwrap();
        assert_eq!(rescued.change, Change::Rescue { crash_count: 2 });
        let dead = settle(&job(2, 9, 2), Outcome::Crashed, Verdicts::default()).unwrap();
        let Change::Fail { attempts, reason, .. } = &dead.change else { panic!("{:?}", dead.change) };
        assert_eq!((*attempts, reason), (2, &DeadLetterReason::CrashLimit { crash_count: 3 }));
        assert_eq!(dead.change.crash_count(2), 3);
    }

    #[test]
    fn a_deferred_job_keeps_its_attempts_and_its_crash_count() {
        let outcome = Outcome::Deferred { delay: Duration::from_secs(5), reason: DeferReason::Snoozed };
        let settled = settle(&job(1, 3, 2), outcome, Verdicts::default()).unwrap();
        assert_eq!(settled.change, Change::Defer { delay: Duration::from_secs(5) });
        assert_eq!(settled.change.crash_count(2), 2);
        assert_eq!(settled.attempt.unwrap().status, AttemptStatus::Deferred);
        let lost = Outcome::Deferred { delay: Duration::ZERO, reason: DeferReason::LostClaim };
        assert_eq!(settle(&job(1, 3, 0), lost, Verdicts::default()).unwrap().attempt, None);
    }

    #[test]
    fn callbacks_follow_the_final_end_alone_and_know_what_they_are_about() {
        let mut job = job(0, 1, 0);
        job.on_success = Some(JobSpec::new(Kind::new("cheer").unwrap(), JsonText::null()));
        job.on_failure = Some(JobSpec::new(Kind::new("mourn").unwrap(), JsonText::null()));
        let retried = settle(&job, Outcome::Failed(error()), Verdicts::default()).unwrap();
        assert_eq!(retried.new_jobs, []);
        let result = JsonText::parse("result", "42", 10).unwrap();
        let won = settle(&job, Outcome::Succeeded { result: Some(result.clone()) }, Verdicts::default()).unwrap();
        let origin = won.new_jobs[0].origin.as_ref().unwrap();
        assert_eq!((won.new_jobs[0].spec.kind.as_str(), &origin.result), ("cheer", &Some(result)));
        job.attempts = 1;
        let lost = settle(&job, Outcome::Failed(error()), Verdicts::default()).unwrap();
        let origin = lost.new_jobs[0].origin.as_ref().unwrap();
        assert_eq!((lost.new_jobs[0].spec.kind.as_str(), origin.error.as_deref()), ("mourn", Some("E: broke")));
    }

    #[test]
    fn a_callback_goes_on_with_the_trace_of_its_job() {
        let trace = |number| crate::trace::TraceContext::new(number, 1, true);
        let mut job = job(0, 1, 0);
        job.spec.trace = trace(1);
        let spec = JobSpec::new(Kind::new("cheer").unwrap(), JsonText::null());
        for (own, expected) in [(None, trace(1)), (trace(2), trace(2))] {
            job.on_success = Some(JobSpec { trace: own, ..spec.clone() });
            let won = settle(&job, Outcome::Succeeded { result: None }, Verdicts::default()).unwrap();
            assert_eq!(won.new_jobs[0].spec.trace, expected);
        }
    }

    #[test]
    fn a_canceled_attempt_has_nothing_left_to_write() {
        assert_eq!(settle(&job(0, 1, 0), Outcome::Canceled, Verdicts::default()), None);
    }
}
