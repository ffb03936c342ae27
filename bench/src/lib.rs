//! What the measuring programs have in common.

pub mod bare;
pub mod compare;
pub mod metrics;
pub mod noop;
