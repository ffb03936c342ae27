//! Jobs that hang on each other: chains, branches, joins.
//!
//! A workflow is a set of jobs that were submitted together and the [`Edge`]s between them. Every job but the first ones
//! is WAITING until its edges are decided; an edge is decided once, by the end of its parent, in the transaction that
//! writes that end. What follows from an end is computed by [`follow`] and, as the writes that carry it out, by
//! [`Consequences::plan`]; what a retry brings back by [`revive`]. All of them are pure, and every store applies what they say.

mod condition;
mod consequences;
mod edge;
mod flags;
mod overview;
mod plan;
mod revival;
mod shape;
mod signal_plan;
mod signaled;
mod undecidable;

pub use condition::{Condition, Operator, ResultTest};
pub use consequences::{Consequences, End, Fate, WaitState, follow};
pub use edge::{Edge, EdgeState, Join, below};
pub use flags::JobFlags;
pub use overview::{Workflow, WorkflowState, WorkflowStep};
pub use plan::{Dependent, FlowPlan, Release, UnrunEnd};
pub use revival::{CanceledStep, Revival, may_revive, revive, unbegun};
pub use shape::link;
pub use signal_plan::{SignalPlan, awaits_signal};
pub use signaled::{limit_begins, retry_event, signaled};
pub use undecidable::{may_be_undecidable, undecidable};
