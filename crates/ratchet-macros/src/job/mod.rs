//! `#[job]`.

mod expand;
mod function;
mod name;
mod options;

pub(crate) use expand::expand;
