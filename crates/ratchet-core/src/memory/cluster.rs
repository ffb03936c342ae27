use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Lease, MemoryStore, Tables};
use crate::claim::{Claim, Fence};
use crate::clock::{elapsed, later};
use crate::error::{ErrorKind, StoreError};
use crate::id::NodeId;
use crate::node::{NodeRecord, NodeRegistration, NodeVitals};
use crate::record::JobRecord;
use crate::state::JobState;
use crate::store::{ClusterStore, HeartbeatStore, Orphans, Progress, Running};

#[async_trait]
impl ClusterStore for MemoryStore {
    async fn database_time(&self) -> Result<Timestamp, StoreError> {
        Ok(self.now())
    }

    async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError> {
        let (mut tables, now) = self.open();
        tables.register(node, now)
    }

    async fn deregister(&self, node: NodeId) -> Result<(), StoreError> {
        let (mut tables, _) = self.open();
        tables.nodes.remove(&node);
        tables.permits.retain(|fence, _| fence.node != node);
        Ok(())
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError> {
        Ok(Box::new(self.clone()))
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let (tables, _) = self.open();
        let mut nodes: Vec<_> = tables.nodes.values().cloned().collect();
        nodes.sort_by_key(|node| Reverse(node.last_heartbeat));
        Ok(nodes)
    }

    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
        let (mut tables, _) = self.open();
        for report in progress {
            if let Some(job) = tables.jobs.get_mut(&report.job_id)
                && job.picked_by == Some(node)
                && job.version == report.version
            {
                job.progress = Some(report.fraction);
            }
        }
        let of_node = |job: &&JobRecord| job.state == JobState::Running && job.picked_by == Some(node);
        let running = |job: &JobRecord| Running { job_id: job.id, version: job.version };
        Ok(tables.jobs.values().filter(of_node).map(running).collect())
    }

    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError> {
        let (mut tables, now) = self.open();
        if !tables.is_alive(observer) {
            let problem = format!("node {observer} is not registered or was declared dead itself");
            return Err(StoreError::new(ErrorKind::Conflict, "look for orphans", problem));
        }
        let declared_dead = tables.declare_dead(observer, grace, now);
        let jobs = tables.orphans(grace, limit, now);
        tables.remove_dead_without_jobs();
        Ok(Orphans { declared_dead, jobs })
    }

    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let free = tables.leases.get(name).is_none_or(|lease| lease.owner == owner || lease.expires_at <= now);
        if free {
            tables.leases.insert(name.to_owned(), Lease { owner, expires_at: later(now, ttl) });
        }
        Ok(free)
    }

    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
        let (mut tables, _) = self.open();
        if tables.leases.get(name).is_some_and(|lease| lease.owner == owner) {
            tables.leases.remove(name);
        }
        Ok(())
    }
}

#[async_trait]
impl HeartbeatStore for MemoryStore {
    async fn beat(&mut self, node: NodeId, vitals: NodeVitals) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        match tables.nodes.get_mut(&node) {
            Some(node) if node.dead_at.is_none() => {
                node.last_heartbeat = now;
                node.vitals = vitals;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        Ok(self.now())
    }

    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError> {
        let (mut tables, now) = self.open();
        tables.register(node, now)
    }
}

impl Tables {
    fn register(&mut self, node: &NodeRegistration, now: Timestamp) -> Result<(), StoreError> {
        if self.nodes.get(&node.id).is_some_and(|known| known.dead_at.is_some()) {
            let problem = format!("incarnation {} was declared dead; register as a new one", node.id);
            return Err(StoreError::new(ErrorKind::Conflict, "register a node", problem));
        }
        self.nodes.insert(node.id, NodeRecord::registered(node, now));
        Ok(())
    }

    fn declare_dead(&mut self, observer: NodeId, grace: Duration, now: Timestamp) -> Vec<NodeId> {
        let mut declared = Vec::new();
        for node in self.nodes.values_mut() {
            let silent = elapsed(node.last_heartbeat, now) >= grace;
            if silent && node.dead_at.is_none() && node.id != observer {
                node.dead_at = Some(now);
                declared.push(node.id);
            }
        }
        declared
    }

    fn orphans(&self, grace: Duration, limit: usize, now: Timestamp) -> Vec<Claim> {
        let orphan = |job: &JobRecord| {
            let (node, picked_at) = (job.picked_by?, job.picked_at?);
            let owner_is_gone = !self.nodes.contains_key(&node);
            let orphaned = owner_is_gone || (!self.is_alive(node) && elapsed(picked_at, now) >= grace);
            let fence = Fence { job_id: job.id, version: job.version, node };
            orphaned.then(|| Claim { fence, job: job.clone(), inputs: Vec::new(), signal: None })
        };
        self.jobs.values().filter_map(orphan).take(limit).collect()
    }

    fn remove_dead_without_jobs(&mut self) {
        let owners: BTreeSet<NodeId> = self.jobs.values().filter_map(|job| job.picked_by).collect();
        self.nodes.retain(|id, node| node.dead_at.is_none() || owners.contains(id));
        let nodes = &self.nodes;
        self.permits.retain(|fence, _| nodes.contains_key(&fence.node));
    }
}
