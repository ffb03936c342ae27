//! How long to wait between polls.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// What a poll found. Times count from the engine's start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Poll {
    /// When it happened.
    pub at: Duration,
    /// How many jobs were asked for.
    pub asked: usize,
    /// How many were claimed.
    pub claimed: usize,
    /// Taken slots over all slots, from 0 to 1.
    pub utilization: f64,
}

/// Decides how long to wait before the next poll. Wakeups and due times come on top: polling is the floor.
pub trait PollingStrategy: Send + Sync + fmt::Debug {
    /// The wait after a poll.
    fn after_poll(&mut self, poll: Poll) -> Duration;

    /// Called when word of new work arrives; the poll follows at once.
    fn woken(&mut self);
}

/// The waits of the adaptive strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptiveWaits {
    /// After a wakeup.
    pub burst: Duration,
    /// The least in steady operation.
    pub normal_min: Duration,
    /// The most in steady operation.
    pub normal_max: Duration,
    /// When nothing has been found for long.
    pub deep_idle: Duration,
    /// How long without jobs is long.
    pub deep_idle_after: Duration,
    /// Empty polls before the wait begins to grow.
    pub idle_polls: u32,
}

impl Default for AdaptiveWaits {
    fn default() -> Self {
        Self {
            burst: Duration::from_millis(500),
            normal_min: Duration::from_secs(2),
            normal_max: Duration::from_secs(30),
            deep_idle: Duration::from_mins(1),
            deep_idle_after: Duration::from_mins(5),
            idle_polls: 3,
        }
    }
}

/// The default: bursts after a wakeup, backs off while idle, hurries while batches are full, eases off under load.
#[derive(Debug, Clone)]
pub struct AdaptivePolling {
    waits: AdaptiveWaits,
    /// Of the last ten polls, whether each found jobs.
    window: VecDeque<bool>,
    full_batches: u32,
    empty_polls: u32,
    last_found: Duration,
    burst: bool,
}

const WINDOW: usize = 10;
const FULL_BATCHES: u32 = 3;

impl AdaptivePolling {
    /// The strategy with these waits.
    pub fn new(waits: AdaptiveWaits) -> Self {
        Self {
            waits,
            window: VecDeque::with_capacity(WINDOW),
            full_batches: 0,
            empty_polls: 0,
            last_found: Duration::ZERO,
            burst: false,
        }
    }

    fn record(&mut self, poll: Poll) {
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(poll.claimed > 0);
        if poll.claimed > 0 {
            self.last_found = poll.at;
            self.empty_polls = 0;
        } else {
            self.empty_polls = self.empty_polls.saturating_add(1);
        }
        let full = poll.asked > 0 && poll.claimed >= poll.asked;
        self.full_batches = if full { self.full_batches.saturating_add(1) } else { 0 };
    }

    /// From the least wait to the most: the share of recent polls that found nothing sets the base.
    fn steady(&self) -> Duration {
        let found = self.window.iter().filter(|found| **found).count();
        let base = if found * 2 >= self.window.len() { self.waits.normal_min } else { self.waits.normal_min * 2 };
        let doublings = self.empty_polls.saturating_sub(self.waits.idle_polls).min(10);
        base.saturating_mul(1 << doublings)
    }
}

impl Default for AdaptivePolling {
    fn default() -> Self {
        Self::new(AdaptiveWaits::default())
    }
}

impl PollingStrategy for AdaptivePolling {
    fn after_poll(&mut self, poll: Poll) -> Duration {
        self.record(poll);
        if std::mem::take(&mut self.burst) {
            return self.waits.burst;
        }
        if poll.at.saturating_sub(self.last_found) >= self.waits.deep_idle_after {
            return self.waits.deep_idle;
        }
        if self.full_batches >= FULL_BATCHES {
            return self.waits.normal_min / 4;
        }
        // Full slots leave nothing to claim for: between half and one and a half times the wait.
        let load = 0.5 + poll.utilization.clamp(0.0, 1.0);
        self.steady().mul_f64(load).clamp(self.waits.normal_min, self.waits.normal_max)
    }

    fn woken(&mut self) {
        self.burst = true;
        self.empty_polls = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays polls at the given seconds and checks the last wait, in milliseconds.
    fn check(polls: &[(u64, usize, usize, f64)], woken: bool, expected_ms: u64) {
        let mut strategy = AdaptivePolling::default();
        let (last, before) = polls.split_last().unwrap();
        let poll = |(at, asked, claimed, utilization): (u64, usize, usize, f64)| Poll {
            at: Duration::from_secs(at),
            asked,
            claimed,
            utilization,
        };
        for earlier in before {
            strategy.after_poll(poll(*earlier));
        }
        if woken {
            strategy.woken();
        }
        assert_eq!(strategy.after_poll(poll(*last)), Duration::from_millis(expected_ms), "{polls:?}");
    }

    #[test]
    fn waits_follow_the_table() {
        // Jobs found, slots half full: the least wait.
        check(&[(1, 10, 5, 0.5)], false, 2_000);
        // The first wakeup brings a burst, once.
        check(&[(1, 10, 5, 0.5)], true, 500);
        // Nothing found, but not for long: twice the least wait.
        check(&[(1, 10, 0, 0.5)], false, 4_000);
        check(&[(1, 10, 0, 0.5), (2, 10, 0, 0.5), (3, 10, 0, 0.5)], false, 4_000);
        // From the fourth empty poll on the wait doubles, up to the most.
        let empty = |n: u64| (1..=n).map(|at| (at, 10, 0, 0.5)).collect::<Vec<_>>();
        check(&empty(4), false, 8_000);
        check(&empty(5), false, 16_000);
        check(&empty(6), false, 30_000);
        check(&empty(20), false, 30_000);
        // Five minutes without a job: deep idle, which a wakeup ends.
        check(&[(1, 10, 0, 0.0), (300, 10, 0, 0.0)], false, 60_000);
        check(&[(1, 10, 0, 0.0), (300, 10, 0, 0.0)], true, 500);
        // Three full batches in a row: a quarter of the least wait.
        check(&[(1, 10, 10, 0.5), (2, 10, 10, 0.5)], false, 2_000);
        check(&[(1, 10, 10, 0.5), (2, 10, 10, 0.5), (3, 10, 10, 0.5)], false, 500);
        // Load: an idle node with empty polls is quicker than a full one.
        check(&[(1, 10, 0, 0.0)], false, 2_000);
        check(&[(1, 10, 0, 1.0)], false, 6_000);
    }
}
