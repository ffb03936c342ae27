use ratchet_core::store::StoreDecorator;
use ratchet_core::{Fence, NodeId, ResourceLimit, ResourceName, ResourceRecord, Store, StoreError};

use super::{Broken, Flaw, Layer};

#[derive(Debug)]
pub(super) enum Resources {}

impl StoreDecorator for Layer<Resources> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn declare_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        if self.has(Flaw::CodeBeatsHand) {
            self.good.remove_resource(&limit.name).await?;
        }
        self.good.declare_resource(&self.spoilt_limit(limit)).await
    }

    async fn set_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        self.good.set_resource(&self.spoilt_limit(limit)).await
    }

    async fn remove_resource(&self, name: &ResourceName) -> Result<bool, StoreError> {
        if self.has(Flaw::KeepsLimits) {
            return Ok(true);
        }
        self.good.remove_resource(name).await
    }

    async fn resources(&self) -> Result<Vec<ResourceRecord>, StoreError> {
        let mut all = self.good.resources().await?;
        if self.has(Flaw::HidesPermits) {
            for record in &mut all {
                record.in_use = 0;
            }
        }
        Ok(all)
    }

    async fn permits_of(&self, node: NodeId) -> Result<Vec<Fence>, StoreError> {
        if self.has(Flaw::HidesPermits) {
            return Ok(Vec::new());
        }
        self.good.permits_of(node).await
    }

    async fn release_permits(&self, attempts: &[Fence]) -> Result<(), StoreError> {
        if self.has(Flaw::KeepsPermits) {
            return Ok(());
        }
        self.good.release_permits(attempts).await
    }
}

impl Broken {
    fn spoilt_limit(&self, limit: &ResourceLimit) -> ResourceLimit {
        let mut limit = limit.clone();
        match self.flaw {
            Flaw::OneTooMany => limit.max_concurrent += 1,
            Flaw::OneTooFew => limit.max_concurrent = limit.max_concurrent.saturating_sub(1),
            _ => {}
        }
        limit
    }
}
