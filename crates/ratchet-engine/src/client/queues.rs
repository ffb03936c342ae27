//! Pausing, resuming and listing queues.

use ratchet_core::node::QueueRecord;
use ratchet_core::{Priority, QueueName, StoreError};

use crate::client::Client;
use crate::protect::authorizer::{Action, Target};

impl Client {
    /// Pauses a queue on every node; `true` if it was not paused before. Running jobs go on.
    pub async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.demand(Action::Pause, &Target::Queue(queue))?;
        self.inner.store.pause_queue(queue).await
    }

    /// Lets the queue's jobs run again; `true` if it was paused before.
    pub async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.demand(Action::Resume, &Target::Queue(queue))?;
        let resumed = self.inner.store.resume_queue(queue).await?;
        self.wake().work();
        self.announce(Priority::default());
        Ok(resumed)
    }

    /// Returns every queue that is paused or has live jobs.
    pub async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.demand(Action::Read, &Target::Queues)?;
        self.inner.store.queues().await
    }
}
