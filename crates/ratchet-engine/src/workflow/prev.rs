use std::ops::Deref;

use serde::de::DeserializeOwned;

use crate::job::failure::Failure;
use crate::run::context::JobContext;

/// The result of the step before, as a parameter of a `#[job]` function: filled in by the engine, no part of the payload.
///
/// A step that waits for several others gets their results in the order in which the edges were defined: as a tuple
/// (`Prev<(Invoice, Address)>`) or a list (`Prev<Vec<Page>>`). A join of any follows as many as were taken: it asks for a
/// list of their results, which has one if one was. A step with a single edge to it gets that result as it is. A value of
/// another type fails the job, without retries and with a text that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prev<T>(pub T);

impl<T> Prev<T> {
    /// The result itself.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Prev<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// What can be filled in from the result of the step before: a [`Prev`], also behind an alias.
pub trait FromPrev: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// If the job has no step before, or its result is of another type: not to be retried.
    fn from_prev(ctx: &JobContext) -> Result<Self, Failure>;
}

impl<T: DeserializeOwned> FromPrev for Prev<T> {
    fn from_prev(ctx: &JobContext) -> Result<Self, Failure> {
        ctx.prev().map(Self)
    }
}
