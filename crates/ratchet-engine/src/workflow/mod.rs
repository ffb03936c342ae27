//! Jobs that follow each other: chains, branches, and workflows of any shape.
//!
//! Everything here ends in one [`SubmitUnit`](ratchet_core::store::SubmitUnit): all steps are stored at submit, and what is
//! released or canceled is decided by the store with each step's end.

mod builder;
mod branch;
mod condition;
mod prev;
mod plan;
mod handle;
mod steer;

pub use branch::{IntoBranch, ResultAt, When, result};
pub use builder::WorkflowBuilder;
pub use condition::{ConditionStep, ResultCondition, condition_registration_of};
pub use handle::WorkflowHandle;
pub use prev::{FromPrev, Prev};

pub(crate) use condition::{CONDITION_PREFIX, DataCondition, handed_over, open_result};
pub(crate) use plan::Plan;
