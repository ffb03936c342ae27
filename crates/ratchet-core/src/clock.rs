//! Time as an argument.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

/// Tells the time. The engine and the in-memory store ask it; database stores use their database's clock.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present time.
    fn now(&self) -> Timestamp;
}

/// A clock that a test holds in its hand: it moves only when told to.
///
/// ```
/// use std::time::Duration;
/// use ratchet_core::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::UNIX_EPOCH);
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().as_second(), 60);
/// ```
#[derive(Debug)]
pub struct ManualClock {
    micros: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { micros: AtomicI64::new(now.as_microsecond()) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let micros = i64::try_from(by.as_micros()).expect("a test does not advance by 290,000 years");
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.micros.load(Ordering::SeqCst)).expect("a test stays within jiff's range")
    }
}

/// The last time that can be stored: in the year 9999.
pub fn last_time() -> Timestamp {
    Timestamp::from_microsecond(Timestamp::MAX.as_microsecond() - 1_000_000).expect("it is before the last")
}

/// `at` plus `by`, cut to the range of time that can be stored.
pub fn later(at: Timestamp, by: Duration) -> Timestamp {
    let sum = jiff::SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok());
    sum.map_or_else(last_time, |sum| sum.min(last_time()))
}

/// `at` minus `by`, cut to the times since 1970.
pub fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    let rest = jiff::SignedDuration::try_from(by).ok().and_then(|by| at.checked_sub(by).ok());
    rest.map_or(Timestamp::UNIX_EPOCH, |rest| rest.max(Timestamp::UNIX_EPOCH))
}

/// `at` cut to the precision in which times are stored.
pub fn to_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).expect("a time cut to microseconds is within the same range")
}

/// How long after `from` `to` is; zero if it is not.
pub fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}
