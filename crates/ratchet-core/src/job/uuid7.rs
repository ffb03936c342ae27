//! UUIDv7 with a counter: ids that sort in the order in which they were made.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

/// Where the generator gets its time and its random bits from.
pub trait TickSource: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn unix_ms(&self) -> u64;
    /// Waits until [`unix_ms`](Self::unix_ms) differs from `ms`, but at most five milliseconds.
    fn wait_for_tick(&self, ms: u64);
    /// Sixty-four random bits.
    fn random(&self) -> u64;
}

/// Makes UUIDv7s (RFC 9562, section 5.7) whose twelve bits of `rand_a` count within one millisecond.
///
/// When the counter is used up the generator waits for the next tick, so an id is never ahead of the clock. After the
/// clock was set back it goes on from the new time: uniqueness rests on the 62 random bits, only the order suffers.
pub struct Uuid7Generator {
    ticks: Box<dyn TickSource>,
    last: Mutex<Last>,
}

#[derive(Clone, Copy)]
struct Last {
    ms: u64,
    counter: u16,
}

const COUNTER_MAX: u16 = 0x0fff;

impl Uuid7Generator {
    /// A generator on the given source of ticks.
    pub fn new(ticks: impl TickSource + 'static) -> Self {
        Self { ticks: Box::new(ticks), last: Mutex::new(Last { ms: 0, counter: 0 }) }
    }

    /// The next id.
    pub fn next_uuid(&self) -> Uuid {
        let (ms, counter) = self.next_tick();
        let random = self.ticks.random();
        let high = (ms << 16) | 0x7000 | u64::from(counter);
        let low = (random & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        Uuid::from_u64_pair(high, low)
    }

    fn next_tick(&self) -> (u64, u16) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ms = self.ticks.unix_ms();
        if ms == last.ms && last.counter == COUNTER_MAX {
            self.ticks.wait_for_tick(ms);
            ms = self.ticks.unix_ms();
        }
        // A clock that stands still for longer than the wait wraps the counter; the random bits keep ids apart.
        let counter = if ms == last.ms { (last.counter + 1) & COUNTER_MAX } else { 0 };
        *last = Last { ms, counter };
        (ms, counter)
    }
}

impl fmt::Debug for Uuid7Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uuid7Generator").finish_non_exhaustive()
    }
}

/// The millisecond in which a UUIDv7 was made.
pub fn unix_ms_of(id: Uuid) -> u64 {
    id.as_u64_pair().0 >> 16
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    struct HandTicks {
        ms: Arc<AtomicU64>,
        random: AtomicU64,
        waiting_moves_clock: bool,
    }

    impl TickSource for HandTicks {
        fn unix_ms(&self) -> u64 {
            self.ms.load(Ordering::Relaxed)
        }
        fn wait_for_tick(&self, _ms: u64) {
            if self.waiting_moves_clock {
                self.ms.fetch_add(1, Ordering::Relaxed);
            }
        }
        fn random(&self) -> u64 {
            self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
        }
    }

    fn generator(waiting_moves_clock: bool) -> (Uuid7Generator, Arc<AtomicU64>) {
        let ms = Arc::new(AtomicU64::new(1_000));
        let ticks = HandTicks { ms: ms.clone(), random: AtomicU64::new(1), waiting_moves_clock };
        (Uuid7Generator::new(ticks), ms)
    }

    #[test]
    fn ids_of_one_millisecond_sort_in_order_and_the_next_waits_for_the_tick() {
        let (generator, _) = generator(true);
        let ids: Vec<_> = (0..5_000).map(|_| generator.next_uuid()).collect();
        assert!(ids.is_sorted());
        assert_eq!(unix_ms_of(ids[4_095]), 1_000);
        assert_eq!(unix_ms_of(ids[4_096]), 1_001, "the 4097th id of a millisecond belongs to the next");
        assert!(ids.iter().all(|id| id.get_version_num() == 7 && id.get_variant() == uuid::Variant::RFC4122));
    }

    #[test]
    fn after_a_step_back_ids_carry_the_new_time_and_stay_unique() {
        let (generator, ms) = generator(true);
        let before = generator.next_uuid();
        ms.store(400, Ordering::Relaxed);
        let after = generator.next_uuid();
        assert_eq!(unix_ms_of(after), 400);
        assert_ne!(before, after);
    }

    #[test]
    fn a_clock_that_stands_still_does_not_stop_the_generator() {
        let (generator, _) = generator(false);
        let mut ids: Vec<_> = (0..10_000).map(|_| generator.next_uuid()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 10_000);
    }
}
