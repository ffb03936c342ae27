use std::collections::BTreeMap;

use async_trait::async_trait;

use super::MemoryStore;
use crate::error::StoreError;
use crate::name::QueueName;
use crate::node::QueueRecord;
use crate::store::{QueueStore, StateCounts};

#[async_trait]
impl QueueStore for MemoryStore {
    async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let (mut tables, _) = self.open();
        Ok(tables.paused_queues.insert(queue.clone()))
    }

    async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let (mut tables, _) = self.open();
        Ok(tables.paused_queues.remove(queue))
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        let (tables, _) = self.open();
        let mut live: BTreeMap<QueueName, StateCounts> =
            tables.paused_queues.iter().map(|name| (name.clone(), StateCounts::new())).collect();
        for job in tables.jobs.values().filter(|job| !job.state.is_terminal()) {
            *live.entry(job.spec.queue.clone()).or_default().entry(job.state).or_default() += 1;
        }
        let record = |(name, live)| QueueRecord { paused: tables.paused_queues.contains(&name), name, live };
        Ok(live.into_iter().map(record).collect())
    }
}
