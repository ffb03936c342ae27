//! Random operations, the same on the store under test and on the store in memory: they must agree on every answer and
//! on every job.
//!
//! # No two instants come close
//!
//! The model's clock stands still during an operation and the store's runs, so an instant of the store is later than the
//! model's by what a slow database takes. No order and no comparison may depend on that. The rule that ensures it:
//!
//! - Before each operation both clocks advance by one [`TICK`] and a whole number of days, often none. What the store's
//!   clock has gained by itself is subtracted from its next advance. Operation n therefore happens n ticks after the start,
//!   plus whole days.
//! - Whatever lasts, lasts whole days: delays, due times and fires counted from the start, graces, leases, timeouts,
//!   retentions, and the interval of the boost.
//! - A day is a whole number of ticks, and more of them than a walk has operations.
//!
//! So each operation has its own time of day, the start has another, and every instant that follows from one of them has
//! the same time of day. Two instants that follow from different operations are at least a tick apart, and so is any sum
//! of durations from any limit. The one limit that is not in days is the quiet time of alerts; it ends in the middle between
//! two ticks. Times are compared by the tick, rounded and counted from each store's own start, so a statement may take up
//! to half a tick.
//!
//! What one operation sets to one instant has one order on both sides: a store writes in the order of ids, and a claim
//! orders equal times by id.

mod operation;
mod side;
mod ties;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use ratchet_core::clock::{ManualClock, later};
use ratchet_core::settlement::ALERT_QUIET;
use ratchet_core::store::{JobStore as _, MovableClock};
use ratchet_core::{JobRecord, MemoryStore};

use crate::harness::Harness;
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
/// By how much the time of day differs between two operations that follow each other.
const TICK: Duration = Duration::from_secs(160);

/// A number of days, the unit of all that lasts.
const fn days(count: u64) -> Duration {
    Duration::from_hours(24 * count)
}

const _: () = {
    let tick = TICK.as_millis();
    assert!(days(1).as_millis().is_multiple_of(tick), "a day is whole ticks");
    assert!((STEPS as u128) < days(1).as_millis() / tick, "each operation has its own time of day");
    assert!(STEPS_OF_TIES < STEPS, "so has each operation of the shorter walk");
    assert!(ALERT_QUIET.as_millis() % tick == tick / 2, "alerts are quiet until the middle between two ticks");
};

/// Where both clocks should be.
struct InStep {
    at: Timestamp,
}

impl InStep {
    async fn advance(&mut self, harness: &Harness, model: &MemoryStore, extra_days: u64) {
        let pause = TICK + days(extra_days);
        self.at = later(self.at, pause);
        model.advance_clock(pause);
        harness.advance_to(self.at).await;
    }
}

pub(crate) async fn random_operations_agree_with_the_model(harness: Harness) {
    let (rng, seed) = seeded();
    let model = MemoryStore::manual().0;
    // The model knows nothing of the harness's own node.
    harness.store.deregister(harness.node).await.unwrap();
    let model_side = Side::new(Arc::new(model.clone())).await;
    let store_side = Side::new(harness.store.clone()).await;
    let mut clocks = InStep { at: store_side.start() };
    let mut world = World::new(rng);
    for step in 0..STEPS {
        clocks.advance(&harness, &model, world.extra_days()).await;
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

pub(crate) async fn random_ties_agree_with_the_model(harness: Harness) {
    let (rng, seed) = seeded();
    harness.store.deregister(harness.node).await.unwrap();
    let store_side = Side::new(harness.store.clone()).await;
    // The same time for both: the ids of fired jobs follow from their instants.
    let start = store_side.start();
    let model = MemoryStore::new(Arc::new(ManualClock::at(start)));
    let model_side = Side::new(Arc::new(model.clone())).await;
    let mut clocks = InStep { at: start };
    let mut world = World::new(rng);
    let mut ties = Ties::default();
    for step in 0..STEPS_OF_TIES {
        clocks.advance(&harness, &model, world.extra_days()).await;
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
