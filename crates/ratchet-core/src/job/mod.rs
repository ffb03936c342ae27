//! A job before and after: ids, names and their limits, what is submitted, what is stored, and which state may follow which.

pub mod id;
pub mod uuid7;
pub mod name;
pub mod limits;
pub mod invalid;
pub mod json;
pub mod priority;
pub mod backoff;
pub mod state;
pub mod transition;
pub mod spec;
pub mod record;
pub mod trace;
pub mod prepare;
