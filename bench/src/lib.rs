//! What the measuring programs have in common.

pub mod figures;
pub mod noop;
