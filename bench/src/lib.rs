//! What the measuring programs have in common.

pub mod bare;
pub mod compare;
pub mod figures;
pub mod noop;
