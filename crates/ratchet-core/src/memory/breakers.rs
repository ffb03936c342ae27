use async_trait::async_trait;
use jiff::Timestamp;

use super::{MemoryStore, Tables};
use crate::breaker_order::BreakerOrder;
use crate::error::StoreError;
use crate::name::ServiceName;
use crate::store::BreakerStore;

#[async_trait]
impl BreakerStore for MemoryStore {
    async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let held_open = tables.holds_open(service);
        if !held_open {
            tables.order(service, true, now);
        }
        Ok(!held_open)
    }

    async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let held_open = tables.holds_open(service);
        tables.order(service, false, now);
        Ok(held_open)
    }

    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError> {
        let (tables, _) = self.open();
        Ok(tables.breaker_orders.values().cloned().collect())
    }
}

impl Tables {
    fn holds_open(&self, service: &ServiceName) -> bool {
        self.breaker_orders.get(service).is_some_and(|order| order.held_open)
    }

    fn order(&mut self, service: &ServiceName, held_open: bool, now: Timestamp) {
        let number = self.breaker_orders.get(service).map_or(1, |last| last.number + 1);
        let order = BreakerOrder { service: service.clone(), held_open, number, ordered_at: now };
        self.breaker_orders.insert(service.clone(), order);
    }
}
