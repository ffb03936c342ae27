//! Random operations, the same on the store under test and on the store in memory: they must agree on every answer and
//! on every job.
//!
//! Both clocks move in step, by a minute and a millisecond before each operation. All delays are whole minutes, so two
//! operations never fall on one instant, no limit falls between what a slow database adds, and times can be compared by
//! the minute, counted from each store's own start.

mod operation;
mod side;

use std::time::Duration;

use fastrand::Rng;
use ratchet_core::MemoryStore;
use ratchet_core::store::MovableClock;

use crate::bench::{Bench, mins};
use operation::World;
use side::Side;

/// Prints the seed if the case that holds it panics.
#[derive(Debug)]
pub(crate) struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat this run: RATCHET_SEED={}", self.0);
        }
    }
}

/// A random source with a new seed, or with the one that `RATCHET_SEED` gives.
pub(crate) fn seeded() -> (Rng, Seed) {
    let given = std::env::var("RATCHET_SEED").ok();
    let seed = given.map_or_else(|| fastrand::u64(..), |text| text.parse().expect("RATCHET_SEED is a number"));
    (Rng::with_seed(seed), Seed(seed))
}

/// How many operations one walk takes.
const STEPS: usize = 400;
/// The step of both clocks.
const TICK: Duration = Duration::from_millis(60_001);

pub(crate) async fn random_operations_agree_with_the_model(bench: Bench) {
    let (rng, seed) = seeded();
    let model = MemoryStore::manual().0;
    // The model knows nothing of the bench's own node.
    bench.store.deregister(bench.node).await.unwrap();
    let model_side = Side::new(std::sync::Arc::new(model.clone())).await;
    let store_side = Side::new(bench.store.clone()).await;
    let mut world = World::new(rng);
    for step in 0..STEPS {
        let pause = TICK + mins(world.extra_minutes());
        bench.advance(pause);
        model.advance_clock(pause);
        let operation = world.next_operation();
        let expected = model_side.perform(&operation).await;
        let actual = store_side.perform(&operation).await;
        assert_eq!(actual, expected, "step {step}, seed {seed:?}: {operation:?}");
        world.learn(&operation, &expected);
        let expected = model_side.everything(&world).await;
        let actual = store_side.everything(&world).await;
        if actual != expected {
            let differs = actual.iter().zip(&expected).find(|(actual, expected)| actual != expected);
            panic!("step {step}, seed {seed:?}: after {operation:?}\n(store, model) differ: {differs:#?}");
        }
    }
}
