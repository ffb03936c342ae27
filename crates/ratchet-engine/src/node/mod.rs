//! How a node is configured, put together, started and stopped.

pub(crate) mod builder;
pub(crate) mod config;
pub(crate) mod timing;
pub(crate) mod start;
mod info;
pub(crate) mod context;
mod tasks;
pub(crate) mod ratchet;
pub(crate) mod hooks;
pub(crate) mod ids;
