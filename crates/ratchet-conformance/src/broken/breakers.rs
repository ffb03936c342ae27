use ratchet_core::store::StoreDecorator;
use ratchet_core::{BreakerOrder, ServiceName, Store, StoreError};

use super::{Flaw, Layer, mangled};

#[derive(Debug)]
pub(super) enum Breakers {}

impl StoreDecorator for Layer<Breakers> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        match self.flaw {
            Flaw::RepeatsOrders => {
                let held_open = self.good.reset_breaker(service).await?;
                return Ok(self.good.open_breaker(service).await? && !held_open);
            }
            Flaw::MixesServices => {
                for known in self.good.breaker_orders().await? {
                    self.good.open_breaker(&known.service).await?;
                }
            }
            _ => {}
        }
        let opened = self.good.open_breaker(service).await?;
        Ok(opened || self.has(Flaw::AlwaysSaysOpened))
    }

    async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        let held_open = self.good.reset_breaker(service).await?;
        Ok(held_open || self.has(Flaw::AlwaysSaysOpened))
    }

    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError> {
        let mut orders = self.good.breaker_orders().await?;
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
