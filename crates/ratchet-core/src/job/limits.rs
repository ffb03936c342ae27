//! Every limit on what a caller may hand in, and the checks that enforce them.
//!
//! Lengths of text are counted in characters, sizes of JSON in bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::later;
use crate::invalid::InvalidInput;
use crate::state::JobState;

/// Longest kind, in characters of `[a-z0-9._-]`.
pub const KIND_CHARS_MAX: usize = 128;
/// Longest queue name, in characters of `[a-z0-9._-]`.
pub const QUEUE_CHARS_MAX: usize = 64;
/// Longest tag.
pub const TAG_CHARS_MAX: usize = 64;
/// Most tags on one job.
pub const TAGS_MAX: usize = 32;
/// Longest idempotency, business or signal key.
pub const KEY_CHARS_MAX: usize = 255;
/// Longest resource name.
pub const RESOURCE_CHARS_MAX: usize = 100;
/// Longest name of a service: a kind that names none is its own.
pub const SERVICE_CHARS_MAX: usize = KIND_CHARS_MAX;
/// Most permits of one resource: a claim counts those that are out.
pub const PERMITS_MAX: u32 = 10_000;
/// Shortest time before a node looks again for a permit.
pub const PERMIT_DELAY_MIN: Duration = Duration::from_millis(1);
/// Longest time before a node looks again for a permit.
pub const PERMIT_DELAY_MAX: Duration = Duration::from_hours(1);
/// Longest principal.
pub const PRINCIPAL_CHARS_MAX: usize = 255;
/// Longest name of a workflow's step.
pub const STEP_NAME_CHARS_MAX: usize = 64;
/// Longest description of a condition.
pub const DESCRIPTION_CHARS_MAX: usize = 255;
/// Longest node name.
pub const NODE_NAME_CHARS_MAX: usize = 64;
/// Most params on one job.
pub const PARAMS_MAX: usize = 64;
/// Longest key of a param.
pub const PARAM_KEY_CHARS_MAX: usize = 64;
/// Longest value of a param.
pub const PARAM_VALUE_CHARS_MAX: usize = 1_024;
/// Largest payload, as JSON text.
pub const PAYLOAD_BYTES_MAX: usize = 100 * 1_024;
/// Largest result, as JSON text.
pub const RESULT_BYTES_MAX: usize = 64 * 1_024;
/// Largest payload of a signal, as JSON text.
pub const SIGNAL_BYTES_MAX: usize = 64 * 1_024;
/// Longest reason of a rejection.
pub const REASON_CHARS_MAX: usize = 2_000;
/// Longest stored error text; longer ones are cut.
pub const ERROR_CHARS_MAX: usize = 2_000;
/// Longest message of a line in a job's log; longer ones are cut.
pub const LOG_MESSAGE_CHARS_MAX: usize = 8_000;
/// Largest fields of a line in a job's log, as JSON text; larger ones are left out.
pub const LOG_FIELDS_BYTES_MAX: usize = 8 * 1_024;
/// Longest error class; longer ones are cut.
pub const ERROR_CLASS_CHARS_MAX: usize = 255;
/// Longest delay or timeout: ten years of 365 days.
pub const DURATION_MAX: Duration = Duration::from_hours(10 * 365 * 24);
/// Shortest timeout.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(1);
/// Most jobs in one call to submit.
pub const SUBMIT_JOBS_MAX: usize = 10_000;
/// Most retries of one job.
pub const RETRIES_MAX: u32 = 10_000;

/// Most dead letters that one call retries.
pub const RETRY_ALL_MAX: usize = 1_000;

/// Refuses empty text, text over `chars_max`, and NUL characters.
pub fn check_text(field: &str, text: &str, chars_max: usize) -> Result<(), InvalidInput> {
    if text.is_empty() {
        return Err(InvalidInput::new(field, format!("is empty; give 1 to {chars_max} characters")));
    }
    check_length(field, text, chars_max)?;
    check_no_nul(field, text)
}

/// Refuses text over `chars_max` characters.
pub fn check_length(field: &str, text: &str, chars_max: usize) -> Result<(), InvalidInput> {
    // Bytes bound characters from above, so most texts are not counted.
    if text.len() > chars_max {
        let chars = text.chars().count();
        if chars > chars_max {
            return Err(InvalidInput::new(field, format!("is {chars} characters long; the limit is {chars_max}")));
        }
    }
    Ok(())
}

/// Refuses NUL characters, which not every database can hold.
pub fn check_no_nul(field: &str, text: &str) -> Result<(), InvalidInput> {
    match text.chars().position(|c| c == '\0') {
        None => Ok(()),
        Some(at) => Err(InvalidInput::new(
            field,
            format!("holds a NUL character at position {}; NUL cannot be stored, remove it", at + 1),
        )),
    }
}

/// Refuses what nobody can see or type in a name: spaces around it and control characters; and as [`check_text`] does.
pub fn check_name(field: &str, text: &str, chars_max: usize) -> Result<(), InvalidInput> {
    check_text(field, text, chars_max)?;
    if text.trim() != text {
        return Err(InvalidInput::new(field, format!("is {text:?}; it must not begin or end with a space, remove it")));
    }
    match text.chars().enumerate().find(|(_, c)| c.is_control()) {
        None => Ok(()),
        Some((at, c)) => {
            let problem = format!("holds the control character {c:?} at position {}; remove it", at + 1);
            Err(InvalidInput::new(field, problem))
        }
    }
}

/// Refuses text outside `[a-z0-9._-]`, empty text and text over `chars_max`.
pub fn check_identifier(field: &str, text: &str, chars_max: usize) -> Result<(), InvalidInput> {
    check_text(field, text, chars_max)?;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    match text.chars().enumerate().find(|(_, c)| !allowed(*c)) {
        None => Ok(()),
        Some((at, c)) => Err(InvalidInput::new(
            field,
            format!("holds {c:?} at position {}; only a-z, 0-9, '.', '_' and '-' are allowed", at + 1),
        )),
    }
}

/// Refuses too many params, and keys or values that are too long or hold NUL.
pub fn check_params(params: &BTreeMap<String, String>) -> Result<(), InvalidInput> {
    if params.len() > PARAMS_MAX {
        return Err(InvalidInput::new("params", format!("has {} entries; the limit is {PARAMS_MAX}", params.len())));
    }
    for (key, value) in params {
        check_text("params key", key, PARAM_KEY_CHARS_MAX)?;
        let field = format!("params value of {key:?}");
        check_length(&field, value, PARAM_VALUE_CHARS_MAX)?;
        check_no_nul(&field, value)?;
    }
    Ok(())
}

/// Refuses more than [`TAGS_MAX`] tags.
pub fn check_tag_count(count: usize) -> Result<(), InvalidInput> {
    if count > TAGS_MAX {
        return Err(InvalidInput::new("tags", format!("has {count} entries; the limit is {TAGS_MAX}")));
    }
    Ok(())
}

/// Refuses delays over [`DURATION_MAX`].
pub fn check_delay(field: &str, delay: Duration) -> Result<(), InvalidInput> {
    if delay > DURATION_MAX {
        return Err(InvalidInput::new(field, format!("is {delay:?}; the limit is 10 years ({DURATION_MAX:?})")));
    }
    Ok(())
}

/// Refuses times more than [`DURATION_MAX`] from now, and before 1970.
pub fn check_time(field: &str, time: Timestamp, now: Timestamp) -> Result<(), InvalidInput> {
    if time > later(now, DURATION_MAX) {
        return Err(InvalidInput::new(field, format!("is {time}; the limit is 10 years from now")));
    }
    if time < Timestamp::UNIX_EPOCH {
        return Err(InvalidInput::new(field, format!("is {time}; the least is {}", Timestamp::UNIX_EPOCH)));
    }
    Ok(())
}

/// Refuses timeouts under [`TIMEOUT_MIN`] or over [`DURATION_MAX`].
pub fn check_timeout(timeout: Duration) -> Result<(), InvalidInput> {
    if timeout < TIMEOUT_MIN {
        return Err(InvalidInput::new("timeout", format!("is {timeout:?}; the least is {TIMEOUT_MIN:?}")));
    }
    check_delay("timeout", timeout)
}

/// Refuses more than [`RETRIES_MAX`] retries.
pub fn check_max_retries(max_retries: u32) -> Result<(), InvalidInput> {
    if max_retries > RETRIES_MAX {
        return Err(InvalidInput::new("max_retries", format!("is {max_retries}; the limit is {RETRIES_MAX}")));
    }
    Ok(())
}

/// Refuses more than [`SUBMIT_JOBS_MAX`] jobs in one call.
pub fn check_submit_count(count: usize) -> Result<(), InvalidInput> {
    if count > SUBMIT_JOBS_MAX {
        return Err(InvalidInput::new(
            "jobs",
            format!("holds {count} jobs; the limit is {SUBMIT_JOBS_MAX} a call, submit in several calls"),
        ));
    }
    Ok(())
}

/// Refuses to retry none, or more than [`RETRY_ALL_MAX`], dead letters in one call.
pub fn check_retry_count(count: usize) -> Result<(), InvalidInput> {
    if (1..=RETRY_ALL_MAX).contains(&count) {
        return Ok(());
    }
    Err(InvalidInput::new("limit", format!("is {count}; give 1 to {RETRY_ALL_MAX}")))
}

/// Refuses to archive jobs of a state that is no end.
pub fn check_ended(state: JobState) -> Result<(), InvalidInput> {
    if state.is_terminal() {
        return Ok(());
    }
    let ends = JobState::ALL.into_iter().filter(|state| state.is_terminal()).map(JobState::as_str);
    let ends = ends.collect::<Vec<_>>().join(", ");
    Err(InvalidInput::new("state", format!("is {state}; such jobs are live and never archived, give one of {ends}")))
}

/// Makes text fit to be stored: NUL replaced, cut to `chars_max` on a character boundary.
///
/// For text that Ratchet records on its own account (errors), which must never be refused.
pub fn storable(text: &str, chars_max: usize) -> String {
    // As nearly all texts are.
    if text.len() <= chars_max && !text.contains('\0') {
        return text.to_owned();
    }
    text.chars().map(|c| if c == '\0' { '\u{fffd}' } else { c }).take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_on_a_character_boundary_and_loses_its_nuls() {
        assert_eq!(storable("aé\0z", 3), "aé\u{fffd}");
        assert_eq!(storable("short", 10), "short");
    }

    #[test]
    fn limits_hold_at_the_limit_and_refuse_one_past_it() {
        let check = |result: Result<(), InvalidInput>, expected: Option<&str>| {
            let text = result.err().map(|e| e.to_string());
            match expected {
                None => assert_eq!(text, None),
                Some(part) => assert!(text.as_deref().unwrap_or("accepted").contains(part), "{text:?} lacks {part:?}"),
            }
        };
        check(check_identifier("kind", &"k".repeat(128), KIND_CHARS_MAX), None);
        check(
            check_identifier("kind", &"k".repeat(129), KIND_CHARS_MAX),
            Some("129 characters long; the limit is 128"),
        );
        check(check_identifier("kind", "", KIND_CHARS_MAX), Some("`kind` is empty"));
        check(check_identifier("kind", "a b", KIND_CHARS_MAX), Some("position 2"));
        // Multibyte characters count once.
        check(check_text("key", &"é".repeat(255), KEY_CHARS_MAX), None);
        check(check_text("key", &"é".repeat(256), KEY_CHARS_MAX), Some("the limit is 255"));
        check(check_text("key", "a\0b", KEY_CHARS_MAX), Some("NUL character at position 2"));
        check(check_name("resource", "Printer 2, left", RESOURCE_CHARS_MAX), None);
        check(check_name("resource", "", RESOURCE_CHARS_MAX), Some("1 to 100 characters"));
        check(check_name("resource", "printer\n", RESOURCE_CHARS_MAX), Some("begin or end with a space"));
        check(check_name("resource", "prin\u{1b}ter", RESOURCE_CHARS_MAX), Some("'\\u{1b}' at position 5"));
        check(check_timeout(Duration::from_millis(1)), None);
        check(check_timeout(Duration::from_micros(999)), Some("the least is 1ms"));
        check(check_delay("delay", DURATION_MAX), None);
        check(check_delay("delay", DURATION_MAX + Duration::from_nanos(1)), Some("10 years"));
        check(check_tag_count(32), None);
        check(check_tag_count(33), Some("the limit is 32"));
        check(check_submit_count(10_000), None);
        check(check_submit_count(10_001), Some("10000 a call"));
        check(check_max_retries(10_000), None);
        check(check_max_retries(10_001), Some("the limit is 10000"));
        check(check_ended(JobState::Failed), None);
        check(check_ended(JobState::Paused), Some("give one of SUCCEEDED, FAILED, CANCELED"));
    }
}
