//! What can go wrong in a store.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::id::JobId;
use crate::name::{BusinessKey, Principal};

/// Why a store could not do what it was asked. Callers act on its [`kind`](Self::kind).
#[derive(Debug, Clone, thiserror::Error)]
#[error("{doing}: {problem}")]
pub struct StoreError {
    kind: ErrorKind,
    doing: Cow<'static, str>,
    problem: String,
    #[source]
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What a caller can do about an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Somebody else changed it first.
    Conflict,
    /// A live job holds the business key.
    Duplicate {
        /// The key.
        business_key: BusinessKey,
        /// The job that holds it.
        holder: JobId,
    },
    /// There is no such job, node or queue.
    NotFound,
    /// The same call may succeed if tried again.
    Transient,
    /// The call, the data or the schema is wrong: trying again does not help.
    Invalid,
    /// The database cannot be reached; what was asked may or may not have happened.
    Unavailable,
    /// Who asks may not do this. No store says so: it is the answer of a client that acts for somebody.
    Denied {
        /// What was asked for, as a verb: `cancel`.
        action: &'static str,
        /// Who asked.
        principal: Principal,
    },
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conflict => "conflict",
            Self::Duplicate { .. } => "duplicate",
            Self::NotFound => "not found",
            Self::Transient => "transient",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
            Self::Denied { .. } => "denied",
        })
    }
}

impl StoreError {
    /// An error of `kind`: what was being done, and what is wrong and what to do about it.
    pub fn new(kind: ErrorKind, doing: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> Self {
        Self { kind, doing: doing.into(), problem: problem.into(), source: None }
    }

    /// A live job holds the business key.
    pub fn duplicate(doing: impl Into<Cow<'static, str>>, business_key: BusinessKey, holder: JobId) -> Self {
        let problem =
            format!("the business key {business_key:?} is held by job {holder}; wait for it, cancel it or replace it");
        Self::new(ErrorKind::Duplicate { business_key, holder }, doing, problem)
    }

    /// Adds what the database said.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Whether the same call may succeed later: the database was busy or away.
    pub fn is_passing(&self) -> bool {
        matches!(self.kind, ErrorKind::Transient | ErrorKind::Unavailable)
    }
}
