use async_trait::async_trait;

use crate::error::StoreError;
use crate::name::QueueName;
use crate::node::QueueRecord;

/// Queues: pausing, resuming and listing them.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Excludes the queue from claims. Returns whether it was not paused before. Running jobs continue.
    async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError>;

    /// Lets the queue's jobs be claimed again. Returns whether it was paused.
    async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError>;

    /// Returns every queue that is paused or has live jobs, by name.
    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError>;
}
