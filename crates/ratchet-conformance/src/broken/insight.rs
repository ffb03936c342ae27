use std::collections::BTreeMap;

use ratchet_core::flow::Edge;
use ratchet_core::insight::{LaneRange, RecentEnd};
use ratchet_core::store::{StoreDecorator, WaitingLane};
use ratchet_core::{JobId, JobState, QueueName, Store, StoreError};

use super::{Flaw, Layer};

#[derive(Debug)]
pub(super) enum Insight {}

impl StoreDecorator for Layer<Insight> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn waiting_lanes(&self) -> Result<Vec<WaitingLane>, StoreError> {
        let mut lanes = self.good.waiting_lanes().await?;
        if self.has(Flaw::MissesLanes) {
            lanes.pop();
        }
        Ok(lanes)
    }

    async fn count_waiting(&self, ranges: &[LaneRange], most: u64) -> Result<Vec<u64>, StoreError> {
        let mut ranges = ranges.to_vec();
        if self.has(Flaw::CountsAllTimes) {
            for range in &mut ranges {
                range.before = None;
            }
        }
        let most = if self.has(Flaw::CountsOn) { u64::MAX / 2 } else { most };
        self.good.count_waiting(&ranges, most).await
    }

    async fn recent_ends(&self, state: JobState, limit: usize) -> Result<Vec<RecentEnd>, StoreError> {
        let state = if self.has(Flaw::MixesEnds) { JobState::Succeeded } else { state };
        self.good.recent_ends(state, limit).await
    }

    async fn count_ended(&self, state: JobState, most: u64) -> Result<u64, StoreError> {
        let most = if self.has(Flaw::CountsOn) { u64::MAX / 2 } else { most };
        self.good.count_ended(state, most).await
    }

    async fn running_by_queue(&self) -> Result<BTreeMap<QueueName, u64>, StoreError> {
        if self.has(Flaw::SeesNothingRun) {
            return Ok(BTreeMap::new());
        }
        self.good.running_by_queue().await
    }

    async fn paused_queues(&self) -> Result<Vec<QueueName>, StoreError> {
        if self.has(Flaw::IgnoresQueuePause) {
            return Ok(Vec::new());
        }
        self.good.paused_queues().await
    }

    async fn edges_to(&self, id: JobId) -> Result<Vec<Edge>, StoreError> {
        let edges = self.good.edges_to(id).await?;
        Ok(if self.has(Flaw::LosesEdges) { Vec::new() } else { edges })
    }
}
