use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::schedule::{ArchiveReason, ScheduleFilter, ScheduleRecord};
use ratchet_core::{JobId, NodeId, Store, StoreError};
use tokio::time::Instant;

use crate::client::Client;
use crate::observe::events::JobEventKind;
use crate::upkeep::lease::Lease;

/// Ends declared schedules that no live node declares any more.
///
/// A node says in its registration what it declares. One that is away for a while, because it is restarted, suspended or cut
/// off, is to find its schedules when it is back: a schedule is retired only after this node has seen nobody declare it,
/// look after look, for [`RETIRE_AFTER`].
pub(super) struct Retirement {
    store: Arc<dyn Store>,
    client: Client,
    lease: Lease,
    next: Instant,
    /// Schedules that nobody declares, and since when.
    unwanted: BTreeMap<JobId, Instant>,
}

const LOOK_EVERY: Duration = Duration::from_mins(1);
const RETIRE_AFTER: Duration = Duration::from_mins(10);
const TOGETHER: usize = 100;

impl Retirement {
    pub(super) fn new(store: Arc<dyn Store>, client: Client, lease: Lease) -> Self {
        Self { store, client, lease, next: Instant::now() + LOOK_EVERY, unwanted: BTreeMap::new() }
    }

    /// Looks, if it is time to.
    pub(super) async fn look(&mut self, node: NodeId) -> Result<(), StoreError> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + LOOK_EVERY;
        let unwanted = self.unwanted().await?;
        let since = |id: &JobId| self.unwanted.get(id).copied().unwrap_or(now);
        self.unwanted = unwanted.iter().map(|one| (one.id, since(&one.id))).collect();
        let over = |one: &&ScheduleRecord| now - self.unwanted[&one.id] >= RETIRE_AFTER;
        let over: Vec<_> = unwanted.iter().filter(over).collect();
        if over.is_empty() || !self.lease.hold(node).await? {
            return Ok(());
        }
        for one in over {
            // A node that comes back at this moment has declared it just now, and then it stays.
            if self.store.cancel_schedule(one.id, ArchiveReason::Retired, Some(RETIRE_AFTER)).await? {
                tracing::info!(schedule = %one.id, job.kind = %one.spec.kind, "no live node declares this schedule any more: retired");
                self.client.publish_schedule(one, JobEventKind::ScheduleRetired);
            }
        }
        Ok(())
    }

    /// Declared schedules that no live node declares.
    async fn unwanted(&self) -> Result<Vec<ScheduleRecord>, StoreError> {
        let filter = ScheduleFilter { declared: Some(true), ..ScheduleFilter::default() };
        let mut declared = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.list_schedules(&filter, after, TOGETHER).await?;
            declared.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        // After the schedules: who declares one has registered before. One that is only silent may come back, and counts on its
        // schedules then.
        let nodes = self.store.nodes().await?;
        let wanted: BTreeSet<JobId> =
            nodes.into_iter().filter(|node| node.dead_at.is_none()).flat_map(|node| node.info.schedules).collect();
        declared.retain(|one| !wanted.contains(&one.id));
        Ok(declared)
    }
}

#[cfg(test)]
mod tests {
    use ratchet_core::node::{NodeInfo, NodeRegistration};
    use ratchet_core::store::{ClusterStore as _, ScheduleStore as _};
    use ratchet_core::{ManualClock, MemoryStore, NodeName, Timestamp};
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::upkeep::lease;
    use crate::{Failure, Job, JobContext, Scheduled, new_node_id};

    #[derive(Serialize, Deserialize)]
    struct Nightly;

    impl Job for Nightly {
        const KIND: &'static str = "nightly";
        type Output = ();
        async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
            Ok(())
        }
    }

    struct Cluster {
        clock: Arc<ManualClock>,
        store: MemoryStore,
        schedule: JobId,
        retirement: Retirement,
    }

    impl Cluster {
        async fn new() -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::UNIX_EPOCH));
            let store = MemoryStore::new(clock.clone());
            let new = Scheduled::cron(&Nightly, "0 0 2 * * ?").into_new_schedule(Timestamp::UNIX_EPOCH).unwrap();
            store.declare_schedules(std::slice::from_ref(&new)).await.unwrap();
            let client = Client::new(store.clone());
            let shared = client.store().clone();
            let lease = Lease { store: shared.clone(), name: lease::SCHEDULES, ttl: Duration::from_secs(10) };
            let retirement = Retirement::new(shared, client, lease);
            Self { clock, store, schedule: new.id, retirement }
        }

        /// A node that declares the schedule.
        async fn node(&self) -> NodeId {
            let info = NodeInfo { schedules: vec![self.schedule], ..NodeInfo::default() };
            let node = NodeRegistration { id: new_node_id(), name: NodeName::new("declares").unwrap(), info };
            self.store.register(&node).await.unwrap();
            node.id
        }

        /// Lets so many minutes pass, with a look in each; says whether the schedule is still there.
        async fn stays(&mut self, minutes: u32) -> bool {
            let observer = new_node_id();
            for _ in 0..minutes {
                self.clock.advance(Duration::from_mins(1));
                tokio::time::advance(Duration::from_mins(1)).await;
                self.retirement.look(observer).await.unwrap();
            }
            !self.store.find_schedules(&[self.schedule]).await.unwrap().is_empty()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_schedule_is_retired_when_nobody_has_declared_it_for_ten_minutes() {
        let mut cluster = Cluster::new().await;
        let node = cluster.node().await;
        assert!(cluster.stays(60).await, "a live node declares it");
        cluster.store.deregister(node).await.unwrap();
        assert!(cluster.stays(10).await);
        assert!(!cluster.stays(1).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_schedule_waits_for_a_node_that_is_away_for_minutes() {
        let mut cluster = Cluster::new().await;
        for _ in 0..5 {
            let node = cluster.node().await;
            assert!(cluster.stays(3).await);
            cluster.store.deregister(node).await.unwrap();
            assert!(cluster.stays(8).await, "the minutes of earlier absences do not add up");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_schedule_that_was_declared_a_moment_ago_stays() {
        let mut cluster = Cluster::new().await;
        assert!(cluster.stays(10).await);
        let new = Scheduled::cron(&Nightly, "0 0 2 * * ?").into_new_schedule(Timestamp::UNIX_EPOCH).unwrap();
        cluster.store.declare_schedules(&[new]).await.unwrap();
        assert!(cluster.stays(5).await, "as a node does that was not registered at the last look");
    }
}
