//! Random tests that can be repeated.

use fastrand::Rng;

/// Prints the seed if the test that holds it panics.
pub(crate) struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat this run: RATCHET_SEED={}", self.0);
        }
    }
}

/// Random numbers, from `RATCHET_SEED` if it is set.
pub(crate) fn seeded() -> (Rng, Seed) {
    let given = std::env::var("RATCHET_SEED").ok();
    let seed = given.map_or_else(|| fastrand::u64(..), |text| text.parse().expect("RATCHET_SEED is a number"));
    (Rng::with_seed(seed), Seed(seed))
}
