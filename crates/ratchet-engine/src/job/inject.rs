//! Values that handlers need and the builder provides.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value that the application gave to the builder, shared by all handlers.
///
/// As a parameter of a `#[job]` function it is filled in by the engine and is no part of the payload.
pub struct State<T: ?Sized>(Arc<T>);

impl<T> State<T> {
    /// Wraps a value; for tests that call a job's body directly.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: ?Sized> Deref for State<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A type of state that a handler needs, checked when the engine starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement {
    type_id: TypeId,
    type_name: &'static str,
}

impl Requirement {
    /// The need for a `State<T>`.
    pub fn state<T: Send + Sync + 'static>() -> Self {
        Self { type_id: TypeId::of::<T>(), type_name: std::any::type_name::<T>() }
    }

    /// The type, for people.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }
}

/// The values given to the builder, by type.
#[derive(Clone, Default)]
pub(crate) struct StateMap(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl StateMap {
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        self.0.get(&TypeId::of::<T>()).and_then(|value| value.clone().downcast().ok()).map(State)
    }

    pub(crate) fn satisfies(&self, requirement: &Requirement) -> bool {
        self.0.contains_key(&requirement.type_id)
    }
}

impl fmt::Debug for StateMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateMap({} values)", self.0.len())
    }
}
