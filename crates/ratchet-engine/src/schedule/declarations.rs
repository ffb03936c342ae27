use std::sync::Arc;
use std::time::Duration;

use ratchet_core::schedule::NewSchedule;
use ratchet_core::store::Declared;
use ratchet_core::{ErrorKind, NodeId, Store, StoreError};
use tokio::time::Instant;

/// The schedules that the code of this node declares.
pub(crate) struct Declarations {
    store: Arc<dyn Store>,
    own: Vec<NewSchedule>,
    /// The incarnation for which they were declared last.
    node: NodeId,
    /// When to look once more whether they are there.
    again: Option<Instant>,
}

/// Longer than it takes another node to retire what it believes to be unwanted.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// How soon to try again what failed.
const TRY_AGAIN: Duration = Duration::from_secs(5);

impl Declarations {
    /// Makes sure that they are there, as the code says.
    pub(crate) async fn declare(
        store: Arc<dyn Store>,
        own: Vec<NewSchedule>,
        node: NodeId,
    ) -> Result<Self, StoreError> {
        let declarations = Self { store, own, node, again: None };
        declarations.declare_all(declarations.own.clone()).await?;
        Ok(declarations)
    }

    /// Declares them again, if the node goes on as a new incarnation: while nobody heard of it they may have been retired.
    ///
    /// What another node has declared otherwise meanwhile stays: who started last is right, and that was not this one.
    pub(super) async fn look(&mut self, node: NodeId) -> Result<(), StoreError> {
        let now = Instant::now();
        let reborn = node != self.node;
        if reborn {
            self.node = node;
            self.again = Some(now);
        }
        if self.own.is_empty() || self.again.is_none_or(|again| now < again) {
            return Ok(());
        }
        self.again = Some(now + TRY_AGAIN);
        self.declare_again().await?;
        // Once more: a node that had already seen this one dead may just be about to retire them.
        self.again = reborn.then(|| now + LOOK_AGAIN);
        Ok(())
    }

    async fn declare_again(&self) -> Result<(), StoreError> {
        let ids: Vec<_> = self.own.iter().map(|new| new.id).collect();
        let found = self.store.find_schedules(&ids).await?;
        let is_ours =
            |new: &&NewSchedule| found.iter().find(|one| one.id == new.id).is_none_or(|one| one.is_as_declared(new));
        self.declare_all(self.own.iter().filter(is_ours).cloned().collect()).await
    }

    async fn declare_all(&self, mut all: Vec<NewSchedule>) -> Result<(), StoreError> {
        const TRIES: u32 = 5;
        if all.is_empty() {
            return Ok(());
        }
        let now = self.store.database_time().await?;
        for new in &mut all {
            new.next_fire = new.schedule.next_after(now);
        }
        let mut tries = 1;
        let declared = loop {
            match self.store.declare_schedules(&all).await {
                // Another node declares the same at this moment.
                Err(error) if *error.kind() == ErrorKind::Transient && tries < TRIES => {
                    tokio::time::sleep(Duration::from_millis(20) * tries).await;
                    tries += 1;
                }
                other => break other?,
            }
        };
        for (new, declared) in all.iter().zip(declared).filter(|(_, declared)| *declared != Declared::Unchanged) {
            tracing::info!(schedule = %new.id, job.kind = %new.spec.kind, ?declared, "declared a schedule");
        }
        Ok(())
    }
}
