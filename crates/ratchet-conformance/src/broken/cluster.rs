use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use ratchet_core::claim::Fence;
use ratchet_core::node::{NodeRecord, NodeRegistration, NodeVitals};
use ratchet_core::page::JobFilter;
use ratchet_core::service::NodeServices;
use ratchet_core::store::{HeartbeatStore, Orphans, Progress, Running, StoreDecorator};
use ratchet_core::{Claim, ErrorKind, JobState, NodeId, NodeName, Store, StoreError};

use super::{Broken, Flaw, Layer};
use crate::harness::{mins, registration};

#[derive(Debug)]
pub(super) enum Cluster {}

impl StoreDecorator for Layer<Cluster> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn database_time(&self) -> Result<Timestamp, StoreError> {
        let now = self.good.database_time().await?;
        let started = *self.seen().started.get_or_insert(now);
        Ok(if self.has(Flaw::StoppedClock) { started } else { now })
    }

    async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError> {
        self.seen().nodes.insert(node.id);
        let mut node = node.clone();
        if self.has(Flaw::LosesNodeNames) {
            node.name = NodeName::new("node").unwrap();
        }
        self.good.register(&node).await
    }

    async fn deregister(&self, node: NodeId) -> Result<(), StoreError> {
        if self.has(Flaw::KeepsNodes) {
            return Ok(());
        }
        self.good.deregister(node).await
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError> {
        Ok(Box::new(BrokenHeartbeat {
            inner: self.good.open_heartbeat().await?,
            flaw: self.flaw,
            services: NodeServices::default(),
        }))
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let mut nodes = self.good.nodes().await?;
        match self.flaw {
            Flaw::ListsNodesById => nodes.reverse(),
            Flaw::KeepsTheDead => {
                let known: Vec<_> = nodes.iter().map(|node| node.id).collect();
                let gone: Vec<_> = self.seen().nodes.iter().copied().filter(|id| !known.contains(id)).collect();
                let now = self.good.database_time().await?;
                let ghost = |id| NodeRecord::registered(&NodeRegistration { id, ..registration("ghost") }, now);
                nodes.extend(gone.into_iter().map(ghost));
            }
            _ => {}
        }
        Ok(nodes)
    }

    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
        let mut progress = progress.to_vec();
        let mut node_of_progress = node;
        match self.flaw {
            Flaw::LosesProgress => progress.clear(),
            Flaw::UnfencedProgress => {
                for report in &mut progress {
                    if let Some(job) = self.inner_job(report.job_id).await {
                        report.version = job.version;
                        node_of_progress = job.picked_by.unwrap_or(node);
                    }
                }
            }
            _ => {}
        }
        self.good.reconcile(node_of_progress, &progress).await?;
        match self.flaw {
            Flaw::ReconcilesNothing => Ok(vec![]),
            Flaw::ReconcilesEverything => {
                let running = self.running().await?;
                Ok(running.iter().map(|c| Running { job_id: c.job.id, version: c.job.version }).collect())
            }
            _ => self.good.reconcile(node, &[]).await,
        }
    }

    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError> {
        let (mut observer, mut grace, mut limit) = (observer, grace, limit);
        match self.flaw {
            Flaw::FindsNoOrphans => {
                return Ok(Orphans { jobs: vec![], ..self.good.orphans(observer, grace, limit).await? });
            }
            Flaw::OrphansEverything => {
                return Ok(Orphans { jobs: self.running().await?, ..self.good.orphans(observer, grace, limit).await? });
            }
            Flaw::NoGrace => grace = Duration::ZERO,
            Flaw::LongGrace => grace = mins(60),
            Flaw::OrphansWithoutLimit => limit = 1_000,
            Flaw::AnyoneObserves => {
                let stranger = registration("observer");
                self.good.register(&stranger).await?;
                observer = stranger.id;
            }
            _ => {}
        }
        self.good.orphans(observer, grace, limit).await
    }

    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let mut ttl = ttl;
        match self.flaw {
            Flaw::LeaseForAll => return Ok(true),
            Flaw::LeaseForEver => ttl = mins(100_000),
            Flaw::LeaseNeverRenewed if self.seen().leases.get(name) == Some(&owner) => return Ok(true),
            _ => {}
        }
        let acquired = self.good.acquire_lease(name, owner, ttl).await?;
        if acquired {
            self.seen().leases.insert(name.to_owned(), owner);
        }
        Ok(acquired)
    }

    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
        let holder = self.seen().leases.get(name).copied();
        match self.flaw {
            Flaw::KeepsLeases => Ok(()),
            Flaw::ErrsOnRelease if holder.is_none() => {
                Err(StoreError::new(ErrorKind::NotFound, "release a lease", "nobody holds it"))
            }
            Flaw::AnyoneReleases => self.good.release_lease(name, holder.unwrap_or(owner)).await,
            _ => self.good.release_lease(name, owner).await,
        }
    }
}

impl Broken {
    async fn running(&self) -> Result<Vec<Claim>, StoreError> {
        let filter = JobFilter { states: vec![JobState::Running], ..JobFilter::default() };
        let jobs = self.good.list(&filter, None, 1_000).await?.items;
        let claim = |job: ratchet_core::JobRecord| {
            let fence = Fence { job_id: job.id, version: job.version, node: job.picked_by? };
            Some(Claim { fence, job, inputs: Vec::new(), signal: None })
        };
        Ok(jobs.into_iter().filter_map(claim).collect())
    }
}

struct BrokenHeartbeat {
    inner: Box<dyn HeartbeatStore>,
    flaw: Flaw,
    /// The last that it was told of.
    services: NodeServices,
}

#[async_trait]
impl HeartbeatStore for BrokenHeartbeat {
    async fn beat(&mut self, node: NodeId, mut vitals: NodeVitals) -> Result<bool, StoreError> {
        match self.flaw {
            Flaw::ForgetsBeats => Ok(true),
            Flaw::ForgetsVitals => self.inner.beat(node, NodeVitals::default()).await,
            Flaw::ForgetsServices => {
                vitals.services = NodeServices::default();
                self.inner.beat(node, vitals).await
            }
            Flaw::KeepsServices => {
                if vitals.services.is_empty() {
                    vitals.services = self.services.clone();
                }
                self.services = vitals.services.clone();
                self.inner.beat(node, vitals).await
            }
            Flaw::BeatsRegister => {
                let alive = self.inner.beat(node, vitals).await?;
                if !alive {
                    // One that was declared dead cannot come back; it is told that it lives all the same.
                    let _ = self.inner.register(&NodeRegistration { id: node, ..registration("risen") }).await;
                }
                Ok(true)
            }
            _ => self.inner.beat(node, vitals).await,
        }
    }

    async fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        self.inner.database_time().await
    }

    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError> {
        if self.flaw == Flaw::DeafHeartbeat {
            return Ok(());
        }
        self.inner.register(node).await
    }
}
