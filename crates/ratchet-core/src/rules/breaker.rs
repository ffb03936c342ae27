//! The circuit breaker: when a service is left alone, and when it is tried again.
//!
//! Pure: time comes in as a duration since some fixed moment, and every call says how it ended.

use std::collections::VecDeque;
use std::time::Duration;

use crate::invalid::InvalidInput;

/// When a breaker opens, for how long, and what closes it again.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BreakerConfig {
    /// The share of failed calls, above 0 and at most 1, at which it opens.
    pub failure_rate: f64,
    /// How many of the last calls are looked at.
    pub window: usize,
    /// With fewer calls than this nothing is judged.
    pub minimum_calls: usize,
    /// How long it stays open before the service is tried again.
    pub open_for: Duration,
    /// How many calls try it; all of them must succeed.
    pub trials: usize,
}

impl BreakerConfig {
    /// For most services.
    pub const DEFAULT: Self = Self::of(0.5, 100, 5, 30, 3);
    /// Notices soon and tries again soon.
    pub const FAST: Self = Self::of(0.5, 20, 3, 10, 2);
    /// For what must not be cut off lightly.
    pub const CRITICAL: Self = Self::of(0.75, 200, 10, 60, 5);
    /// For what is outside one's own house, and takes its time to recover.
    pub const EXTERNAL_API: Self = Self::of(0.6, 50, 5, 60, 3);

    /// Most calls in a window.
    pub const WINDOW_MAX: usize = 10_000;

    const fn of(failure_rate: f64, window: usize, minimum_calls: usize, open_secs: u64, trials: usize) -> Self {
        Self { failure_rate, window, minimum_calls, open_for: Duration::from_secs(open_secs), trials }
    }

    /// The configuration of this name: `default`, `fast`, `critical` or `external-api`.
    pub fn profile(name: &str) -> Option<Self> {
        Some(match name {
            "default" => Self::DEFAULT,
            "fast" => Self::FAST,
            "critical" => Self::CRITICAL,
            "external-api" => Self::EXTERNAL_API,
            _ => return None,
        })
    }

    /// With this failure rate.
    #[must_use]
    pub fn failure_rate(mut self, rate: f64) -> Self {
        self.failure_rate = rate;
        self
    }

    /// Looking at so many of the last calls.
    #[must_use]
    pub fn window(mut self, calls: usize) -> Self {
        self.window = calls;
        self
    }

    /// Judging nothing before so many calls.
    #[must_use]
    pub fn minimum_calls(mut self, calls: usize) -> Self {
        self.minimum_calls = calls;
        self
    }

    /// Open for so long.
    #[must_use]
    pub fn open_for(mut self, time: Duration) -> Self {
        self.open_for = time;
        self
    }

    /// Tried by so many calls.
    #[must_use]
    pub fn trials(mut self, calls: usize) -> Self {
        self.trials = calls;
        self
    }

    /// Refuses what cannot work, naming the field and its limits.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let bad = |field: &str, problem: String| Err(InvalidInput::new(format!("breaker.{field}"), problem));
        if !(self.failure_rate > 0.0 && self.failure_rate <= 1.0) {
            return bad("failure_rate", format!("is {}; it must be above 0 and at most 1", self.failure_rate));
        }
        if self.window == 0 || self.window > Self::WINDOW_MAX {
            return bad("window", format!("is {}; use 1 to {}", self.window, Self::WINDOW_MAX));
        }
        if self.minimum_calls == 0 || self.minimum_calls > self.window {
            return bad("minimum_calls", format!("is {}; use 1 to the window of {}", self.minimum_calls, self.window));
        }
        if self.open_for < Duration::from_millis(1) || self.open_for > Duration::from_hours(24) {
            return bad("open_for", format!("is {:?}; use 1 ms to 24 hours", self.open_for));
        }
        if self.trials == 0 || self.trials > 1_000 {
            return bad("trials", format!("is {}; use 1 to 1000", self.trials));
        }
        Ok(())
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How a call ended, as far as the service is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// The service did what it should.
    Succeeded,
    /// It did not, and may be at fault: an error that may be retried, a timeout, a panic.
    Failed,
    /// It tells nothing of the service: canceled, put off, or an error that is not to be retried and so lies in the call.
    Neutral,
}

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// A few calls try whether the service is back.
    HalfOpen,
    /// No call goes through.
    Open,
}

impl BreakerState {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half-open",
            Self::Open => "open",
        }
    }
}

/// How many calls may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// As many as there are.
    All,
    /// A few, to try the service.
    AtMost(usize),
    /// None for so long; without a time, until somebody resets it.
    None(Option<Duration>),
}

/// The right to one call. It names the time that the call belongs to: what began before a breaker opened says nothing
/// about the trials that came after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(pub u64);

/// The breaker of one service.
#[derive(Debug, Clone)]
pub struct Breaker {
    config: BreakerConfig,
    stand: Stand,
    /// Grows with every change of the stand.
    era: u64,
}

#[derive(Debug, Clone)]
enum Stand {
    /// The last calls, `true` for a failed one.
    Closed { calls: VecDeque<bool>, failures: usize },
    /// Until then, or until somebody resets it.
    Open { until: Option<Duration> },
    /// Trials that have begun, and those of them that succeeded.
    HalfOpen { begun: usize, succeeded: usize },
}

impl Stand {
    fn closed() -> Self {
        Self::Closed { calls: VecDeque::new(), failures: 0 }
    }
}

impl Breaker {
    /// A closed breaker.
    pub fn new(config: BreakerConfig) -> Self {
        Self { config, stand: Stand::closed(), era: 0 }
    }

    /// Where it stands.
    pub fn state(&self, now: Duration) -> BreakerState {
        match self.stand {
            Stand::Closed { .. } => BreakerState::Closed,
            Stand::Open { until: Some(until) } if until <= now => BreakerState::HalfOpen,
            Stand::Open { .. } => BreakerState::Open,
            Stand::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// The share of failed calls among the last; `None` while it is not judging them.
    #[expect(clippy::cast_precision_loss, reason = "some thousands of calls")]
    pub fn failure_rate(&self) -> Option<f64> {
        match &self.stand {
            Stand::Closed { calls, failures } if !calls.is_empty() => Some(*failures as f64 / calls.len() as f64),
            _ => None,
        }
    }

    /// How many calls may begin now.
    pub fn admits(&self, now: Duration) -> Admission {
        match self.stand {
            Stand::Closed { .. } => Admission::All,
            Stand::Open { until: None } => Admission::None(None),
            Stand::Open { until: Some(until) } if until <= now => Admission::AtMost(self.config.trials),
            Stand::Open { until: Some(until) } => Admission::None(Some(until.saturating_sub(now))),
            Stand::HalfOpen { begun, .. } => Admission::AtMost(self.config.trials.saturating_sub(begun)),
        }
    }

    /// Begins a call, or says how long to wait.
    pub fn enter(&mut self, now: Duration) -> Result<Ticket, Duration> {
        if let Stand::Open { until: Some(until) } = self.stand
            && until <= now
        {
            self.change(Stand::HalfOpen { begun: 0, succeeded: 0 });
        }
        match &mut self.stand {
            Stand::Closed { .. } => Ok(Ticket(self.era)),
            Stand::HalfOpen { begun, .. } if *begun < self.config.trials => {
                *begun += 1;
                Ok(Ticket(self.era))
            }
            Stand::Open { until: Some(until) } => Err(until.saturating_sub(now)),
            Stand::HalfOpen { .. } | Stand::Open { until: None } => Err(self.config.open_for),
        }
    }

    /// Ends a call. What began in another era changes nothing.
    pub fn leave(&mut self, ticket: Ticket, end: CallEnd, now: Duration) {
        if ticket.0 != self.era {
            return;
        }
        match (&mut self.stand, end) {
            (Stand::Closed { .. }, CallEnd::Neutral) | (Stand::Open { .. }, _) => {}
            (Stand::Closed { calls, failures }, end) => {
                let failed = end == CallEnd::Failed;
                calls.push_back(failed);
                *failures += usize::from(failed);
                if calls.len() > self.config.window && calls.pop_front() == Some(true) {
                    *failures -= 1;
                }
                // Only a failure can open it: a success makes the share smaller.
                if failed && self.is_too_bad() {
                    self.open_until(now);
                }
            }
            // Another may try in its place.
            (Stand::HalfOpen { begun, .. }, CallEnd::Neutral) => *begun -= 1,
            (Stand::HalfOpen { succeeded, .. }, CallEnd::Succeeded) => {
                *succeeded += 1;
                if *succeeded >= self.config.trials {
                    self.change(Stand::closed());
                }
            }
            (Stand::HalfOpen { .. }, CallEnd::Failed) => self.open_until(now),
        }
    }

    /// Opens it until somebody resets it.
    pub fn open(&mut self) {
        self.change(Stand::Open { until: None });
    }

    /// Closes it and forgets the calls.
    pub fn reset(&mut self) {
        self.change(Stand::closed());
    }

    fn is_too_bad(&self) -> bool {
        let enough = matches!(&self.stand, Stand::Closed { calls, .. } if calls.len() >= self.config.minimum_calls);
        enough && self.failure_rate().is_some_and(|rate| rate >= self.config.failure_rate)
    }

    fn open_until(&mut self, now: Duration) {
        self.change(Stand::Open { until: Some(now + self.config.open_for) });
    }

    fn change(&mut self, stand: Stand) {
        self.stand = stand;
        self.era += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: BreakerConfig = BreakerConfig::of(0.5, 4, 2, 10, 2);

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// Calls that end at once: `s`ucceeded, `f`ailed, `n`eutral.
    fn call(breaker: &mut Breaker, ends: &str, now: u64) {
        for end in ends.chars() {
            let ticket = breaker.enter(secs(now)).unwrap();
            let end = match end {
                's' => CallEnd::Succeeded,
                'f' => CallEnd::Failed,
                _ => CallEnd::Neutral,
            };
            breaker.leave(ticket, end, secs(now));
        }
    }

    #[test]
    fn it_opens_at_the_rate_over_the_window() {
        let table = [
            ("f", BreakerState::Closed, "fewer than the minimum"),
            ("ff", BreakerState::Open, "all of them"),
            ("sf", BreakerState::Open, "half of them"),
            ("ssf", BreakerState::Closed, "a third"),
            ("sssff", BreakerState::Open, "half of the last four"),
            ("fsss", BreakerState::Closed, "a success never opens it"),
            ("nnnnnf", BreakerState::Closed, "neutral calls are not counted"),
            ("fsssssss", BreakerState::Closed, "the failure has left the window"),
        ];
        for (calls, state, why) in table {
            let mut breaker = Breaker::new(CONFIG);
            call(&mut breaker, calls, 0);
            assert_eq!(breaker.state(secs(0)), state, "{calls}: {why}");
        }
    }

    #[test]
    fn an_open_breaker_waits_then_admits_the_trials_and_no_more() {
        let mut breaker = Breaker::new(CONFIG);
        call(&mut breaker, "ff", 5);
        assert_eq!(breaker.admits(secs(8)), Admission::None(Some(secs(7))));
        assert_eq!(breaker.enter(secs(8)), Err(secs(7)));
        assert_eq!(breaker.admits(secs(15)), Admission::AtMost(2));
        let first = breaker.enter(secs(15)).unwrap();
        assert_eq!(breaker.admits(secs(15)), Admission::AtMost(1));
        let second = breaker.enter(secs(15)).unwrap();
        assert_eq!(breaker.admits(secs(16)), Admission::AtMost(0));
        assert!(breaker.enter(secs(16)).is_err());
        breaker.leave(first, CallEnd::Neutral, secs(17));
        assert_eq!(breaker.admits(secs(17)), Admission::AtMost(1), "what says nothing is no trial");
        let third = breaker.enter(secs(17)).unwrap();
        breaker.leave(second, CallEnd::Succeeded, secs(17));
        assert_eq!(breaker.state(secs(17)), BreakerState::HalfOpen);
        breaker.leave(third, CallEnd::Succeeded, secs(17));
        assert_eq!(breaker.state(secs(17)), BreakerState::Closed);
        call(&mut breaker, "f", 17);
        assert_eq!(breaker.state(secs(17)), BreakerState::Closed, "it begins anew");
    }

    #[test]
    fn one_failed_trial_opens_it_again() {
        let mut breaker = Breaker::new(CONFIG);
        call(&mut breaker, "ff", 0);
        call(&mut breaker, "sf", 10);
        assert_eq!(breaker.admits(secs(10)), Admission::None(Some(secs(10))));
    }

    #[test]
    fn what_began_before_says_nothing_about_the_trials() {
        let mut breaker = Breaker::new(CONFIG);
        let before = [breaker.enter(secs(0)).unwrap(), breaker.enter(secs(0)).unwrap()];
        call(&mut breaker, "ff", 0);
        let trial = breaker.enter(secs(10)).unwrap();
        breaker.leave(before[0], CallEnd::Failed, secs(11));
        breaker.leave(before[1], CallEnd::Neutral, secs(11));
        assert_eq!(breaker.state(secs(11)), BreakerState::HalfOpen);
        assert_eq!(breaker.admits(secs(11)), Admission::AtMost(1));
        breaker.leave(trial, CallEnd::Succeeded, secs(11));
    }

    #[test]
    fn by_hand_it_stays_open_until_it_is_reset() {
        let mut breaker = Breaker::new(CONFIG);
        let before = breaker.enter(secs(0)).unwrap();
        breaker.open();
        assert_eq!(breaker.admits(secs(1_000_000)), Admission::None(None));
        assert_eq!(breaker.enter(secs(1_000_000)), Err(secs(10)));
        breaker.leave(before, CallEnd::Succeeded, secs(1));
        assert_eq!(breaker.state(secs(1)), BreakerState::Open);
        breaker.reset();
        assert_eq!(breaker.admits(secs(1)), Admission::All);
    }

    #[test]
    fn what_cannot_work_is_refused_by_field() {
        let table = [
            (CONFIG.failure_rate(0.0), "breaker.failure_rate"),
            (CONFIG.failure_rate(1.1), "breaker.failure_rate"),
            (CONFIG.failure_rate(f64::NAN), "breaker.failure_rate"),
            (CONFIG.window(0), "breaker.window"),
            (CONFIG.window(10_001), "breaker.window"),
            (CONFIG.minimum_calls(5), "breaker.minimum_calls"),
            (CONFIG.open_for(Duration::ZERO), "breaker.open_for"),
            (CONFIG.trials(0), "breaker.trials"),
        ];
        for (config, field) in table {
            assert_eq!(config.check().unwrap_err().field(), field);
        }
        for name in ["default", "fast", "critical", "external-api"] {
            BreakerConfig::profile(name).unwrap().check().unwrap();
        }
        assert_eq!(BreakerConfig::profile("slow"), None);
    }
}
