//! The narrow waist between statements and drivers: text and values in, rows out.

pub(crate) mod conn;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod dialect;
pub(crate) mod list;
pub(crate) mod literal;
pub(crate) mod row;
pub mod server;
mod columns;
pub(crate) mod stmt;
pub(crate) mod transact;
pub(crate) mod value;
