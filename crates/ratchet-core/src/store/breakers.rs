use async_trait::async_trait;

use crate::breaker_order::BreakerOrder;
use crate::error::StoreError;
use crate::name::ServiceName;

/// Operators' orders about circuit breakers, for the whole cluster.
///
/// The store only retains the orders: nodes poll them and carry out those that are new to them.
#[async_trait]
pub trait BreakerStore: Send + Sync {
    /// Orders that the service's breaker be held open. Returns whether it was not; an order that is given again changes nothing.
    async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError>;

    /// Orders that the service's breaker be reset. Returns whether it was held open. It is a new order in any case: nodes may
    /// have opened the breaker by their own judgment.
    async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError>;

    /// Returns the last order about each service, by name.
    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError>;
}
