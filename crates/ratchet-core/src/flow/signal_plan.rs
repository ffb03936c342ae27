use super::{Dependent, JobFlags, Release, WaitState, signaled};
use crate::id::JobId;
use crate::settlement::FollowedBy;
use crate::state::JobState;

/// Whether a job waits for a signal that has not come.
pub fn awaits_signal(state: JobState, flow: JobFlags) -> bool {
    state == JobState::Waiting && flow.has(JobFlags::SIGNAL)
}

/// The writes that follow when jobs get the signal that they wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignalPlan {
    /// Jobs that still wait, for what, and with which ties.
    pub still: Vec<(JobId, WaitState)>,
    /// Jobs that become claimable.
    pub released: Vec<Release>,
    /// What is reported about each job.
    pub followed: Vec<(JobId, FollowedBy)>,
}

impl SignalPlan {
    /// The writes for these jobs, all of which [await](awaits_signal) the signal.
    pub fn of(waiting: impl IntoIterator<Item = (JobId, Dependent)>) -> Self {
        let mut plan = Self::default();
        for (id, job) in waiting {
            let left = signaled(job.waiting);
            if left.waits_for > 0 {
                plan.still.push((id, left));
                plan.followed.push((id, FollowedBy::Signaled));
            } else {
                plan.released.push(Release::new(id, left.flow, job.release_delay));
                plan.followed.push((id, FollowedBy::Released));
            }
        }
        plan
    }

    /// The ties of all these jobs from now on, which a retry begins with.
    pub fn ties(&self) -> impl Iterator<Item = (JobId, JobFlags)> {
        let still = self.still.iter().map(|(id, left)| (*id, left.flow));
        still.chain(self.released.iter().map(|release| (release.id, release.flow)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    #[test]
    fn a_signal_releases_a_job_that_waits_for_nothing_else() {
        let check = |waits_for, still: Option<u32>, released: bool, what| {
            let waiting = WaitState { waits_for, flow: JobFlags::SIGNAL.with(JobFlags::INPUTS) };
            let release_delay = Some(Duration::from_secs(7));
            let plan = SignalPlan::of([(id(1), Dependent { waiting, release_delay, batch: None })]);
            let flow = JobFlags::SIGNALED.with(JobFlags::INPUTS);
            let still = still.map(|waits_for| (id(1), WaitState { waits_for, flow }));
            assert_eq!(plan.still, still.into_iter().collect::<Vec<_>>(), "{waits_for}");
            let released = released.then_some(Release { id: id(1), flow: flow.at_rest(), delay: release_delay });
            assert_eq!(plan.released, released.into_iter().collect::<Vec<_>>(), "{waits_for}");
            assert_eq!(plan.followed, [(id(1), what)], "{waits_for}");
            assert_eq!(plan.ties().collect::<Vec<_>>(), [(id(1), flow)], "{waits_for}");
        };
        check(1, None, true, FollowedBy::Released);
        check(2, Some(1), false, FollowedBy::Signaled);
        assert_eq!(SignalPlan::of([]), SignalPlan::default());
    }

    #[test]
    fn only_a_job_that_waits_awaits_its_signal() {
        let check = |state, flow, expected| assert_eq!(awaits_signal(state, flow), expected, "{state:?} {flow:?}");
        check(JobState::Waiting, JobFlags::SIGNAL, true);
        check(JobState::Waiting, JobFlags::SIGNAL.with(JobFlags::INPUTS), true);
        check(JobState::Waiting, JobFlags::SIGNALED, false);
        check(JobState::Waiting, JobFlags::none(), false);
        for state in [JobState::Pending, JobState::Running, JobState::Paused, JobState::Failed, JobState::Canceled] {
            check(state, JobFlags::SIGNAL, false);
        }
    }
}
