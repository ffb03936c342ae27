//! `#[job]`.

mod expand;
mod function;
pub(crate) mod name;
mod options;

pub(crate) use expand::expand;
