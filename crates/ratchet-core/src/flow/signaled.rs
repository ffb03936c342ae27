use super::{Flow, Waiting};
use crate::transition::Event;

/// A job that waits, after its signal has come: nothing is left to wait for if `waits_for` is zero.
#[must_use]
pub const fn signaled(waiting: Waiting) -> Waiting {
    let flow = waiting.flow.without(Flow::SIGNAL).with(Flow::SIGNALED);
    Waiting { waits_for: waiting.waits_for.saturating_sub(1), flow }
}

/// Whether the time limit of a job's signal runs: it does while the signal is all that is left to wait for.
pub const fn limit_begins(waiting: Waiting) -> bool {
    waiting.waits_for == 1 && waiting.flow.has(Flow::SIGNAL)
}

/// What a retry is: a job that never got its signal waits for it again, because it must not run without.
pub const fn retry_event(flow: Flow) -> Event {
    if flow.has(Flow::SIGNAL) { Event::Revive } else { Event::Retry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_one_of_the_things_to_wait_for() {
        let check = |waits_for, left| {
            let after = signaled(Waiting { waits_for, flow: Flow::SIGNAL.with(Flow::INPUTS) });
            assert_eq!(after, Waiting { waits_for: left, flow: Flow::SIGNALED.with(Flow::INPUTS) });
        };
        check(1, 0);
        check(3, 2);
    }

    #[test]
    fn the_limit_runs_when_only_the_signal_is_left() {
        let check = |waits_for, flow, runs| assert_eq!(limit_begins(Waiting { waits_for, flow }), runs);
        check(1, Flow::SIGNAL, true);
        check(2, Flow::SIGNAL, false);
        check(1, Flow::SIGNALED, false);
        check(1, Flow::none(), false);
    }

    #[test]
    fn a_retry_without_the_signal_waits_for_it() {
        assert_eq!(retry_event(Flow::SIGNAL.with(Flow::INPUTS)), Event::Revive);
        assert_eq!(retry_event(Flow::SIGNALED), Event::Retry);
        assert_eq!(retry_event(Flow::none()), Event::Retry);
    }
}
