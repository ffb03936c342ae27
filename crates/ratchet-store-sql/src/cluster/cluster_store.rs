//! Nodes and leases.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::node::{NodeRecord, NodeRegistration};
use ratchet_core::store::{ClusterStore, HeartbeatStore, Orphans, Progress, Running};
use ratchet_core::{NodeId, StoreError, Timestamp};

use crate::cluster;
use crate::cluster::lease;
use crate::store::{Backend, SqlStore};
use crate::waist::transact::Intent;
use crate::work;

#[async_trait]
impl<B: Backend> ClusterStore for SqlStore<B> {
    async fn database_time(&self) -> Result<Timestamp, StoreError> {
        self.read(work!([], |conn| cluster::database_time(conn))).await
    }

    async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError> {
        let node = node.clone();
        self.write(work!([node], |conn| cluster::register(conn, &node))).await
    }

    async fn deregister(&self, node: NodeId) -> Result<(), StoreError> {
        self.write(work!([], |conn| cluster::deregister(conn, node))).await
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError> {
        self.backend().open_heartbeat().await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.read(work!([], |conn| cluster::nodes(conn))).await
    }

    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
        let intent = if progress.is_empty() { Intent::Read } else { Intent::Write };
        let progress: Arc<[Progress]> = progress.into();
        self.transact(intent, work!([progress], |conn| cluster::reconcile(conn, node, &progress))).await
    }

    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError> {
        let orphans = work!([], |conn| cluster::orphans(conn, observer, grace, limit));
        self.transact(Intent::MaybeWrite, orphans).await
    }

    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let name: Arc<str> = name.into();
        self.write(work!([name], |conn| lease::acquire(conn, &name, owner, ttl))).await
    }

    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
        let name: Arc<str> = name.into();
        self.transact(Intent::Statement, work!([name], |conn| lease::release(conn, &name, owner))).await
    }
}
