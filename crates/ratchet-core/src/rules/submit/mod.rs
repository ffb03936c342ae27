//! The rules of a submit: which jobs of a unit are stored, and what the row of a new job holds.
//!
//! A store reads what is taken into [`KeyReservations`], asks it about every unit, and writes what it accepts. The row of an
//! accepted job is its [`FirstRow`].

mod first_row;
mod key_reservations;

pub use first_row::FirstRow;
pub use key_reservations::{AcceptedUnit, KeyReservations};

/// What a submit was doing, in errors.
pub const DOING: &str = "submitting jobs";
