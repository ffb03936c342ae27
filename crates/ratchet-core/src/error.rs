//! What can go wrong in a store.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::dead_letter::HeldKey;
use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::name::{BusinessKey, Principal};

/// Most held keys that an error's text names.
const HELD_TOLD_MAX: usize = 5;

/// Why a store could not do what it was asked. Callers act on its [`kind`](Self::kind).
#[derive(Debug, Clone, thiserror::Error)]
#[error("{doing}: {problem}")]
pub struct StoreError {
    kind: ErrorKind,
    doing: Cow<'static, str>,
    problem: String,
    #[source]
    source: Option<Arc<dyn Error + Send + Sync>>,
    // In one word: errors travel in every result.
    held: Option<Arc<Vec<HeldKey>>>,
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
        Self { kind, doing: doing.into(), problem: problem.into(), source: None, held: None }
    }

    /// An input that was refused before anything was done: [`refused_input`](Self::refused_input) tells which.
    pub fn refused(doing: impl Into<Cow<'static, str>>, input: InvalidInput) -> Self {
        Self::new(ErrorKind::Invalid, doing, input.to_string()).with_source(input)
    }

    /// A live job holds the business key.
    pub fn duplicate(doing: impl Into<Cow<'static, str>>, business_key: BusinessKey, holder: JobId) -> Self {
        let problem =
            format!("the business key {business_key:?} is held by job {holder}; wait for it, cancel it or replace it");
        Self::new(ErrorKind::Duplicate { business_key, holder }, doing, problem)
    }

    /// Other jobs hold the business keys of these dead letters, at least one of them.
    pub fn held_keys(doing: impl Into<Cow<'static, str>>, held: Vec<HeldKey>) -> Self {
        let first = held.first().expect("there is one, or nothing to tell");
        let kind = ErrorKind::Duplicate { business_key: first.business_key.clone(), holder: first.holder };
        let mut told: Vec<String> = held.iter().take(HELD_TOLD_MAX).map(ToString::to_string).collect();
        if held.len() > HELD_TOLD_MAX {
            told.push(format!("and so on, {} in all", held.len()));
        }
        let problem = format!("{}; leave these letters out, or wait for those jobs or cancel them", told.join(", "));
        Self { held: Some(Arc::new(held)), ..Self::new(kind, doing, problem) }
    }

    /// The same error, if a key is held as one of [`held_keys`](Self::held_keys): this dead letter was to be retried, one of
    /// those of the call.
    #[must_use]
    pub fn of_dead_letter(self, job: JobId, call: &[JobId]) -> Self {
        match self.kind {
            ErrorKind::Duplicate { business_key, holder } => {
                // A dead letter holds nothing, unless it was just retried.
                let same_call = call.contains(&holder);
                Self::held_keys(self.doing, vec![HeldKey { job, business_key, holder, same_call }])
            }
            _ => self,
        }
    }

    /// The same error as the reason why something larger could not be done.
    #[must_use]
    pub fn while_doing(self, doing: impl Into<Cow<'static, str>>, about: impl fmt::Display) -> Self {
        Self { problem: format!("{about}: {self}"), doing: doing.into(), ..self }
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

    /// The input that was refused, if that is what went wrong: other things are [`Invalid`](ErrorKind::Invalid) too.
    pub fn refused_input(&self) -> Option<&InvalidInput> {
        self.source.as_ref()?.downcast_ref()
    }

    /// The dead letters that could not be retried because other jobs hold their business keys. There may be more of them:
    /// leaving these out can bring up others.
    pub fn held(&self) -> &[HeldKey] {
        self.held.as_ref().map_or(&[], |held| held)
    }

    /// Whether the same call may succeed later: the database was busy or away.
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, ErrorKind::Transient | ErrorKind::Unavailable)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn held(count: u128) -> Vec<HeldKey> {
        let one = |n| HeldKey {
            job: JobId(Uuid::from_u128(n)),
            business_key: BusinessKey::new(format!("key {n}")).unwrap(),
            holder: JobId(Uuid::from_u128(1_000 + n)),
            same_call: false,
        };
        (1..=count).map(one).collect()
    }

    #[test]
    fn a_refused_input_is_told_from_other_things_that_are_invalid() {
        let input = InvalidInput::new("limit", "is 0; give 1 to 1000");
        let error = StoreError::refused("listing jobs", input.clone());
        assert_eq!(error.to_string(), "listing jobs: `limit` is 0; give 1 to 1000");
        assert_eq!((error.kind(), error.refused_input()), (&ErrorKind::Invalid, Some(&input)));
        assert_eq!(StoreError::new(ErrorKind::Invalid, "listing jobs", "no such table").refused_input(), None);
    }

    #[test]
    fn held_keys_are_named_and_a_text_names_a_few() {
        let error = StoreError::held_keys("retrying dead letters", held(2));
        let (one, two) = (&held(2)[0], &held(2)[1]);
        let advice = "leave these letters out, or wait for those jobs or cancel them";
        assert_eq!(error.to_string(), format!("retrying dead letters: {one}, {two}; {advice}"));
        assert_eq!(
            one.to_string(),
            format!("job {} needs the business key \"key 1\", which job {} holds", one.job, one.holder)
        );
        assert_eq!(
            HeldKey { same_call: true, ..one.clone() }.to_string(),
            format!(
                "job {} needs the business key \"key 1\", which job {}, retried by the same call, would hold",
                one.job, one.holder
            )
        );
        assert_eq!(*error.kind(), ErrorKind::Duplicate { business_key: one.business_key.clone(), holder: one.holder });
        let many = StoreError::held_keys("retrying dead letters", held(30));
        assert_eq!(many.held(), held(30));
        assert!(many.to_string().contains("\"key 5\"") && !many.to_string().contains("\"key 6\""), "{many}");
        assert!(many.to_string().contains("holds, and so on, 30 in all; leave"), "{many}");
    }

    #[test]
    fn of_a_letter_only_a_held_key_is_told() {
        let letter = JobId(Uuid::from_u128(1));
        let HeldKey { business_key, holder, .. } = held(1).remove(0);
        let error = StoreError::duplicate("retrying a job", business_key, holder);
        assert_eq!(error.clone().of_dead_letter(letter, &[letter]).held(), held(1));
        let same_call = HeldKey { same_call: true, ..held(1).remove(0) };
        assert_eq!(error.of_dead_letter(letter, &[letter, holder]).held(), [same_call]);
        let other = StoreError::new(ErrorKind::Conflict, "retrying a job", "its batch is over");
        assert_eq!(other.clone().of_dead_letter(letter, &[]).to_string(), other.to_string());
    }

    #[test]
    fn a_reason_is_told_once_in_what_was_done_and_in_its_sources() {
        let inner = StoreError::new(ErrorKind::Unavailable, "connecting", "refused").with_source("errno 111");
        let outer = inner.while_doing("opening a store", "db:5432");
        assert_eq!(outer.to_string(), "opening a store: db:5432: connecting: refused");
        assert_eq!(outer.source().unwrap().to_string(), "errno 111");
        assert_eq!(*outer.kind(), ErrorKind::Unavailable);
    }
}
