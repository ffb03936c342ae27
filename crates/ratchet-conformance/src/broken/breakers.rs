use async_trait::async_trait;
use ratchet_core::store::BreakerStore;
use ratchet_core::{BreakerOrder, ServiceName, StoreError};

use super::{BrokenStore, Flaw, mangled};

#[async_trait]
impl BreakerStore for BrokenStore {
    async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        match self.flaw {
            Flaw::RepeatsOrders => {
                let held_open = self.inner.reset_breaker(service).await?;
                return Ok(self.inner.open_breaker(service).await? && !held_open);
            }
            Flaw::MixesServices => {
                for known in self.inner.breaker_orders().await? {
                    self.inner.open_breaker(&known.service).await?;
                }
            }
            _ => {}
        }
        let opened = self.inner.open_breaker(service).await?;
        Ok(opened || self.has(Flaw::AlwaysSaysOpened))
    }

    async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        let held_open = self.inner.reset_breaker(service).await?;
        Ok(held_open || self.has(Flaw::AlwaysSaysOpened))
    }

    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError> {
        let mut orders = self.inner.breaker_orders().await?;
        match self.flaw {
            Flaw::ForgetsResets => orders.retain(|order| order.held_open),
            Flaw::CountsNoOrders => orders.iter_mut().for_each(|order| order.number = 1),
            Flaw::MangledText => {
                for order in &mut orders {
                    order.service = ServiceName::new(mangled(order.service.as_str())).unwrap();
                }
            }
            _ => {}
        }
        Ok(orders)
    }
}
