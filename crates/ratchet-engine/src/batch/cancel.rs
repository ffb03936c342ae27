use std::sync::Arc;
use std::time::Duration;

use ratchet_core::{FollowedBy, JobId, NodeId, Store, StoreError};
use tokio::sync::watch;

use crate::client::Client;
use crate::deadline::within;
use crate::pulse::Standing;

/// Children that are cancelled in one transaction.
const TOGETHER: usize = 1_000;
/// Batches that are looked after at once.
const BATCHES: usize = 100;

impl Client {
    /// Cancels a batch with its children; says how many of these had not ended.
    ///
    /// The batch itself, and what depends on it, is cancelled first and at once; no further children are accepted from then
    /// on. Its children follow, a thousand in a transaction. If this process ends before they all are, a node goes on.
    pub async fn cancel_batch(&self, id: JobId) -> Result<u64, StoreError> {
        self.cancel_parent(id).await?;
        self.cancel_children(id).await
    }

    /// Cancels the children of a batch that was cancelled.
    pub(crate) async fn cancel_children(&self, id: JobId) -> Result<u64, StoreError> {
        let mut canceled = 0;
        let mut after = None;
        loop {
            let portion = self.store().cancel_children(id, after, TOGETHER).await?;
            let was_canceled = |what: &FollowedBy| matches!(what, FollowedBy::Canceled { because } if *because == id);
            canceled += portion.children.iter().filter(|child| was_canceled(&child.what)).map(|_| 1).sum::<u64>();
            if !portion.children.is_empty() {
                self.followed(&portion.children, None);
                self.wake().revoked();
            }
            after = portion.next;
            if after.is_none() {
                return Ok(canceled);
            }
        }
    }
}

/// Goes on where whoever cancelled a batch has ended too soon. Of all nodes one does, by a lease.
pub(crate) struct Canceler {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) scan: Duration,
    pub(crate) deadline: Duration,
}

const LEASE: &str = "batches";

impl Canceler {
    /// Looks for batches until the task is dropped.
    pub(crate) async fn run(self) {
        loop {
            tokio::time::sleep(self.scan + Duration::from_millis(fastrand::u64(0..=100)).min(self.scan / 10)).await;
            let standing = self.standing.borrow().clone();
            if standing.fenced {
                continue;
            }
            if let Err(error) = self.look(standing.node).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "cancelling children of batches failed");
            }
        }
    }

    async fn look(&self, node: NodeId) -> Result<(), StoreError> {
        // Asked first: most often there is none, and then nothing is written.
        let asked = self.store.canceling_batches(BATCHES);
        let batches = within(self.deadline, "looking for batches that are being cancelled", asked).await?;
        if batches.is_empty() {
            return Ok(());
        }
        let leased = self.store.acquire_lease(LEASE, node, self.scan * 3);
        if !within(self.deadline, "taking the lease of batches", leased).await? {
            return Ok(());
        }
        for batch in batches {
            let canceled = self.client.cancel_children(batch).await?;
            tracing::info!(%batch, canceled, "cancelled the children that were left of a batch");
        }
        let released = self.store.release_lease(LEASE, node);
        within(self.deadline, "releasing the lease of batches", released).await
    }
}
