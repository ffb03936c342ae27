use std::time::Duration;

use ratchet_core::{ErrorKind, FollowedBy, JobId, NodeId, Store, StoreError};

use crate::client::Client;
use crate::node::context::NodeContext;
use crate::observe::stats::Loop;
use crate::protect::authorizer::Action;
use crate::upkeep::heartbeat::Standing;
use crate::upkeep::lease::{self, Lease};
use crate::upkeep::{Upkeep, spread};

/// Children that are canceled in one transaction.
const TOGETHER: usize = 1_000;
/// Batches that are looked after at once.
const BATCHES: usize = 100;

impl Client {
    /// Cancels a batch with its children; says how many of these had not ended.
    ///
    /// The batch itself, and what depends on it, is canceled first and at once; no further children are accepted from then
    /// on. Its children follow, a thousand in a transaction. If this process ends before they all are, a node goes on.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if there is no batch of this id, also if there is a job of it.
    pub async fn cancel_batch(&self, id: JobId) -> Result<u64, StoreError> {
        if !self.may(Action::Cancel, id).await? || self.batch_record(id).await?.is_none() {
            let problem = "there is no such batch";
            return Err(StoreError::new(ErrorKind::NotFound, format!("canceling batch {id}"), problem));
        }
        self.cancel_parent(id).await?;
        self.cancel_children(id).await
    }

    /// Cancels the children of a batch that was canceled.
    pub(crate) async fn cancel_children(&self, id: JobId) -> Result<u64, StoreError> {
        let mut canceled = 0;
        let mut after = None;
        loop {
            let (some, next) = self.cancel_some_children(&**self.store(), id, after).await?;
            canceled += some;
            after = next;
            if after.is_none() {
                return Ok(canceled);
            }
        }
    }

    /// One transaction of it: how many were canceled, and where the next goes on.
    async fn cancel_some_children(
        &self,
        store: &dyn Store,
        id: JobId,
        after: Option<JobId>,
    ) -> Result<(u64, Option<JobId>), StoreError> {
        let portion = store.cancel_children(id, after, TOGETHER).await?;
        let was_canceled = |what: &FollowedBy| matches!(what, FollowedBy::Canceled { because } if *because == id);
        let canceled = portion.children.iter().filter(|child| was_canceled(&child.what)).map(|_| 1).sum();
        if !portion.children.is_empty() {
            self.followed(&portion.children, None);
            self.wake_for(&portion.children);
            self.wake().revoked();
        }
        Ok((canceled, portion.next))
    }
}

/// Goes on where whoever canceled a batch has ended too soon. Of all nodes one does, by a lease.
pub(crate) struct Canceler {
    node: NodeContext,
    lease: Lease,
}

impl Upkeep for Canceler {
    const LOOP: Loop = Loop::Batches;

    async fn look(&mut self, standing: &Standing) -> Result<Duration, StoreError> {
        // Asked first: most often there is none, and then nothing is written.
        let batches = self.node.store.canceling_batches(BATCHES).await?;
        if !batches.is_empty() && self.lease.hold(standing.node).await? {
            let done = self.cancel_all(standing.node, &batches).await;
            // Also if this node could not: another one may fare better.
            self.lease.release(standing.node).await;
            done?;
        }
        Ok(spread(self.node.timing.scan))
    }
}

impl Canceler {
    pub(crate) fn new(node: NodeContext) -> Self {
        // It is renewed before every transaction, so it has to outlast one.
        let ttl = node.timing.store_deadline + node.timing.scan;
        let lease = Lease { store: node.store.clone(), name: lease::BATCHES, ttl };
        Self { node, lease }
    }

    /// Cancels what is left of each; one that cannot be does not keep the others from it.
    async fn cancel_all(&self, node: NodeId, batches: &[JobId]) -> Result<(), StoreError> {
        let mut first_error = Ok(());
        for batch in batches {
            // Without an answer to this there is no database to go on with.
            if !self.lease.hold(node).await? {
                break;
            }
            match self.cancel_rest(node, *batch).await {
                Ok(canceled) => tracing::info!(%batch, canceled, "canceled the children that were left of a batch"),
                Err(error) => {
                    tracing::warn!(%batch, "the children that are left of a batch could not be canceled");
                    first_error = first_error.and(Err(error));
                }
            }
        }
        first_error
    }

    async fn cancel_rest(&self, node: NodeId, batch: JobId) -> Result<u64, StoreError> {
        let mut canceled = 0;
        let mut after = None;
        loop {
            let (some, next) = self.node.client.cancel_some_children(&*self.node.store, batch, after).await?;
            canceled += some;
            after = next;
            // If another node has it by now, that one goes on.
            if after.is_none() || !self.lease.hold(node).await? {
                return Ok(canceled);
            }
        }
    }
}
