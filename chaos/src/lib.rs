//! Fault tests: real nodes as processes on real servers, what is done to them, and whether the promises hold.
//!
//! A [`trial`] submits a [`stream`] of jobs while a seeded script of [`faults`] kills, stops, cuts and freezes nodes and
//! servers. Everything goes into a [`history`], about which [`check`] decides.

pub mod book;
pub mod broken;
pub mod check;
pub mod commit;
pub mod database;
pub mod deal;
pub mod dying;
pub mod errand;
pub mod faults;
pub mod history;
pub mod node;
pub mod proxy;
pub mod record;
pub mod rerun;
pub mod said;
pub mod stall;
pub mod stream;
pub mod summary;
pub mod trial;
pub mod twin;
