//! The decisions about jobs, as pure functions: a store reads rows, asks, and writes what is returned.

pub mod submit;
pub mod claim;
pub mod outcome;
pub mod decide;
pub mod settlement;
pub mod settle;
pub mod control;
pub mod retention;
pub mod dead_letter;
pub mod breaker;
