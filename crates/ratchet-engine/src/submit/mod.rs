//! Submitting: from options to units that are stored, through one door.

pub(crate) mod enqueue;
pub(crate) mod step;
pub(crate) mod admission;
pub(crate) mod unit;
pub(crate) mod submitter;
