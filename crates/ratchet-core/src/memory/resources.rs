use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;

use super::{MemoryStore, Tables};
use crate::claim::{Fence, Permits};
use crate::error::StoreError;
use crate::id::NodeId;
use crate::name::ResourceName;
use crate::record::JobRecord;
use crate::resource::{ResourceLimit, ResourceRecord};
use crate::store::ResourceStore;

/// A limit, and whether it was set by hand.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    limit: ResourceLimit,
    by_hand: bool,
}

#[async_trait]
impl ResourceStore for MemoryStore {
    async fn declare_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        let (mut tables, _) = self.open();
        if tables.resources.get(&limit.name).is_none_or(|known| !known.by_hand) {
            tables.resources.insert(limit.name.clone(), Limit { limit: limit.clone(), by_hand: false });
        }
        Ok(())
    }

    async fn set_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        let (mut tables, _) = self.open();
        tables.resources.insert(limit.name.clone(), Limit { limit: limit.clone(), by_hand: true });
        Ok(())
    }

    async fn remove_resource(&self, name: &ResourceName) -> Result<bool, StoreError> {
        let (mut tables, _) = self.open();
        Ok(tables.resources.remove(name).is_some())
    }

    async fn resources(&self) -> Result<Vec<ResourceRecord>, StoreError> {
        let (tables, _) = self.open();
        let in_use = tables.permits_in_use();
        let names: BTreeSet<&ResourceName> = tables.resources.keys().chain(in_use.keys()).collect();
        let record = |name: &ResourceName| {
            let known = tables.resources.get(name);
            ResourceRecord {
                name: name.clone(),
                limit: known.map(|known| known.limit.clone()),
                by_hand: known.is_some_and(|known| known.by_hand),
                in_use: in_use.get(name).copied().unwrap_or(0),
            }
        };
        Ok(names.into_iter().map(record).collect())
    }

    async fn permits_of(&self, node: NodeId) -> Result<Vec<Fence>, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.permits.keys().filter(|fence| fence.node == node).copied().collect())
    }

    async fn release_permits(&self, attempts: &[Fence]) -> Result<(), StoreError> {
        let (mut tables, _) = self.open();
        for fence in attempts {
            tables.permits.remove(fence);
        }
        Ok(())
    }
}

impl Tables {
    /// Permits of living nodes, by resource.
    fn permits_in_use(&self) -> BTreeMap<ResourceName, u32> {
        let mut in_use = BTreeMap::new();
        for (_, name) in self.permits.iter().filter(|(fence, _)| self.is_alive(fence.node)) {
            *in_use.entry(name.clone()).or_insert(0) += 1;
        }
        in_use
    }

    /// The permits of all limits.
    pub(super) fn permits_left(&self) -> Permits {
        let in_use = self.permits_in_use();
        let mut permits = Permits::default();
        for (name, known) in &self.resources {
            let in_use = in_use.get(name).copied().unwrap_or(0);
            permits.add(name.as_str(), known.limit.max_concurrent as usize, in_use as usize);
        }
        permits
    }

    /// How long a node waits for a permit that the job needs; `None` if one is free, or it needs none.
    pub(super) fn wait_for_permit(&self, job: &JobRecord) -> Option<Duration> {
        let name = job.spec.resource.as_ref()?;
        let ResourceLimit { max_concurrent, retry_delay, .. } = self.resources.get(name)?.limit;
        let in_use = self.permits_in_use().get(name).copied().unwrap_or(0);
        (in_use >= max_concurrent).then_some(retry_delay)
    }
}
