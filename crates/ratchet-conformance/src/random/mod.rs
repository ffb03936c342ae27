//! Random operations, the same on the store under test and on the store in memory: they must agree on every answer and
//! on every job.
//!
//! Both clocks move in step, by a minute and a millisecond before each operation; what a clock that runs has gained
//! meanwhile is taken off its next step, however slow the machine. All delays are whole minutes, so two operations never
//! fall on one instant, no limit falls between what a slow database adds, and times can be compared by the minute, counted
//! from each store's own start.

mod operation;
mod side;
mod ties;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use ratchet_core::clock::ManualClock;
use ratchet_core::store::{JobStore as _, MovableClock};
use ratchet_core::{JobRecord, MemoryStore};

use crate::bench::{Bench, mins};
use operation::World;
use side::Side;
use ties::{Next, Ties};

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
/// How many steps of a walk through what ties jobs together: each looks at much.
const STEPS_OF_TIES: usize = 150;
/// The step of both clocks.
const TICK: Duration = Duration::from_millis(60_001);

/// Where both clocks should be.
struct InStep {
    at: Timestamp,
}

impl InStep {
    async fn advance(&mut self, bench: &Bench, model: &MemoryStore, pause: Duration) {
        let gained = Duration::try_from(bench.now().await.duration_since(self.at)).unwrap_or_default();
        self.at = self.at.checked_add(pause).expect("some days from now");
        model.advance_clock(pause);
        bench.advance(pause.saturating_sub(gained));
    }
}

pub(crate) async fn random_operations_agree_with_the_model(bench: Bench) {
    let (rng, seed) = seeded();
    let model = MemoryStore::manual().0;
    // The model knows nothing of the bench's own node.
    bench.store.deregister(bench.node).await.unwrap();
    let model_side = Side::new(Arc::new(model.clone())).await;
    let store_side = Side::new(bench.store.clone()).await;
    let mut clocks = InStep { at: store_side.start() };
    let mut world = World::new(rng);
    for step in 0..STEPS {
        let pause = TICK + mins(world.extra_minutes());
        clocks.advance(&bench, &model, pause).await;
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

pub(crate) async fn random_ties_agree_with_the_model(bench: Bench) {
    let (rng, seed) = seeded();
    bench.store.deregister(bench.node).await.unwrap();
    let store_side = Side::new(bench.store.clone()).await;
    // The same time for both: the ids of fired jobs follow from their instants.
    let start = store_side.start();
    let model = MemoryStore::new(Arc::new(ManualClock::at(start)));
    let model_side = Side::new(Arc::new(model.clone())).await;
    let mut clocks = InStep { at: start };
    let mut world = World::new(rng);
    let mut ties = Ties::default();
    for step in 0..STEPS_OF_TIES {
        let pause = TICK + mins(world.extra_minutes());
        clocks.advance(&bench, &model, pause).await;
        let jobs: Vec<JobRecord> = model.find(&world.jobs).await.unwrap();
        let next = ties.next(&mut world, &jobs, start);
        let (expected, actual) = match &next {
            Next::Plain(operation) => {
                let expected = model_side.perform(operation).await;
                let actual = store_side.perform(operation).await;
                world.learn(operation, &expected);
                (expected, actual)
            }
            Next::Tied(tie) => {
                let expected = model_side.tie(tie).await;
                ties.learn(tie, &mut world);
                (expected, store_side.tie(tie).await)
            }
        };
        assert_eq!(actual, expected, "step {step}, seed {seed:?}: {next:?}");
        world.jobs.extend(model_side.fired(&ties).await);
        world.jobs.sort();
        world.jobs.dedup();
        let expected = model_side.ties(&ties, &world).await;
        let actual = store_side.ties(&ties, &world).await;
        if actual != expected {
            let differs = actual.iter().zip(&expected).find(|(actual, expected)| actual != expected);
            panic!("step {step}, seed {seed:?}: after {next:?}\n(store, model) differ: {differs:#?}");
        }
    }
}
