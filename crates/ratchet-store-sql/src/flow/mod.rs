//! What jobs are to each other: edges, batches, and what follows when one ends.

mod batch_store;

pub(crate) mod batch_counts;
pub(crate) mod batches;
pub(crate) mod cancel_children;
pub(crate) mod edges;
pub(crate) mod follow;
pub(crate) mod revive;
pub(crate) mod undecidable;
