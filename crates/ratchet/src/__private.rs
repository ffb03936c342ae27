//! What the expansions of the macros name. Not for use by hand: anything here may change at any time.

pub use ratchet_core::{Backoff, BreakerConfig, Priority};
pub use ratchet_engine::{
    Failure, FromPrev, Job, JobContext, JobDefaults, JobError, Requirement, ResultCondition, Scheduled,
};
pub use serde;

pub use self::error::*;
pub use self::injected::*;
pub use self::returned::*;
pub use self::source::*;

/// What a `#[job]` function returns.
mod returned {
    /// A `Result` under any name, taken apart.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is called a result but is no `Result`",
        label = "`#[job]` takes a type whose name ends in `Result` for one",
        note = "if this job cannot fail, rename the type, or return `Result<{Self}, std::convert::Infallible>`"
    )]
    pub trait ResultParts {
        type Ok;
        type Err;
        fn into_result(self) -> Result<Self::Ok, Self::Err>;
    }

    impl<T, E> ResultParts for Result<T, E> {
        type Ok = T;
        type Err = E;
        fn into_result(self) -> Self {
            self
        }
    }

    /// A returned type whose name does not end in `Result`.
    #[derive(Debug)]
    pub struct PlainReturn<T>(T);

    /// An inherent function wins over that of a trait: so a `Result` under another name is caught.
    impl<T, E> PlainReturn<Result<T, E>> {
        pub fn is_no_result()
        where
            Result<T, E>: NoResult,
        {
        }
    }

    pub trait IsNoResult {
        fn is_no_result() {}
    }

    impl<T> IsNoResult for PlainReturn<T> {}

    #[diagnostic::on_unimplemented(
        message = "this type is a `Result` under another name",
        label = "failures would count as successes",
        note = "write `Result<…>` here, or give the alias a name that ends in `Result`"
    )]
    pub trait NoResult {}
}

/// Parameters that the engine fills in.
mod injected {
    use ratchet_engine::{JobContext, Requirement, State};

    /// A `State<T>`, also behind an alias.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is no `ratchet::State<T>` of a `T: Send + Sync + 'static`",
        label = "cannot be filled in from what the builder was given",
        note = "a type of another crate that is called `State` can be payload if it is imported under another name"
    )]
    pub trait Injected {
        fn requirement() -> Requirement;
        fn of(ctx: &JobContext) -> Self;
    }

    impl<T: Send + Sync + 'static> Injected for State<T> {
        fn requirement() -> Requirement {
            Requirement::state::<T>()
        }

        fn of(ctx: &JobContext) -> Self {
            ctx.state()
        }
    }
}

/// From any error of a handler to a [`Failure`](ratchet_engine::Failure), by the best way that its type knows.
///
/// Method lookup tries the type with the most references first; `way` then says how, without taking the error.
mod error {
    use ratchet_engine::failure::BoxError;
    use ratchet_engine::{Failure, JobError};

    use super::source::{DynError, failure_in};

    #[derive(Debug)]
    pub struct ErrorProbe<'a, E>(pub &'a E);

    pub trait ViaJobError {
        fn way(&self) -> AsJobError {
            AsJobError
        }
    }

    impl<E: JobError + Send + Sync + 'static> ViaJobError for &&&ErrorProbe<'_, E> {}

    #[derive(Debug)]
    pub struct AsJobError;

    impl AsJobError {
        pub fn into_failure<E: JobError + Send + Sync + 'static>(self, error: E) -> Failure {
            Failure::of_job_error(error)
        }
    }

    /// Boxed errors, and those of `anyhow` and `eyre`, which hide what they hold once they are boxed.
    pub trait ViaDynError {
        fn way(&self) -> AsDynError {
            AsDynError
        }
    }

    impl<E: AsRef<DynError> + Into<BoxError>> ViaDynError for &&ErrorProbe<'_, E> {}

    #[derive(Debug)]
    pub struct AsDynError;

    impl AsDynError {
        pub fn into_failure<E: AsRef<DynError> + Into<BoxError>>(self, error: E) -> Failure {
            let inner = failure_in(error.as_ref());
            let reason = inner.and_then(JobError::do_not_retry);
            if let Some(delay) = inner.and_then(Failure::snoozed_for) {
                return Failure::snooze(delay);
            }
            match reason {
                Some(reason) => Failure::do_not_retry(error, reason),
                None => Failure::new(error),
            }
        }
    }

    pub trait ViaAnyError {
        fn way(&self) -> AsAnyError {
            AsAnyError
        }
    }

    impl<E: HandlerError> ViaAnyError for &ErrorProbe<'_, E> {}

    /// For types that are no errors at all, so that the compiler says so in our words.
    pub trait ViaNoError {
        fn way(&self) -> AsAnyError {
            AsAnyError
        }
    }

    impl<E> ViaNoError for ErrorProbe<'_, E> {}

    #[derive(Debug)]
    pub struct AsAnyError;

    impl AsAnyError {
        pub fn into_failure<E: HandlerError>(self, error: E) -> Failure {
            error.into_failure()
        }
    }

    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be the error of a job",
        label = "its error is neither a `std::error::Error` nor convertible into a boxed one",
        note = "implement `std::error::Error` for it, for instance with `thiserror`; it must also be `Send + Sync + 'static`",
        note = "`anyhow::Error`, `Box<dyn Error + Send + Sync>`, `String` and `&'static str` are fine too"
    )]
    pub trait HandlerError {
        fn into_failure(self) -> Failure;
    }

    #[diagnostic::do_not_recommend]
    impl<E: Into<BoxError>> HandlerError for E {
        fn into_failure(self) -> Failure {
            Failure::new(self)
        }
    }
}

/// What the source of an error says about another attempt; the same trick as above.
mod source {
    use std::borrow::Cow;
    use std::error::Error;

    use ratchet_engine::{Failure, JobError};

    pub type DynError = dyn Error + Send + Sync + 'static;
    type Reason = Option<Cow<'static, str>>;

    /// The first failure among an error and its sources.
    pub(super) fn failure_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Failure> {
        let next = |error: &&'a (dyn Error + 'static)| (*error).source();
        std::iter::successors(Some(error), next).find_map(|error| error.downcast_ref())
    }

    fn reason_in(error: &(dyn Error + 'static)) -> Reason {
        failure_in(error).and_then(JobError::do_not_retry)
    }

    /// What the sources of an error say, without the error itself.
    pub fn do_not_retry_in_sources(error: &dyn Error) -> Reason {
        error.source().and_then(reason_in)
    }

    /// A source and the error that it is the source of.
    #[derive(Debug)]
    pub struct SourceProbe<'a, E: ?Sized>(pub &'a E, pub &'a dyn Error);

    pub trait SourceViaJobError {
        fn do_not_retry(&self) -> Reason;
    }

    impl<E: JobError + ?Sized> SourceViaJobError for &&&SourceProbe<'_, E> {
        fn do_not_retry(&self) -> Reason {
            self.0.do_not_retry()
        }
    }

    pub trait SourceViaBoxedJobError {
        fn do_not_retry(&self) -> Reason;
    }

    impl<E: JobError> SourceViaBoxedJobError for &&&SourceProbe<'_, Box<E>> {
        fn do_not_retry(&self) -> Reason {
            E::do_not_retry(self.0)
        }
    }

    pub trait SourceViaAnyError {
        fn do_not_retry(&self) -> Reason;
    }

    impl<E: Error + 'static> SourceViaAnyError for &&SourceProbe<'_, E> {
        fn do_not_retry(&self) -> Reason {
            reason_in(self.0)
        }
    }

    pub trait SourceViaDynError {
        fn do_not_retry(&self) -> Reason;
    }

    impl<E: AsRef<DynError>> SourceViaDynError for &SourceProbe<'_, E> {
        fn do_not_retry(&self) -> Reason {
            reason_in(self.0.as_ref())
        }
    }

    /// A type parameter, or a box that is neither `Send` nor `Sync`: the error itself may know its sources.
    pub trait SourceViaNothing {
        fn do_not_retry(&self) -> Reason;
    }

    impl<E: ?Sized> SourceViaNothing for SourceProbe<'_, E> {
        fn do_not_retry(&self) -> Reason {
            do_not_retry_in_sources(self.1)
        }
    }
}
