//! Situations in which stores' own tests begin.

use ratchet_core::schedule::NewSchedule;
use ratchet_core::schedule::OverlapPolicy;
use ratchet_core::{Claim, JobId, JobState};

use crate::harness::Harness;
use crate::schedules::{created, every_ten, found};

/// A schedule whose fires wait for each other, and the first of them, which runs.
#[derive(Debug)]
pub struct Queueing {
    harness: Harness,
    schedule: JobId,
    /// The fire that runs.
    pub running: Claim,
}

impl Queueing {
    /// Sets the scene.
    pub async fn new(harness: Harness) -> Self {
        let now = Some(harness.now().await);
        let new = NewSchedule { overlap: OverlapPolicy::Queue, next_fire: now, ..every_ten(&harness).await };
        let schedule = created(&harness, new).await.id;
        fire(&harness, schedule).await;
        let running = harness.claim_one().await;
        Self { harness, schedule, running }
    }

    /// Fires the schedule for its next instant, and says which job that is.
    pub async fn fire(&self) -> JobId {
        fire(&self.harness, self.schedule).await
    }

    /// Where a job stands.
    pub async fn state(&self, id: JobId) -> JobState {
        self.harness.state(id).await
    }
}

async fn fire(harness: &Harness, schedule: JobId) -> JobId {
    let one = found(harness, schedule).await;
    let firing = one.firing(one.next_fire.unwrap()).unwrap();
    harness.store.fire_schedules(std::slice::from_ref(&firing)).await.unwrap();
    firing.jobs[0].id
}
