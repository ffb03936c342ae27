//! Errors as people print them: the reason is in the text, and only once in a whole chain.

use ratchet::{
    CodecError, ErrorKind, InvalidInput, JobId, ResultError, SignalError, StartError, StoreError, SubmitError,
};

fn lost() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "storing jobs", "the connection was lost").with_source("errno 104")
}

fn wrapped() -> Box<dyn std::error::Error + Send + Sync> {
    anyhow::Error::msg("no licence").context("the licence server refused").into()
}

#[test]
fn an_error_tells_its_reason_alone_and_once_with_its_sources() {
    #[track_caller]
    fn check(error: impl std::error::Error + Send + Sync + 'static, reason: &str) {
        let error = anyhow::Error::new(error);
        let (alone, whole) = (error.to_string(), format!("{error:#}"));
        assert!(alone.contains(reason), "{alone}");
        assert_eq!(whole.matches(reason).count(), 1, "{whole}");
    }
    let id = JobId(uuid::Uuid::nil());
    check(SubmitError::from(lost()), "storing jobs: the connection was lost");
    check(SignalError::from(lost()), "storing jobs: the connection was lost");
    check(ResultError::from(lost()), "storing jobs: the connection was lost");
    check(StartError::from(lost()), "storing jobs: the connection was lost");
    assert!(format!("{:#}", anyhow::Error::new(SubmitError::from(lost()))).ends_with("was lost: errno 104"));
    check(SubmitError::from(InvalidInput::new("delay", "is long")), "`delay` is long");
    check(StartError::from(InvalidInput::new("grace", "is short")), "`grace` is short");
    check(StartError::Hook(wrapped()), "refused the start: the licence server refused: no licence");
    let reason = serde_json::from_str::<u32>("\"x\"").unwrap_err();
    check(ResultError::Unreadable { id, reason }, "cannot be read: invalid type: string \"x\", expected u32");
    let reason = CodecError::Failed { written: "aes".to_owned(), reason: wrapped() };
    check(ResultError::Undecodable { id, reason }, "could not decode it: the licence server refused: no licence");
}
