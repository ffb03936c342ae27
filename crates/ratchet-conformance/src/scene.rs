//! Situations in which stores' own tests begin.

use ratchet_core::recurring::NewRecurring;
use ratchet_core::schedule::OverlapPolicy;
use ratchet_core::{Claim, JobId, JobState};

use crate::bench::Bench;
use crate::recurring::{created, every_ten, found};

/// A schedule whose fires wait for each other, and the first of them, which runs.
#[derive(Debug)]
pub struct Queueing {
    bench: Bench,
    schedule: JobId,
    /// The fire that runs.
    pub running: Claim,
}

impl Queueing {
    /// Sets the scene.
    pub async fn new(bench: Bench) -> Self {
        let now = Some(bench.now().await);
        let new = NewRecurring { overlap: OverlapPolicy::Queue, next_fire: now, ..every_ten(&bench).await };
        let schedule = created(&bench, new).await.id;
        fire(&bench, schedule).await;
        let running = bench.claim_one().await;
        Self { bench, schedule, running }
    }

    /// Fires the schedule for its next instant, and says which job that is.
    pub async fn fire(&self) -> JobId {
        fire(&self.bench, self.schedule).await
    }

    /// Where a job stands.
    pub async fn state(&self, id: JobId) -> JobState {
        self.bench.state(id).await
    }
}

async fn fire(bench: &Bench, schedule: JobId) -> JobId {
    let one = found(bench, schedule).await;
    let firing = one.firing(one.next_fire.unwrap()).unwrap();
    bench.store.fire_recurring(std::slice::from_ref(&firing)).await.unwrap();
    firing.jobs[0].id
}
