//! What a node refuses or holds back: policies, permissions, codecs and circuit breakers.

pub(crate) mod resilience;
pub(crate) mod breaker_orders;
pub(crate) mod policy;
pub(crate) mod authorizer;
pub(crate) mod codec;
