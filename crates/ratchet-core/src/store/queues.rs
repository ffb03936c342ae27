use async_trait::async_trait;

use crate::error::StoreError;
use crate::name::QueueName;
use crate::node::QueueRecord;

/// Queues: pausing them, looking at them.
#[async_trait]
pub trait QueueStore: Send + Sync {
    /// Makes claims pass the queue by; `true` if it was not paused before. Jobs that run go on.
    async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError>;

    /// Lets the queue's jobs be claimed again; `true` if it was paused before.
    async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError>;

    /// Every queue that is paused or has live jobs, by name.
    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError>;
}
