//! The row of a failed job that is retried.

use jiff::Timestamp;

use crate::flow::{JobFlags, WaitState, retry_event, signaled};
use crate::record::JobRecord;
use crate::state::JobState;
use crate::transition::{Event, Place, next};

/// What a retry writes to the row of a failed job.
///
/// Besides this the version grows by one and the job is due now. What it came to before is forgotten: its last error, its
/// result, when its last attempt ran, when it ended, and how long it was deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retried {
    /// What happens to the job.
    pub event: Event,
    /// Its place.
    pub place: Place,
    /// Its counted attempts.
    pub attempts: u32,
    /// How many times in a row its node died.
    pub crash_count: u32,
    /// Its ties.
    pub flow: JobFlags,
    /// How many edges and signals it waits for.
    pub waits_for: u32,
}

impl Retried {
    /// Makes this of a record whose place and version are already the new ones.
    pub fn write(self, job: &mut JobRecord, now: Timestamp) {
        job.attempts = self.attempts;
        job.crash_count = self.crash_count;
        job.flow = self.flow;
        job.waits_for = self.waits_for;
        job.scheduled_time = now;
        job.last_error = None;
        job.result = None;
        job.timing = None;
        job.terminated_at = None;
        job.deferred_until = None;
    }
}

impl JobRecord {
    /// Whether a retry of this job waits for its signal again, so that the store looks for one that was kept for it.
    ///
    /// A job that never got its signal must not run without it.
    pub const fn awaits_signal_when_retried(&self) -> bool {
        self.flow.has(JobFlags::SIGNAL)
    }

    /// Returns what a retry writes; `None` if the job cannot be retried where it stands.
    ///
    /// `signal_came` is whether the signal that it [awaits](Self::awaits_signal_when_retried) was kept for it. What else it waited
    /// for does not block a retry.
    pub fn retried(&self, signal_came: bool) -> Option<Retried> {
        next(self.place(), Event::Retry)?;
        let came = signal_came && self.awaits_signal_when_retried();
        let flow = if came { signaled(WaitState { waits_for: 1, flow: self.flow }).flow } else { self.flow };
        let flow = flow.at_rest();
        let event = retry_event(flow);
        let place = next(self.place(), event)?;
        let waits_for = u32::from(place.state() == JobState::Waiting);
        Some(Retried { event, place, attempts: 0, crash_count: 0, flow, waits_for })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::{job, second};
    use crate::json::JsonText;

    #[test]
    fn a_retry_begins_anew_and_waits_only_for_its_signal() {
        let tied = JobFlags::INPUTS.with(JobFlags::JOIN_ANY);
        let check = |flow: JobFlags, came, event, place, flow_after, waits_for| {
            let failed = JobRecord { flow, attempts: 4, crash_count: 3, ..job(JobState::Failed) };
            let expected = Retried { event, place, attempts: 0, crash_count: 0, flow: flow_after, waits_for };
            assert_eq!(failed.retried(came), Some(expected));
        };
        check(JobFlags::none(), false, Event::Retry, Place::Pending, JobFlags::none(), 0);
        check(tied.with(JobFlags::HELD), false, Event::Retry, Place::Pending, tied, 0);
        check(JobFlags::SIGNALED, false, Event::Retry, Place::Pending, JobFlags::SIGNALED, 0);
        check(tied.with(JobFlags::SIGNAL), false, Event::Revive, Place::Waiting, tied.with(JobFlags::SIGNAL), 1);
        check(tied.with(JobFlags::SIGNAL), true, Event::Retry, Place::Pending, tied.with(JobFlags::SIGNALED), 0);
        check(tied, true, Event::Retry, Place::Pending, tied, 0);
    }

    #[test]
    fn only_a_failed_job_is_retried() {
        for state in JobState::ALL {
            let paused_from = (state == JobState::Paused).then_some(JobState::Failed);
            let job = JobRecord { paused_from, flow: JobFlags::SIGNAL, ..job(state) };
            assert_eq!(job.retried(false).is_some(), state == JobState::Failed, "{state}");
        }
    }

    #[test]
    fn what_a_job_came_to_before_is_forgotten() {
        let new = job(JobState::Failed);
        let mut failed = JobRecord {
            attempts: 4,
            crash_count: 3,
            last_error: Some("disk full".to_owned()),
            result: Some(JsonText::null()),
            terminated_at: Some(second(200)),
            deferred_until: Some(second(150)),
            waits_for: 2,
            ..new.clone()
        };
        failed.timing = failed_timing(&failed);
        failed.retried(false).unwrap().write(&mut failed, second(300));
        assert_eq!(failed, JobRecord { scheduled_time: second(300), ..new });
    }

    fn failed_timing(job: &JobRecord) -> Option<crate::record::AttemptTiming> {
        let running =
            JobRecord { picked_by: Some(crate::id::NodeId(job.id.0)), picked_at: Some(second(120)), ..job.clone() };
        running.canceled_attempt(second(130)).map(|attempt| attempt.timing)
    }
}
