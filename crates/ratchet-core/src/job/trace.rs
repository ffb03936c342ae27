//! Which distributed trace a job belongs to, in the form of the W3C Trace Context: the headers `traceparent` and
//! `tracestate`.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::invalid::InvalidInput;

/// Most characters of a `tracestate` that are carried along.
pub const STATE_CHARS_MAX: usize = 512;
/// Most entries of a `tracestate`.
const STATE_ENTRIES_MAX: usize = 32;
/// An entry over this length is the first to go when a `tracestate` is too long.
const ENTRY_CHARS_LONG: usize = 128;
/// Longest key, and longest value.
const KEY_CHARS_MAX: usize = 256;
const VALUE_CHARS_MAX: usize = 256;
/// The flags that this version knows: sampled, and random trace id.
const FLAGS_KNOWN: u8 = 0b11;

/// A place in a trace: what a job was submitted in the course of.
///
/// ```
/// use ratchet_core::TraceContext;
///
/// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let context = TraceContext::parse(header, Some("vendor=abc")).unwrap();
/// assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
/// assert_eq!(context.span_id().to_string(), "00f067aa0ba902b7");
/// assert!(context.is_sampled());
/// assert_eq!(context.traceparent(), header);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Headers", try_from = "Headers")]
pub struct TraceContext {
    trace_id: TraceId,
    span_id: SpanId,
    flags: u8,
    state: Option<Arc<str>>,
}

/// The id of a trace: 16 bytes, shown as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

/// The id of a span: 8 bytes, shown as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

impl TraceContext {
    /// Reads the two headers; a mistake in either is refused. `tracestate` is optional.
    ///
    /// # Errors
    /// Names the header and what is wrong with it.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Result<Self, InvalidInput> {
        let mut context = Self::of_parent(traceparent)?;
        let entries = tracestate.map(entries).transpose()?.unwrap_or_default();
        let state = entries.join(",");
        if state.len() > STATE_CHARS_MAX {
            let problem = format!("is {} characters long; the limit is {STATE_CHARS_MAX}", state.len());
            return Err(InvalidInput::new("tracestate", problem));
        }
        context.state = (!state.is_empty()).then(|| state.into());
        Ok(context)
    }

    /// Reads the headers of a request as the W3C asks of who receives them: a bad `traceparent` means that there is no
    /// trace, a bad `tracestate` is left out, and of one that is too long whole entries are.
    pub fn from_headers(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut context = Self::of_parent(traceparent.trim()).ok()?;
        let state = tracestate.and_then(|state| entries(state).ok()).map(shortened).unwrap_or_default();
        context.state = (!state.is_empty()).then(|| state.into());
        Some(context)
    }

    /// A context made of its parts; `None` if an id is zero, which no id may be.
    pub fn new(trace_id: u128, span_id: u64, sampled: bool) -> Option<Self> {
        let ids = trace_id != 0 && span_id != 0;
        ids.then_some(Self {
            trace_id: TraceId(trace_id),
            span_id: SpanId(span_id),
            flags: u8::from(sampled),
            state: None,
        })
    }

    fn of_parent(text: &str) -> Result<Self, InvalidInput> {
        let wrong = |problem: String| InvalidInput::new("traceparent", problem);
        let expected = "give it like 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut parts = text.splitn(5, '-');
        let mut part = |name: &str, digits: usize| {
            let part = parts.next().filter(|part| !part.is_empty());
            let part = part.ok_or_else(|| wrong(format!("has no {name}; {expected}")))?;
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if part.len() != digits || !part.bytes().all(is_digit) {
                return Err(wrong(format!(
                    "has {part:?} as its {name}, not {digits} digits of 0-9 and a-f; {expected}"
                )));
            }
            u128::from_str_radix(part, 16).map_err(|_| wrong(format!("has a bad {name}; {expected}")))
        };
        let version = part("version", 2)?;
        let trace_id = part("trace id", 32)?;
        let span_id = part("parent id", 16)?;
        let flags = part("flags", 2)?;
        if version == 0xff {
            return Err(wrong("has the version ff, which is none".to_owned()));
        }
        // A later version may have more parts; what this one knows comes first in all of them.
        if version == 0 && parts.next().is_some() {
            return Err(wrong(format!("goes on after its flags, which version 00 does not; {expected}")));
        }
        if trace_id == 0 || span_id == 0 {
            return Err(wrong("has an id of nothing but zeros, which means that there is none".to_owned()));
        }
        let (Ok(span_id), Ok(flags)) = (u64::try_from(span_id), u8::try_from(flags)) else {
            return Err(wrong(expected.to_owned()));
        };
        let (trace_id, span_id) = (TraceId(trace_id), SpanId(span_id));
        Ok(Self { trace_id, span_id, flags: flags & FLAGS_KNOWN, state: None })
    }

    /// The trace.
    pub const fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    /// The span that was current: the parent of what is done now.
    pub const fn span_id(&self) -> SpanId {
        self.span_id
    }

    /// Whether whoever began the trace records it.
    pub const fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// The header `traceparent`, of version 00.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace_id, self.span_id, self.flags)
    }

    /// The header `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl TraceId {
    /// As a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl SpanId {
    /// As a number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

macro_rules! hexadecimal {
    ($type:ident, $digits:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $digits, self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

hexadecimal!(TraceId, "{:032x}");
hexadecimal!(SpanId, "{:016x}");

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent())?;
        self.tracestate().map_or(Ok(()), |state| write!(f, ";{state}"))
    }
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Headers {
    traceparent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

impl From<TraceContext> for Headers {
    fn from(context: TraceContext) -> Self {
        Self { traceparent: context.traceparent(), tracestate: context.tracestate().map(str::to_owned) }
    }
}

impl TryFrom<Headers> for TraceContext {
    type Error = InvalidInput;
    fn try_from(headers: Headers) -> Result<Self, InvalidInput> {
        Self::parse(&headers.traceparent, headers.tracestate.as_deref())
    }
}

/// The entries of a `tracestate`, without the blanks around them.
fn entries(state: &str) -> Result<Vec<&str>, InvalidInput> {
    let wrong = |problem: String| InvalidInput::new("tracestate", problem);
    let given = state.split(',').map(|entry| entry.trim_matches([' ', '\t'])).filter(|entry| !entry.is_empty());
    let entries: Vec<&str> = given.take(STATE_ENTRIES_MAX + 1).collect();
    if entries.len() > STATE_ENTRIES_MAX {
        return Err(wrong(format!("has more than {STATE_ENTRIES_MAX} entries")));
    }
    let mut keys = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
        if !is_key(key) || !is_value(value) {
            return Err(wrong(format!("has a bad entry at place {}; write key=value", at + 1)));
        }
        if keys.contains(&key) {
            return Err(wrong(format!("has the key {key:?} twice")));
        }
        keys.push(key);
    }
    Ok(entries)
}

fn is_key(key: &str) -> bool {
    let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let further = |byte: u8| first(byte) || matches!(byte, b'_' | b'-' | b'*' | b'/' | b'@');
    key.len() <= KEY_CHARS_MAX && key.bytes().next().is_some_and(first) && key.bytes().all(further)
}

fn is_value(value: &str) -> bool {
    // Neither begin nor end is blank: both were trimmed, or belong to the key.
    let allowed = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'=' && byte != b',';
    (1..=VALUE_CHARS_MAX).contains(&value.len()) && value.bytes().all(allowed)
}

/// As many entries as may be carried along: long ones go first, then those at the end, which are the oldest.
fn shortened(mut entries: Vec<&str>) -> String {
    let length = |entries: &[&str]| entries.iter().map(|entry| entry.len() + 1).sum::<usize>().saturating_sub(1);
    while length(&entries) > STATE_CHARS_MAX {
        let long = entries.iter().rposition(|entry| entry.len() > ENTRY_CHARS_LONG);
        entries.remove(long.unwrap_or(entries.len() - 1));
    }
    let mut state = String::with_capacity(length(&entries));
    for (at, entry) in entries.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(state, "{comma}{entry}");
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn traceparent_is_read_by_the_rules_of_the_w3c() {
        let check = |header: String, expected: Result<&str, &str>| {
            let read = TraceContext::parse(&header, None).map(|context| context.traceparent());
            match (&read, expected) {
                (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{header}"),
                (Err(refused), Err(part)) => assert!(refused.to_string().contains(part), "{header}: {refused}"),
                _ => panic!("{header} gave {read:?} instead of {expected:?}"),
            }
            assert_eq!(TraceContext::from_headers(&header, None).is_some(), read.is_ok(), "{header}");
        };
        let sampled = format!("00-{TRACE}-{SPAN}-01");
        let plain = format!("00-{TRACE}-{SPAN}-00");
        check(sampled.clone(), Ok(&sampled));
        check(plain.clone(), Ok(&plain));
        // The flag of level 2 is kept, unknown ones are cleared.
        check(format!("00-{TRACE}-{SPAN}-03"), Ok(&format!("00-{TRACE}-{SPAN}-03")));
        check(format!("00-{TRACE}-{SPAN}-ff"), Ok(&format!("00-{TRACE}-{SPAN}-03")));
        // A later version is read as far as it is known.
        check(format!("cc-{TRACE}-{SPAN}-01"), Ok(&sampled));
        check(format!("cc-{TRACE}-{SPAN}-01-what-comes-next"), Ok(&sampled));
        check(format!("cc-{TRACE}-{SPAN}-01."), Err("flags"));
        check(format!("ff-{TRACE}-{SPAN}-01"), Err("version ff"));
        check(format!("00-{TRACE}-{SPAN}-01-more"), Err("goes on"));
        check(format!("00-{TRACE}-{SPAN}-01-"), Err("goes on"));
        check(format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), Err("trace id"));
        check(format!("00-{}-{SPAN}-01", "0".repeat(32)), Err("zeros"));
        check(format!("00-{TRACE}-{}-01", "0".repeat(16)), Err("zeros"));
        check(format!("00-{TRACE}-{SPAN}"), Err("no flags"));
        check(format!("00-{TRACE}-{SPAN}-1"), Err("flags"));
        check(format!("0-{TRACE}-{SPAN}-01"), Err("version"));
        check(format!("00-{}-{SPAN}-01", &TRACE[1..]), Err("trace id"));
        check(format!("00-{TRACE}-{SPAN}0-01"), Err("parent id"));
        check(format!("00-+{}-{SPAN}-01", &TRACE[1..]), Err("trace id"));
        check(format!("00-{}é-{SPAN}-01", &TRACE[2..]), Err("trace id"));
        check(String::new(), Err("no version"));
        check("-".to_owned(), Err("no version"));
    }

    #[test]
    fn tracestate_is_read_by_the_rules_of_the_w3c() {
        let header = format!("00-{TRACE}-{SPAN}-01");
        let check = |state: &str, expected: Option<&str>| {
            let strict = TraceContext::parse(&header, Some(state)).map(|context| context.state);
            assert_eq!(strict.clone().ok().flatten().as_deref(), expected, "{state}");
            let lenient = TraceContext::from_headers(&header, Some(state)).expect("a bad state costs no trace");
            assert_eq!(lenient.tracestate(), expected, "{state}");
        };
        check("vendor=abc", Some("vendor=abc"));
        check("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
        check(" a=1 ,\tb=2 ,, ", Some("a=1,b=2"));
        check("", None);
        check("fw529a3039@dt=FfAAAAAA;x:y", Some("fw529a3039@dt=FfAAAAAA;x:y"));
        check("a_-*/0=with blank inside", Some("a_-*/0=with blank inside"));
        check("Upper=1", None);
        check("=1", None);
        check("a=", None);
        check("a", None);
        check("a=1,a=2", None);
        check("a=b=c", None);
        check("a=é", None);
        check("_a=1", None);
        check(&format!("{}=1", "k".repeat(256)), Some(&format!("{}=1", "k".repeat(256))));
        check(&format!("{}=1", "k".repeat(257)), None);
        check(&format!("k={}", "v".repeat(256)), Some(&format!("k={}", "v".repeat(256))));
        check(&format!("k={}", "v".repeat(257)), None);
        let many = |count: usize| (0..count).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        check(&many(32), Some(&many(32)));
        check(&many(33), None);
    }

    #[test]
    fn of_a_state_that_is_too_long_whole_entries_go() {
        let header = format!("00-{TRACE}-{SPAN}-01");
        let kept = |state: &str| TraceContext::from_headers(&header, Some(state)).unwrap().state.unwrap().to_string();
        let entry = |key: &str, length: usize| format!("{key}={}", "v".repeat(length - key.len() - 1));
        let short: Vec<String> = ["a", "b", "c", "d"].map(|key| entry(key, 127)).into();
        assert_eq!(kept(&short.join(",")).len(), 511, "it fits");
        let long = format!("{},{},{}", entry("x", 200), short.join(","), entry("y", 5));
        assert_eq!(kept(&long), short.join(","), "the long one first, then the last");
        assert!(TraceContext::parse(&header, Some(&long)).unwrap_err().to_string().contains("the limit is 512"));
    }

    #[test]
    fn a_context_is_stored_as_its_headers() {
        let header = format!("00-{TRACE}-{SPAN}-01");
        let check = |state: Option<&str>, json: String| {
            let context = TraceContext::parse(&header, state).unwrap();
            assert_eq!(serde_json::to_string(&context).unwrap(), json);
            assert_eq!(serde_json::from_str::<TraceContext>(&json).unwrap(), context);
        };
        check(None, format!(r#"{{"traceparent":"{header}"}}"#));
        check(Some("a=1"), format!(r#"{{"traceparent":"{header}","tracestate":"a=1"}}"#));
        assert!(serde_json::from_str::<TraceContext>(r#"{"traceparent":"00-0-0-0"}"#).is_err());
        assert_eq!((TraceContext::new(0, 1, true), TraceContext::new(1, 0, true)), (None, None));
        let made = TraceContext::new(1, 2, false).unwrap();
        assert_eq!(made.traceparent(), format!("00-{:032x}-{:016x}-00", 1, 2));
    }
}
