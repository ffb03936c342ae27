//! The nodes of a cluster: what they report, and what people order for all of them.

pub mod node;
mod node_info;
pub mod service;
pub mod breaker_order;
pub mod resource;
