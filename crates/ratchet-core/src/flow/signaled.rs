use super::{JobFlags, WaitState};
use crate::transition::Event;

/// A job that waits, after its signal has come: nothing is left to wait for if `waits_for` is zero.
#[must_use]
pub const fn signaled(waiting: WaitState) -> WaitState {
    let flow = waiting.flow.without(JobFlags::SIGNAL).with(JobFlags::SIGNALED);
    WaitState { waits_for: waiting.waits_for.saturating_sub(1), flow }
}

/// Whether the time limit of a job's signal runs: it does while the signal is all that is left to wait for.
pub const fn limit_begins(waiting: WaitState) -> bool {
    waiting.waits_for == 1 && waiting.flow.has(JobFlags::SIGNAL)
}

/// What a retry is: a job that never got its signal waits for it again, because it must not run without.
pub const fn retry_event(flow: JobFlags) -> Event {
    if flow.has(JobFlags::SIGNAL) { Event::Revive } else { Event::Retry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_one_of_the_things_to_wait_for() {
        let check = |waits_for, left| {
            let after = signaled(WaitState { waits_for, flow: JobFlags::SIGNAL.with(JobFlags::INPUTS) });
            assert_eq!(after, WaitState { waits_for: left, flow: JobFlags::SIGNALED.with(JobFlags::INPUTS) });
        };
        check(1, 0);
        check(3, 2);
    }

    #[test]
    fn the_limit_runs_when_only_the_signal_is_left() {
        let check = |waits_for, flow, runs| assert_eq!(limit_begins(WaitState { waits_for, flow }), runs);
        check(1, JobFlags::SIGNAL, true);
        check(2, JobFlags::SIGNAL, false);
        check(1, JobFlags::SIGNALED, false);
        check(1, JobFlags::none(), false);
    }

    #[test]
    fn a_retry_without_the_signal_waits_for_it() {
        assert_eq!(retry_event(JobFlags::SIGNAL.with(JobFlags::INPUTS)), Event::Revive);
        assert_eq!(retry_event(JobFlags::SIGNALED), Event::Retry);
        assert_eq!(retry_event(JobFlags::none()), Event::Retry);
    }
}
