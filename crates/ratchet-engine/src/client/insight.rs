//! Looking at queues and at jobs that do not run; and telling of the queues, again and again, to those who watch.

use std::collections::BTreeSet;
use std::time::Duration;

use ratchet_core::claim::Boost;
use ratchet_core::explain::{Explanation, LocalNode, Reason, WithheldScope, explain};
use ratchet_core::insight::{COUNTED_MAX, QueueBacklog, QueueHealth, queue_health, waiting_by_queue};
use ratchet_core::{JobId, JobState, QueueName, StoreError};

use crate::client::Client;
use crate::node::context::NodeContext;
use crate::node::ratchet::Ratchet;
use crate::observe::metrics::names;
use crate::observe::stats::Loop;
use crate::protect::authorizer::{Action, Target};
use crate::upkeep::heartbeat::Standing;
use crate::upkeep::service_watch::ServiceWatch;
use crate::upkeep::{Upkeep, spread};

impl Client {
    /// How every queue is: what waits and for how long, what runs, and how it went lately. It costs as much with ten million
    /// jobs as with a thousand.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn queue_health(&self) -> Result<Vec<QueueHealth>, StoreError> {
        self.demand(Action::Read, &Target::Queues)?;
        queue_health(&**self.store()).await
    }

    /// Why a job does not run now: everything that holds it up, in the order in which a node asks; `None` if there is no such
    /// job. What nodes have to do with it is known from their last heartbeats; a [node](Ratchet::explain) knows itself better.
    ///
    /// A caller who may not read the lists of queues, nodes, services or resources is told which of them holds the job up, and
    /// no more ([`Reason::Withheld`]).
    ///
    /// # Errors
    /// If the store cannot be asked.
    ///
    /// ```
    /// # use ratchet_core::MemoryStore;
    /// # use ratchet_engine::{Client, Failure, Job, JobContext};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Greet;
    /// # impl Job for Greet {
    /// #     const KIND: &'static str = "greet";
    /// #     type Output = ();
    /// #     async fn run(self, _: JobContext) -> Result<(), Failure> { Ok(()) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Client::new(MemoryStore::manual().0);
    /// let job = client.enqueue(Greet).submit().await?;
    /// let explanation = client.explain(job.id()).await?.expect("it is there");
    /// let why = explanation.reasons[0].to_string();
    /// assert_eq!(why, "no node lives; start one that runs greet in queue default");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn explain(&self, id: JobId) -> Result<Option<Explanation>, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(None);
        }
        let mut told = explain(&**self.store(), id, &LocalNode::default()).await?;
        for reason in told.iter_mut().flat_map(|told| &mut told.reasons) {
            if let Some(beyond) = reason.beyond().filter(|beyond| !self.allows(Action::Read, &list_of(*beyond))) {
                *reason = Reason::Withheld { beyond };
            }
        }
        Ok(told)
    }
}

/// The list that tells what a reason tells.
fn list_of(beyond: WithheldScope) -> Target<'static> {
    match beyond {
        WithheldScope::Queue => Target::Queues,
        WithheldScope::Service => Target::Services,
        WithheldScope::Resource => Target::Resources,
        WithheldScope::Nodes => Target::Nodes,
    }
}

impl Ratchet {
    /// Why a job does not run now, as [`Client::explain`] tells it, with what this node knows: its ageing, and how its slots and
    /// circuit breakers are at this moment.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn explain(&self, id: JobId) -> Result<Option<Explanation>, StoreError> {
        let NodeDefaults { boost, services } = self.known();
        let node = Some((self.node_id(), services.vitals()));
        explain(&**self.store(), id, &LocalNode { boost: *boost, node }).await
    }
}

/// What a node knows of itself that explanations need.
pub(crate) struct NodeDefaults {
    pub(crate) boost: Boost,
    pub(crate) services: ServiceWatch,
}

/// Tells how deep the queues are.
pub(crate) struct Gauges {
    node: NodeContext,
    /// Queues that had jobs: those that are empty now are reported as such, as long as there are not too many.
    queues: BTreeSet<QueueName>,
}

/// Queues that are remembered. Where their names come and go, a node does not report all that there ever were.
const QUEUES_MAX: usize = 1_000;

impl Gauges {
    pub(crate) fn new(node: NodeContext) -> Self {
        Self { node, queues: BTreeSet::new() }
    }

    async fn record(&mut self) -> Result<(), StoreError> {
        let waiting = waiting_by_queue(&*self.node.store).await?;
        let dead_letters = self.node.store.count_ended(JobState::Failed, COUNTED_MAX).await?;
        self.queues.extend(waiting.keys().cloned());
        for queue in &self.queues {
            let QueueBacklog { depth, oldest } = waiting.get(queue).copied().unwrap_or_default();
            let labels = [("queue", queue.as_str())];
            self.node.meter().gauge(names::QUEUE_DEPTH, &labels, number(depth.count));
            self.node.meter().gauge(names::QUEUE_OLDEST, &labels, oldest.unwrap_or_default().as_secs_f64());
        }
        self.node.meter().gauge(names::DEAD_LETTERS, &[], number(dead_letters));
        if self.queues.len() > QUEUES_MAX {
            self.queues.retain(|queue| waiting.contains_key(queue));
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts end long before that")]
fn number(count: u64) -> f64 {
    count as f64
}

impl Upkeep for Gauges {
    const LOOP: Loop = Loop::Gauges;

    async fn look(&mut self, _standing: &Standing) -> Result<Duration, StoreError> {
        self.record().await?;
        Ok(spread(self.node.timing.gauges))
    }
}

#[cfg(test)]
mod tests {
    use ratchet_core::MemoryStore;

    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Waits;

    impl crate::Job for Waits {
        const KIND: &'static str = "waits";
        type Output = ();
        async fn run(self, _ctx: crate::JobContext) -> Result<(), crate::Failure> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn queues_that_come_and_go_are_forgotten_and_a_few_empty_ones_are_not() {
        let store = MemoryStore::manual().0;
        Client::new(store.clone()).enqueue(Waits).queue("full").submit().await.unwrap();
        let mut gauges = Gauges::new(NodeContext::for_test(store, crate::new_node_id()));
        let empty = |count: usize| (0..count).map(|n| QueueName::new(format!("empty-{n}")).unwrap());
        gauges.queues.extend(empty(QUEUES_MAX - 1));
        gauges.record().await.unwrap();
        assert_eq!(gauges.queues.len(), QUEUES_MAX);
        gauges.queues.extend(empty(QUEUES_MAX));
        gauges.record().await.unwrap();
        assert_eq!((gauges.queues.len(), gauges.queues.first().unwrap().as_str()), (1, "full"));
    }
}
