//! The real binary, from outside: what it prints, what it leaves behind, how it exits.

#![allow(clippy::unwrap_used, reason = "clippy knows #[test] functions, but not what they are made of")]

mod batches;
mod retention;
mod database;
mod demo;
mod jobs;
mod listing;
mod logs;
mod schedules;
mod signals;
mod support;
mod upkeep;
mod workflows;
