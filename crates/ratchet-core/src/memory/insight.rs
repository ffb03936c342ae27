use std::collections::BTreeMap;

use async_trait::async_trait;

use super::MemoryStore;
use crate::error::StoreError;
use crate::flow::Edge;
use crate::id::JobId;
use crate::insight::{LaneRange, RecentEnd};
use crate::name::QueueName;
use crate::record::JobRecord;
use crate::state::JobState;
use crate::store::{InsightStore, LANES_MAX, WaitingLane};

#[async_trait]
impl InsightStore for MemoryStore {
    async fn waiting_lanes(&self) -> Result<Vec<WaitingLane>, StoreError> {
        let (tables, now) = self.open();
        let waits =
            |job: &&JobRecord| job.state == JobState::Pending && job.deferred_until.is_none_or(|until| until <= now);
        let mut lanes: Vec<WaitingLane> = Vec::new();
        for job in tables.jobs.values().filter(waits) {
            let lane = lane_of(job);
            let same = |known: &&mut WaitingLane| WaitingLane { head: lane.head, ..(**known).clone() } == lane;
            match lanes.iter_mut().find(same) {
                Some(known) => known.head = known.head.min(lane.head),
                None => lanes.push(lane),
            }
        }
        lanes.sort_by(|one, other| {
            let key = |lane: &WaitingLane| {
                (lane.probation, lane.resource.clone(), lane.queue.clone(), lane.kind.clone(), lane.priority)
            };
            key(one).cmp(&key(other))
        });
        lanes.truncate(LANES_MAX);
        Ok(lanes)
    }

    async fn count_waiting(&self, ranges: &[LaneRange], most: u64) -> Result<Vec<u64>, StoreError> {
        let (tables, now) = self.open();
        let count = |range: &LaneRange| {
            let within = |job: &&JobRecord| {
                job.state == JobState::Pending
                    && job.deferred_until.is_none_or(|until| until <= now)
                    && LaneRange::of(&lane_of(job), range.before) == *range
                    && range.before.is_none_or(|before| job.scheduled_time < before)
            };
            tables.jobs.values().filter(within).map(|_| 1).sum::<u64>().min(most)
        };
        Ok(ranges.iter().map(count).collect())
    }

    async fn recent_ends(&self, state: JobState, limit: usize) -> Result<Vec<RecentEnd>, StoreError> {
        let (tables, _) = self.open();
        let end = |job: &JobRecord| {
            let times = job.timing.map(|timing| (timing.queue_wait, timing.duration));
            Some(RecentEnd { queue: job.spec.queue.clone(), state, at: job.terminated_at?, times })
        };
        Ok(tables.jobs.values().rev().filter(|job| job.state == state).take(limit).filter_map(end).collect())
    }

    async fn count_ended(&self, state: JobState, most: u64) -> Result<u64, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.jobs.values().filter(|job| job.state == state).map(|_| 1).sum::<u64>().min(most))
    }

    async fn running_by_queue(&self) -> Result<BTreeMap<QueueName, u64>, StoreError> {
        let (tables, _) = self.open();
        let mut running = BTreeMap::new();
        for job in tables.jobs.values().filter(|job| job.state == JobState::Running) {
            *running.entry(job.spec.queue.clone()).or_default() += 1;
        }
        Ok(running)
    }

    async fn paused_queues(&self) -> Result<Vec<QueueName>, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.paused_queues.iter().cloned().collect())
    }

    async fn edges_to(&self, id: JobId) -> Result<Vec<Edge>, StoreError> {
        let (tables, _) = self.open();
        let mut edges: Vec<Edge> = tables.edges.values().filter(|edge| edge.child == id).cloned().collect();
        edges.sort_by_key(|edge| edge.order);
        Ok(edges)
    }
}

fn lane_of(job: &JobRecord) -> WaitingLane {
    WaitingLane {
        probation: job.crash_count > 0,
        resource: job.spec.resource.clone(),
        queue: job.spec.queue.clone(),
        kind: job.spec.kind.clone(),
        priority: job.spec.priority,
        head: job.scheduled_time,
    }
}
