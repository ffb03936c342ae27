use async_trait::async_trait;

use crate::breaker_order::BreakerOrder;
use crate::error::StoreError;
use crate::name::ServiceName;

/// What people order about circuit breakers, for the whole cluster. The store only keeps the orders: nodes read them again
/// and again, and heed those that they have not seen.
#[async_trait]
pub trait BreakerStore: Send + Sync {
    /// Orders that the service's breaker is held open; `true` if it was not. If it was, nothing changes: it is no new order.
    async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError>;

    /// Orders that the service's breaker is reset; `true` if it was held open. It is a new order even if it was not: nodes may
    /// have opened it by their own judgement.
    async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError>;

    /// The last order about each service, by name.
    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError>;
}
