//! Why an attempt failed, and what that says about another one.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// Any error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// An error of a handler, with what it says about another attempt.
///
/// Handlers return errors of their own; they become failures by themselves. Make one by hand to say that an error
/// must not be retried, or to put the job off:
///
/// ```
/// use ratchet_engine::Failure;
///
/// fn parse(input: &str) -> Result<u32, Failure> {
///     input.parse().map_err(|error| Failure::do_not_retry(error, "the input will not change"))
/// }
/// assert_eq!(parse("x").unwrap_err().do_not_retry_reason(), Some("the input will not change"));
/// ```
///
/// A failure that travels inside a boxed error or deeper in a chain of sources is found there.
#[derive(Debug)]
pub struct Failure {
    class: Cow<'static, str>,
    message: String,
    advice: Advice,
    source: Option<BoxError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Advice {
    Retry,
    DoNotRetry(Cow<'static, str>),
    Snooze(Duration),
}

impl Failure {
    /// A failure that may be retried. An error that is, or wraps, a failure keeps what that one says.
    pub fn new<E: Into<BoxError>>(error: E) -> Self {
        Self::of_class(short_type_name::<E>(), error.into())
    }

    /// A failure that must not be retried, and why.
    pub fn do_not_retry<E: Into<BoxError>>(error: E, reason: impl Into<Cow<'static, str>>) -> Self {
        let mut failure = Self::of_class(short_type_name::<E>(), error.into());
        failure.advice = Advice::DoNotRetry(reason.into());
        failure
    }

    /// Not a failure at all: puts the job off for `delay` without consuming an attempt.
    pub fn snooze(delay: Duration) -> Self {
        Self {
            class: "Snooze".into(),
            message: format!("snoozed for {delay:?}"),
            advice: Advice::Snooze(delay),
            source: None,
        }
    }

    /// A failure from an error that knows whether it may be retried.
    pub fn of_job_error<E: JobError + Send + Sync + 'static>(error: E) -> Self {
        let reason = error.do_not_retry();
        let mut failure = Self::of_class(short_type_name::<E>(), Box::new(error));
        if let Some(reason) = reason {
            failure.advice = Advice::DoNotRetry(reason);
        }
        failure
    }

    fn of_class(class: Cow<'static, str>, error: BoxError) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(failure) => return *failure,
            Err(error) => error,
        };
        let advice = in_chain(&*error).map_or(Advice::Retry, |inner| inner.advice.clone());
        Self { class, message: with_sources(&*error), advice, source: Some(error) }
    }

    /// The name of the error's type, for grouping.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// The error's text with its sources, not yet sanitized.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Why another attempt cannot help, if it says so.
    pub fn do_not_retry_reason(&self) -> Option<&str> {
        match &self.advice {
            Advice::DoNotRetry(reason) => Some(reason),
            Advice::Retry | Advice::Snooze(_) => None,
        }
    }

    /// How long the job is to be put off, if that is all that was asked.
    pub fn snoozed_for(&self) -> Option<Duration> {
        match self.advice {
            Advice::Snooze(delay) => Some(delay),
            Advice::Retry | Advice::DoNotRetry(_) => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The message already holds the error's own text; its sources are what is left.
        self.source.as_deref().and_then(Error::source)
    }
}

/// An error that knows whether another attempt can help; `derive(JobError)` writes it.
pub trait JobError: Error {
    /// Why another attempt cannot help; `None` if it may.
    fn do_not_retry(&self) -> Option<Cow<'static, str>>;
}

impl JobError for Failure {
    fn do_not_retry(&self) -> Option<Cow<'static, str>> {
        match &self.advice {
            Advice::DoNotRetry(reason) => Some(reason.clone()),
            Advice::Retry | Advice::Snooze(_) => None,
        }
    }
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// The first failure among an error and its sources.
fn in_chain<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Failure> {
    chain(error).find_map(|error| error.downcast_ref())
}

/// An error's text with those of its sources.
pub(crate) fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for source in chain(error).skip(1) {
        let next = source.to_string();
        // Some errors repeat their source's text in their own.
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
    }
    text
}

/// `ChargeError` of `billing::ChargeError`, `io::Error` of `std::io::error::Error`, `Error` of `Box<dyn Error>`.
fn short_type_name<E>() -> Cow<'static, str> {
    let name = std::any::type_name::<E>();
    let plain = name.split('<').next().unwrap_or(name);
    let mut segments = plain.rsplit("::");
    match segments.next() {
        Some("Box" | "&str" | "String") | None => "Error".into(),
        // Everybody calls theirs so; the module says whose it is.
        Some("Error") => match segments.find(|module| *module != "error") {
            Some(module) => format!("{module}::Error").into(),
            None => "Error".into(),
        },
        Some(last) => last.trim_start_matches('&').into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] BoxError);

    #[test]
    fn advice_is_found_anywhere_in_a_chain() {
        let inner = Failure::do_not_retry("card declined", "declined by the issuer");
        let failure = Failure::new(Outer(Box::new(inner)));
        assert_eq!(failure.do_not_retry_reason(), Some("declined by the issuer"));
        assert_eq!((failure.class(), failure.message()), ("Outer", "outer: card declined"));
    }

    #[test]
    fn a_boxed_failure_stays_itself() {
        let boxed: BoxError = Box::new(Failure::snooze(Duration::from_secs(3)));
        assert_eq!(Failure::new(boxed).snoozed_for(), Some(Duration::from_secs(3)));
    }

    #[test]
    fn classes_are_short_and_readable() {
        let check = |failure: Failure, class: &str| assert_eq!(failure.class(), class);
        check(Failure::new(std::io::Error::other("x")), "io::Error");
        check(Failure::new("text"), "Error");
        check(Failure::new(String::from("text")), "Error");
        check(Failure::new(Box::<dyn Error + Send + Sync>::from("x")), "Error");
        check(Failure::new("x".parse::<u8>().unwrap_err()), "ParseIntError");
    }
}
